"""The run's folder: one process at a time, and never that of another configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import quiet, toy

import taggernet
from taggernet.tagger import Tagger
from taggernet.training import datasets, train
from taggernet.training.auto_config import config_for
from taggernet.training.run_dir import data_of, lock_run, models_of, read_config, run_of

CONFIG = toy("batch", "fixed", ema=0.9)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(CONFIG, folder)
    return folder


def test_what_a_model_was_trained_on(finished: Path, tmp_path: Path) -> None:
    seed = finished / "seed-0"
    assert run_of(seed) == finished
    assert data_of(seed) == CONFIG.data
    model = Tagger.load(seed)
    cards: dict[str, dict[str, Any]] = {
        "noted": {"data": {"name": "shapes", "objects": 4}},
        "recipe": {"recipe": "shapes-permuted"},
    }
    for name, card in cards.items():
        model.save(tmp_path / name, card)
        assert run_of(tmp_path / name) is None
    noted = data_of(tmp_path / "noted")
    assert noted is not None
    assert noted.objects == 4
    assert data_of(tmp_path / "recipe") is None, "a run of that recipe may have had other data"


def test_another_configuration_is_refused_by_the_fields_that_differ(finished: Path) -> None:
    before = (finished / "config.json").read_bytes()
    other = toy("layer", "fixed", ema=0.9, lr=0.5)
    with pytest.raises(ValueError, match="another configuration") as caught:
        train(other, finished)
    message = str(caught.value)
    assert "model.norm is 'batch' there, 'layer' here" in message
    assert "optimiser.lr is 0.01 there, 0.5 here" in message
    assert "choose another --out" in message
    assert "data" not in message.split("(")[1], "only what differs"
    assert (finished / "config.json").read_bytes() == before


def test_a_moved_file_is_told_to_come_back(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((40, 300))
    path, other, run = tmp_path / "my.npy", tmp_path / "other.npy", tmp_path / "run"
    np.save(path, x)
    np.save(other, x)
    own = replace(config_for(path), runtime=quiet())
    own = replace(own, optimiser=replace(own.optimiser, updates=2, batch=8, warmup=0))
    named = replace(own, recipe=other.name, data=replace(own.data, name=str(other)))
    train(own, run)
    with pytest.raises(ValueError, match=r"not on .*other\.npy: repeat the command with that file to resume"):
        train(named, run)
    path.unlink()
    named = replace(named, optimiser=replace(named.optimiser, updates=4))
    with pytest.raises(ValueError, match=r"my\.npy, which is not there any more: .* repeat the command with the old"):
        train(named, run)
    np.save(path, x + 1)
    with pytest.raises(ValueError, match=r"model\.offsets is \(.*, \.\.\. 300 in all\) there") as caught:
        train(replace(own, model=config_for(path).model), run)
    assert len(str(caught.value)) < 1000, "no list of all elements"


def test_a_run_that_never_began_makes_room_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise FileNotFoundError("no data")

    monkeypatch.setattr(datasets, "training_set", absent)
    with pytest.raises(FileNotFoundError, match="no data"):
        train(CONFIG, tmp_path / "run")
    monkeypatch.undo()
    assert read_config(tmp_path / "run") == CONFIG
    other = replace(CONFIG, optimiser=replace(CONFIG.optimiser, lr=0.5))
    train(other, tmp_path / "run")
    assert read_config(tmp_path / "run") == other


def test_another_runtime_is_not_another_run(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    train(replace(CONFIG, runtime=quiet(log_every=1)), run)
    assert read_config(run).runtime.log_every == 1


def test_parts_of_a_run_without_its_configuration_are_refused(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "config.json").unlink()
    with pytest.raises(ValueError, match=r"no config\.json: choose another --out"):
        train(CONFIG, run)


def test_a_second_process_in_the_folder_is_refused(tmp_path: Path) -> None:
    """While it is in use, by whichever process; a process that was killed no longer uses it."""
    program = (
        "import sys, time; from pathlib import Path; from taggernet.training.run_dir import lock_run\n"
        "with lock_run(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    source = str(Path(taggernet.__file__).parents[1])
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=f"another run is using {tmp_path}: wait for it, or choose another --out"):
            train(toy(), tmp_path)
        assert not (tmp_path / "config.json").exists()
    finally:
        other.kill()
        other.communicate()
    with lock_run(tmp_path), pytest.raises(ValueError, match="another run is using"):
        train(toy(), tmp_path)
    assert train(toy(), tmp_path).finished


def test_a_folder_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with lock_run(folder) as lock:
        with lock.writing("a record"):
            (folder / "record").write_text("fine")
        shutil.rmtree(folder)
        with pytest.raises(OSError, match=r"a record could not be written to .*deleted, moved or replaced"):
            with lock.writing("a record"):
                pytest.fail("nothing may be written")
        with lock_run(folder):  # another run made a folder of that name
            with pytest.raises(OSError, match=r"deleted, moved or replaced .*; kept"):
                with lock.writing("a record", lambda: "; kept"):
                    pytest.fail("nothing may be written")


def test_models_come_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    for name in ("seed-10", "seed-9", "seed-x", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").touch()
    (tmp_path / "seed-2").mkdir()  # cut off before it was written
    assert [path.name for path in models_of(tmp_path)] == ["seed-9", "seed-10"]


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(OSError, match=r"cannot be written \(.+\): choose another --out"):
            train(toy(), out)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_said_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="cannot be written"):
        train(toy(), tmp_path / "run")


def test_models_remember_the_groups_and_iterations_they_are_tested_with(tmp_path: Path) -> None:
    """K=2 and T=3, where a model that is told nothing uses 4 and 5."""
    config = replace(toy(), groups=2, test_groups=2, test_iterations=3)
    run = train(config, tmp_path)
    x = np.random.default_rng(0).integers(0, 2, (3, 8, 8))
    for model in (run.model(), Tagger.load(tmp_path / "seed-0"), Tagger.from_pretrained(tmp_path)):
        out = model.group(x)
        assert (out.groups, len(out.history) - 1) == (2, 3)
        np.testing.assert_array_equal(out.masks, model.group(x, 2, 3).masks)
        assert model.group(x, groups=5, iterations=1).masks.shape == (3, 5, 8, 8), "a call may still name others"
