"""A file of scenes becomes a file of groups: what Tagger.group gives, in parts, after any interruption."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from own_files import sensors, short, write

from taggernet import group_file as module
from taggernet.cli import main
from taggernet.data import Scenes, files
from taggernet.data.lazy import open_data
from taggernet.group_file import Work, group_file
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import train
from taggernet.training.auto_config import config_for
from taggernet.training.datasets import permutation
from taggernet.training.distributed import World
from taggernet.training.seeds import initial_weights, one_seed

KEYS = ("labels", "masks", "reconstructions", "class_probabilities")


def untrained(folder: Path, **options: Any) -> Path:
    config = TaggerConfig((5, 2), "real", (12, 8), mean=0.0, offset=105.0, scale=15.0, **options)
    return one_seed(config, initial_weights(config, [0], "cpu"), 0, groups=3, iterations=2).save(folder)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return untrained(tmp_path / "model", classes=3, norm="layer")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 20 * 3 * 10)  # two batches of ten scenes


def read(path: Path) -> dict[str, Any]:
    if path.suffix == ".npz":
        with np.load(path) as file:
            return dict(file)
    with h5py.File(path) as file:
        return {name: data[()] for name, data in file.items()}


def expected(folder: Path, x: Any, **options: Any) -> dict[str, Any]:
    tagger = Tagger.load(folder)
    out = tagger.group(x, **{"starts": 4} | options)
    found = {"labels": out.labels, "masks": out.masks, "reconstructions": out.reconstructions}
    return found | (
        {"class_probabilities": tagger.class_probabilities(out.history[-1]).numpy()} if tagger.config.classes else {}
    )


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)
        assert found[name].shape == values.shape


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("source", "target"), [(".npz", ".npz"), (".npy", ".h5"), (".h5", ".hdf5")])
def test_it_is_what_group_gives(source: str, target: str, model: Path, tmp_path: Path) -> None:
    arrays = sensors(55)
    file = write(tmp_path / f"x{source}", arrays)
    out = group_file(model, file, tmp_path / "new" / f"groups{target}", batch_size=10, device="cpu", progress=False)
    same(read(out), expected(model, arrays["x"]))
    assert read(out)["labels"].dtype == np.uint8
    assert list(out.parent.iterdir()) == [out], "the parts are gone"


@pytest.mark.usefixtures("small_parts")
def test_batch_norm_sees_the_batches_it_would_see_anyway(tmp_path: Path) -> None:
    folder = untrained(tmp_path / "model", norm="batch")
    arrays = sensors(55)
    out = group_file(
        folder, write(tmp_path / "x.npz", arrays), tmp_path / "out.npz", groups=4, iterations=3, seed=5, batch_size=10,
        device="cpu", progress=False,
    )  # fmt: skip
    same(read(out), expected(folder, arrays["x"], groups=4, iterations=3, seed=5, batch_size=10))


@pytest.mark.parametrize("alone", [False, True])
def test_a_model_of_permuted_scenes_sees_them_so(alone: bool, tmp_path: Path) -> None:
    """Its groups come back in the order of the file, also where the seed's folder was taken out of its run."""
    arrays = sensors(30)
    config = short(config_for(Scenes.of(arrays["x"])))
    config = replace(config, data=replace(config.data, permuted=True), groups=2, test_groups=2)
    train(replace(config, model=replace(config.model, widths=(12, 6))), tmp_path / "run", scenes=Scenes.of(arrays["x"]))
    folder = (tmp_path / "run" / "seed-0").rename(tmp_path / "taken") if alone else tmp_path / "run" / "seed-0"
    file = write(tmp_path / "x.npz", arrays)
    found = read(group_file(folder, file, tmp_path / "out.npz", starts=2, device="cpu", progress=False))
    order = permutation(config.data, 10)
    seen = Tagger.load(folder).group(arrays["x"].reshape(30, 10)[:, order], starts=2)
    for name, wanted in (("labels", seen.labels), ("masks", seen.masks), ("reconstructions", seen.reconstructions)):
        assert np.ptp(wanted) > 0.05
        flat = found[name].reshape(wanted.shape)
        np.testing.assert_allclose(flat[..., order], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("small_parts")
def test_it_goes_on_after_an_interruption(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, group, begun = sensors(55), Work.group, []

    def dies_at_40(self: Work, first: int, end: int) -> Any:
        begun.append(first)
        if first == 40 and len(begun) < 4:
            raise KeyboardInterrupt
        return group(self, first, end)

    monkeypatch.setattr(Work, "group", dies_at_40)
    file, out = write(tmp_path / "x.npz", arrays), tmp_path / "out.npz"
    with pytest.raises(KeyboardInterrupt):
        group_file(model, file, out, batch_size=10, device="cpu", progress=False)
    assert not out.exists()
    (tmp_path / "out.npz.parts" / "00000002.npz.tmp").write_text("torn")
    with pytest.raises(ValueError, match=r"parts of other work \(groups differ\): repeat that command to finish it"):
        group_file(model, file, out, groups=4, batch_size=10, device="cpu", progress=False)
    same(read(group_file(model, file, out, batch_size=10, device="cpu", progress=False)), expected(model, arrays["x"]))
    assert begun == [0, 20, 40, 40], "what was done is not done again"
    with pytest.raises(FileExistsError, match="add --overwrite"):
        group_file(model, file, out, device="cpu", progress=False)
    group_file(model, file, out, groups=4, device="cpu", progress=False, overwrite=True)
    assert read(out)["masks"].shape[1] == 4


@pytest.mark.usefixtures("small_parts")
def test_ctrl_c_keeps_the_part_under_way(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Work.group

    def interrupted(self: Work, first: int, end: int) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return group(self, first, end)

    monkeypatch.setattr(Work, "group", interrupted)
    file = write(tmp_path / "x.npz", sensors(55))
    with pytest.raises(KeyboardInterrupt):
        group_file(model, file, tmp_path / "out.npz", batch_size=10, device="cpu", progress=False)
    assert capsys.readouterr().err == "stopped after 20 of 55 scenes: repeat the command to go on\n"


@pytest.mark.usefixtures("small_parts")
def test_parts_of_other_work_are_replaced_on_request(model: Path, tmp_path: Path) -> None:
    arrays = sensors(55)
    file, parts = write(tmp_path / "x.npz", arrays), tmp_path / "out.npz.parts"
    other = Work(Tagger.load(model), open_data(file), 2, 1, 0, 10, ("labels",))
    parts.mkdir()
    module._begin(parts, other.described(model, file), overwrite=False)
    module._write_parts(other, parts, World(), progress=False)
    out = group_file(model, file, tmp_path / "out.npz", batch_size=10, device="cpu", progress=False, overwrite=True)
    same(read(out), expected(model, arrays["x"]))


def test_the_file_to_group_is_not_replaced(model: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "x.npz", sensors(20))
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"x\.npz is the file to group, which would be lost"):
        group_file(model, file, tmp_path / "." / "x.npz", overwrite=True, progress=False)
    assert file.read_bytes() == before


def test_parts_of_a_model_of_other_units_are_other_work(model: Path, tmp_path: Path) -> None:
    """Its weights are the same: the configuration counts too."""
    file, parts = write(tmp_path / "x.npz", sensors(55)), tmp_path / "parts"
    parts.mkdir()
    same_weights = Tagger.load(model)
    for offset in (105.0, 105.0, 5.0):
        same_weights.config = replace(same_weights.config, offset=offset)
        described = Work(same_weights, open_data(file), 2, 1, 0, 10, ("labels",)).described(model, file)
        if offset == 105.0:
            module._begin(parts, described, overwrite=False)
    with pytest.raises(ValueError, match=r"parts of other work \(configuration differ\)"):
        module._begin(parts, described, overwrite=False)


@pytest.mark.usefixtures("small_parts")
def test_processes_share_the_parts(model: Path, tmp_path: Path) -> None:
    arrays = sensors(55)
    file, parts = write(tmp_path / "x.npz", arrays), tmp_path / "out.npz.parts"
    work = Work(Tagger.load(model), open_data(file), 3, 2, 0, 10, KEYS)
    parts.mkdir()
    module._begin(parts, work.described(model, file), overwrite=False)
    module._write_parts(work, parts, World(1, 2), progress=False)
    assert sorted(p.name for p in parts.glob("*.npz")) == ["00000001.npz"]
    module._write_parts(work, parts, World(0, 2), progress=False)
    out = group_file(model, file, tmp_path / "out.npz", batch_size=10, device="cpu", progress=False)
    same(read(out), expected(model, arrays["x"]))


KILLED = """
import os, signal, sys
from taggernet import group_file as module
group = module.Work.group
def killed_at_40(self, first, end):
    if first == 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return group(self, first, end)
module.PART, module.Work.group = 600, killed_at_40
module.group_file(*sys.argv[1:], batch_size=10, device="cpu", progress=False)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_a_killed_command_goes_on_where_it_was(model: Path, tmp_path: Path) -> None:
    arrays = sensors(55)
    file, out = write(tmp_path / "x.npz", arrays), tmp_path / "out.npz"
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(model), str(file), str(out)], env=environment(), check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert sorted(p.name for p in (tmp_path / "out.npz.parts").glob("*.npz")) == ["00000000.npz", "00000001.npz"]
    same(read(group_file(model, file, out, batch_size=10, device="cpu", progress=False)), expected(model, arrays["x"]))
    assert not (tmp_path / "out.npz.parts").exists()


def environment() -> dict[str, str]:
    sources = os.pathsep.join([str(Path(module.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": sources, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.mark.slow
def test_two_processes_of_torchrun(model: Path, tmp_path: Path) -> None:
    arrays = sensors(900)
    file, out = write(tmp_path / "x.npz", arrays), tmp_path / "out.h5"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = f"-m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port {port} -m taggernet"
    ended = subprocess.run(
        [sys.executable, *launch.split(), "group", str(model), str(file), "--out", str(out), "--device", "cpu"],
        env=environment(), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("the groups are in") == 1
    same(read(out), expected(model, arrays["x"]))


@pytest.mark.usefixtures("small_parts")
def test_a_large_file_is_read_a_part_at_a_time(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAPPED", 0)
    arrays = sensors(55)
    file, most = write(tmp_path / "x.npy", arrays), []
    checked = Tagger.checked_rows

    def spy(self: Tagger, x: Any) -> Any:
        most.append(len(x))
        return checked(self, x)

    monkeypatch.setattr(Tagger, "checked_rows", spy)
    assert isinstance(open_data(file).x, np.memmap)
    out = group_file(model, file, tmp_path / "out.npz", batch_size=10, device="cpu", progress=False)
    assert most == [20, 20, 15]
    monkeypatch.undo()
    same(read(out), expected(model, arrays["x"]))


@pytest.mark.usefixtures("without_typecheck")
def test_on_the_command_line(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = write(tmp_path / "x.npz", sensors()), tmp_path / "out.npz"
    command = ["group", str(model), str(file), "--device", "cpu", "--out"]
    assert main([*command, str(out), "--arrays", "labels", "masks"]) == 0
    shown = capsys.readouterr()
    assert f"the groups are in {out}" in shown.out
    assert "60 of 60 scenes, 0:00:00 left" in shown.err
    assert set(read(out)) == {"labels", "masks"}
    wrong = np.array(sensors()["x"])
    wrong[7, 0, 0] = np.nan
    for words, sentence in (
        ([*command, str(out)], "exists: choose another name for --out, or add --overwrite"),
        ([*command, str(tmp_path / "out.csv")], "expected .npz or .h5"),
        (["group", "shapes", str(file), "--out", str(tmp_path / "a.npz")], "the scenes have shape (5, 2)"),
        (["group", str(model), str(tmp_path / "none.npz"), "--out", str(tmp_path / "a.npz")], "does not exist"),
        (
            ["group", str(model), str(write(tmp_path / "nan.npz", {"x": wrong})), "--out", str(tmp_path / "a.npz")],
            "NaN, infinity or a value too large (scene 7)",
        ),
        ([*command, str(tmp_path / "a.npz"), "--groups", "0"], "groups=0 is out of range"),
    ):
        assert main(words) == 2
        assert sentence in capsys.readouterr().err
    assert not list(tmp_path.glob("a.npz*")), "nothing was written"


def test_classes_of_a_model_without_any_are_refused(tmp_path: Path) -> None:
    folder = untrained(tmp_path / "model", norm="layer")
    file = write(tmp_path / "x.npz", sensors())
    with pytest.raises(ValueError, match="this model was trained without classes"):
        group_file(folder, file, tmp_path / "out.npz", arrays=["class_probabilities"], device="cpu")
    same(
        read(group_file(folder, file, tmp_path / "out.npz", device="cpu", progress=False)),
        expected(folder, sensors()["x"]),
    )
