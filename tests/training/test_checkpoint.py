"""Checkpoints: damage is noticed, and an older whole one is used."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toys import quiet, records, toy

from taggernet.config.run import to_json
from taggernet.fileio import read_json, write_json
from taggernet.training import Config, train
from taggernet.training.adam import TrainState
from taggernet.training.checkpoint import _digest_of, load, load_latest, save

CONFIG = toy("batch", "fixed", ema=0.9)


def flip(path: Path, index: int) -> None:
    content = bytearray(path.read_bytes())
    content[index] ^= 1
    path.write_bytes(bytes(content))


def truncate(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(CONFIG, folder)
    return folder


def rewrite(last: Path, **changes: object) -> None:
    """A state.json that is whole but says something else."""
    record = {name: value for name, value in read_json(last / "state.json").items() if name != "digest"} | changes
    write_json(last / "state.json", record | {"digest": _digest_of(record)})


def edit(last: Path, **changes: object) -> None:
    write_json(last / "state.json", read_json(last / "state.json") | changes)


DAMAGE = {
    "weights cut short": lambda last: truncate(last / "seed-0.safetensors", 1000),
    "weights empty": lambda last: truncate(last / "seed-0.safetensors", 0),
    "one bit of a weight": lambda last: flip(last / "seed-0.safetensors", -100),
    "weights gone": lambda last: (last / "seed-0.safetensors").unlink(),
    "state cut short": lambda last: truncate(last / "state.json", 30),
    "state gone": lambda last: (last / "state.json").unlink(),
    "another step": lambda last: rewrite(last, step=11),
    "no digests": lambda last: write_json(last / "state.json", {"step": 12, "seeds": [0]}),
    "other names": lambda last: rewrite(last, names=["w"]),
    "an edited loss": lambda last: edit(last, unlogged=[[[9.0], [9.0], [0.0]]]),
    "another rate": lambda last: rewrite(last, config=to_json(toy("batch", "fixed", ema=0.9, lr=0.5))),
    "another model": lambda last: another_run(last, toy("layer", "fixed", ema=0.9)),
}


def another_run(last: Path, config: Config) -> None:
    """The checkpoint of another run, whole in itself."""
    shutil.rmtree(last)
    train(config, last.parents[1] / "other")
    shutil.copytree(last.parents[1] / "other" / "checkpoints" / last.name, last)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_passed_over_and_written_anew(damage: object, finished: Path, tmp_path: Path) -> None:
    """The one before it is used, with a warning that names the damaged one; the outcome is the same."""
    assert callable(damage)
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    shutil.rmtree(run / "seed-0")
    last = run / "checkpoints" / "00000012"
    damage(last)
    with pytest.warns(UserWarning, match=r"00000012 is not used .*: trying the one before it"):
        found = load_latest(run, CONFIG, "cpu")
    assert found is not None
    assert found[0].step == 10
    with pytest.warns(UserWarning, match="00000012 is not used"):
        train(CONFIG, run)
    assert records(run) == records(finished)
    expected, _ = load(finished / "checkpoints" / "00000012", CONFIG, "cpu")
    healed, _ = load(last, CONFIG, "cpu")
    for part in ("weights", "first_moment", "second_moment", "average"):
        before, after = getattr(expected, part), getattr(healed, part)
        assert list(before) == list(after)
        assert all(torch.equal(before[name], after[name]) for name in before)
    assert (run / "seed-0" / "model.safetensors").read_bytes() == (
        finished / "seed-0" / "model.safetensors"
    ).read_bytes()


def test_no_byte_of_the_state_can_lead_astray(finished: Path, tmp_path: Path) -> None:
    """A flipped bit anywhere in state.json is noticed, or changes nothing of what it says."""
    folder = tmp_path / "00000012"
    shutil.copytree(finished / "checkpoints" / "00000012", folder)
    content = (folder / "state.json").read_bytes()
    _, expected = load(folder, CONFIG, "cpu")
    noticed = 0
    for index in range(0, len(content), 7):
        (folder / "state.json").write_bytes(content)
        flip(folder / "state.json", index)
        try:
            _, record = load(folder, CONFIG, "cpu")
        except ValueError:
            noticed += 1
        else:
            assert record == expected
    assert noticed > len(content) / 7 / 2


def test_when_every_checkpoint_is_damaged_the_run_starts_again(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for path in (run / "checkpoints").glob("*/state.json"):
        path.write_text("{}")
    with pytest.warns(UserWarning, match="is not used") as caught:
        train(CONFIG, run)
    assert len(caught) == 2
    assert records(run) == records(finished)


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    state = TrainState.fresh({"a": torch.ones(1, 2)}, ema=False)
    for before, step in ((None, 3), (3, 10), (10, 200)):
        state.step = step
        save(tmp_path, state, toy(), {}, before)
    assert names(tmp_path) == ["00000010", "00000200"]


def test_a_damaged_checkpoint_is_not_one_of_the_two(finished: Path, tmp_path: Path) -> None:
    """Passed over, it must not outlive the good ones: neither the one before it nor those written since."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "checkpoints" / "00000099.tmp").mkdir()  # of a run that was killed
    flip(run / "checkpoints" / "00000012" / "seed-0.safetensors", -100)
    with pytest.warns(UserWarning, match="00000012 is not used"):
        train(replace(CONFIG, runtime=quiet(checkpoint_every=11)), run)
    assert names(run) == ["00000011", "00000012"]
    for folder in (run / "checkpoints").iterdir():
        flip(folder / "seed-0.safetensors", -100)
    with pytest.warns(UserWarning, match="is not used"):
        train(replace(CONFIG, runtime=quiet(checkpoint_every=2)), run)
    assert names(run) == ["00000010", "00000012"]
    for folder in (run / "checkpoints").iterdir():
        load(folder, CONFIG, "cpu")


def test_a_checkpoint_of_other_seeds_is_not_used(tmp_path: Path) -> None:
    save(tmp_path, TrainState.fresh({"a": torch.ones(2, 2)}, ema=False), toy(seeds=2), {})
    with pytest.warns(UserWarning, match=r"it holds seeds \[0, 1\], but \[0\] are wanted"):
        assert load_latest(tmp_path, toy(), "cpu") is None


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    state = TrainState.fresh({"a": torch.ones(1, 2)}, ema=False)
    save(tmp_path, state, toy(), {})
    state.step = 1
    monkeypatch.setattr("taggernet.training.checkpoint.write_tensors", full)
    with pytest.raises(OSError, match="No space"):
        save(tmp_path, state, toy(), {}, before=0)
    assert names(tmp_path) == ["00000000"]
