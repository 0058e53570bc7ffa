"""What a person can get wrong, and the one sentence each mistake is answered with.

Each case runs in a folder that holds a good model ('model'), a finished run ('run') and a plain file ('a-file').
``test_bad_commands`` asks the same of the command line.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import huggingface_hub
import mischief
import numpy as np
import pytest
import torch
from mischief import GOOD, TRAP, npy, pack, write
from safetensors.torch import load_file, save_file

import taggernet as tn
from taggernet import Tagger, TaggerConfig, data
from taggernet.config.run import Config
from taggernet.data import Scenes, load, mnist
from taggernet.export import export
from taggernet.metrics import adjusted_mutual_information as ami
from taggernet.metrics import adjusted_rand_index, classification_error, top1_error, top2_error
from taggernet.training import train
from taggernet.training.auto_config import look
from taggernet.training.run_dir import read_config

pytestmark = pytest.mark.usefixtures("without_typecheck")

BINARY = Tagger(TaggerConfig(shape=(2, 3), widths=(8, 4), norm="layer"))
REAL = Tagger(TaggerConfig(shape=(2, 3), kind="real", widths=(8, 4), norm="layer"))
X = np.eye(6)


# --- what lies in the folder --------------------------------------------------------------------------------------


@pytest.fixture
def here(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    BINARY.save("model", {"recipe": "none"})
    Path("run").symlink_to(run)
    Path("a-file").write_text("hello")
    return tmp_path


def scenes(**wrong: Any) -> Scenes:
    return Scenes.of(**{"x": np.eye(3)} | wrong)


def card(**changes: Any) -> Tagger:
    """The model in 'model' after its card was edited; None takes a field away."""
    path = Path("model/config.json")
    content = json.loads(path.read_text()) | {name: value for name, value in changes.items() if name != "model"}
    content["model"] = changes["model"] if not isinstance(changes.get("model"), dict) and "model" in changes else (
        content["model"] | changes.get("model", {})
    )  # fmt: skip
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    return Tagger.load("model")


def weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Tagger:
    """The model in 'model' after its weights were tampered with."""
    tensors = load_file("model/model.safetensors")
    change(tensors)
    save_file(tensors, "model/model.safetensors")
    return Tagger.load("model")


def run_card(section: str | None, **changes: Any) -> Config:
    """The configuration of the run, one section edited."""
    content = json.loads(Path("run/config.json").read_text())
    (content if section is None else content[section]).update(changes)
    Path("edited").mkdir()
    Path("edited/config.json").write_text(json.dumps(content))
    return read_config(Path("edited"))


def toy(**changes: Any) -> None:
    """Train a small configuration with these fields of model or data changed."""
    config = tn.recipe("small")
    model = {k: v for k, v in changes.items() if k in ("shape", "kind", "classes")}
    rest = {k: v for k, v in changes.items() if k not in model}
    train(replace(config, model=replace(config.model, **model), data=replace(config.data, **rest)), Path("out"))


def fetched(answer: Callable[[Any, bytes], None]) -> None:
    """MNIST from a mirror that answers in this way to a request for a good file."""
    module = sys.modules["taggernet.data.mnist"]  # by its name, as the package offers a function of that name
    good = gzip.compress(b"\0" * 100)
    file = module._File("t10k-images-idx3-ubyte", "0" * 32, len(good), "0" * 32, 100)
    patch = pytest.MonkeyPatch()
    with mischief.server(lambda handler: answer(handler, good)) as url, patch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(Path("cache").resolve()))
        patched.delenv("TAGGERNET_DATA", raising=False)
        patched.setitem(module._FILES, "test images", file)
        patched.setattr(module, "MIRRORS", (url,))
        try:
            mnist("test")
        finally:
            assert not [path for path in Path("cache").rglob("*") if path.is_file()], "nothing half may be kept"


# --- Python -------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # what is grouped, and what is done with a grouping (more in tests/test_tagger.py)
    "inputs without elements": (lambda: BINARY.group(X[:, :0]), ValueError, "that is 0 elements per input"),
    "integers too large": (lambda: REAL.group(np.full((1, 6), 2**63, np.uint64)), ValueError, "scale the data"),
    "dates": (lambda: REAL.group(X.astype("M8[s]")), TypeError, r"x is an array of datetime64\[s\]: give numbers"),
    "a sparse tensor": (lambda: REAL.group(torch.eye(6).to_sparse()), TypeError, "x is a tensor that is sparse"),
    "a tensor without values": (lambda: REAL.group(torch.empty(2, 6, device="meta")), TypeError, "without values"),
    "masked values": (lambda: REAL.group(np.ma.masked_less(X, 1)), ValueError, "x has 30 masked values: fill or drop"),
    "a seed of 80 bits": (lambda: BINARY.group(X, seed=2**80), ValueError, "does not fit in 64 bits"),
    "a group that is not there": (lambda: BINARY.group(X).without(9), ValueError, r"there are groups 0 \.\. 3"),
    "every group taken away": (lambda: BINARY.group(X, 2).without(0, 1), ValueError, "keep at least one"),
    "an iteration that was not run": (lambda: BINARY.group(X).at(9), ValueError, r"choose 0 \(the start\) to 5"),
    "classes of a model without": (lambda: BINARY.predict(X), ValueError, "trained without classes"),
    # scenes
    "scenes of rank 1": (lambda: scenes(x=np.ones(3)), ValueError, r"for a single scene pass x\[None\]"),
    "no scenes": (lambda: scenes(x=np.ones((0, 3))), ValueError, r"x is empty \(shape \(0, 3\)\)"),
    "scenes with NaN": (lambda: scenes(x=[[0.0, math.nan]]), ValueError, "x holds NaN, infinity or a value too large"),
    "scenes that are not binary": (lambda: scenes(x=X / 2, kind="binary"), ValueError, "threshold x first"),
    "scenes of objects": (lambda: scenes(x=[[None]]), TypeError, "x has dtype object, expected numbers"),
    "an unknown kind": (lambda: scenes(kind="ternary"), ValueError, "kind='ternary' is not known: choose one of"),
    "groups of another shape": (
        lambda: scenes(groups=np.ones((3, 2), int)), ValueError, "one group number per position",
    ),
    "negative groups": (lambda: scenes(groups=-np.ones((3, 3), int)), ValueError, "groups holds -1, expected 0"),
    "fractional groups": (lambda: scenes(groups=np.ones((3, 3))), TypeError, "groups has dtype float64, expected int"),
    "too few classes": (lambda: scenes(classes=[0, 1]), ValueError, "classes has 2 rows, but x has 3 scenes"),
    "classes below -1": (lambda: scenes(classes=[0, 1, -2]), ValueError, "classes holds -2, expected 0 or more"),
    "classes beyond an integer": (
        lambda: scenes(classes=np.array([0, 1, 2**63], np.uint64)), ValueError, "classes holds 9223372036854775808",
    ),
    "more labels than scenes": (lambda: data.labelled_subset([0, 1], 4, n_classes=2), ValueError, "a smaller count"),
    "a scene that is not there": (lambda: data.shapes(2)[9], IndexError, "scene 9 was asked for, but there are 2"),
    "no shapes": (lambda: data.shapes(0), ValueError, "n=0 is out of range: give an integer of at least 1"),
    "10^12 shapes": (lambda: data.shapes(10**12), ValueError, "need too much memory: make at most 10,737,418"),
    "a canvas too large": (
        lambda: data.shapes(1, size=1024), ValueError, "size=1024 is out of range: give an integer from",
    ),
    "three digits": (lambda: data.texture_mnist(3), ValueError, "digits=3 is out of range: give an integer"),
    "digits of another size": (
        lambda: data.texture_mnist(1, images=np.zeros((2, 9, 9), np.uint8)), ValueError, r"expected \(n, 28, 28\)",
    ),
    # metrics
    "metrics of two lengths": (lambda: ami(X[:2].astype(int), X.astype(int)), ValueError, "one predicted label per"),
    "metrics of one scene": (lambda: ami(np.ones(3, int), np.ones(3, int)), ValueError, r"with true\[None\]"),
    "metrics of masks": (lambda: adjusted_rand_index(X, X), TypeError, "take the argmax of probabilities"),
    "metrics of lists": (lambda: ami([[1]], [[1]]), TypeError, "true is a list, but a numpy array or a torch tensor"),
    "metrics of two kinds": (lambda: ami(X.astype(int), torch.eye(6)), TypeError, "one kind on one device is expected"),
    "metrics of values": (
        lambda: ami(np.arange(5000)[None], np.arange(5000)[None]), ValueError, "are these labels, or values",
    ),
    "labels beyond int64": (
        lambda: ami(*[np.full((1, 2), 2**64 - 1, np.uint64)] * 2), ValueError, "numbers up to 9223",
    ),
    "an unknown average": (lambda: ami(*[np.eye(2, dtype=int)] * 2, average="mean"), ValueError, "one of max, arithme"),
    "a class that is not there": (lambda: top1_error(X, np.full(6, 6)), ValueError, "but 0 to 5 is expected for 6"),
    "a negative class": (lambda: top1_error(X, np.full(6, -1)), ValueError, "number the classes from 0"),
    "one class where two are due": (
        lambda: top2_error(X, np.zeros(6, int)), ValueError, "use top1_error for one class",
    ),
    "three classes": (
        lambda: classification_error(X, np.zeros((6, 3), int)), ValueError, "one or two objects per scene",
    ),
    "probabilities with NaN": (lambda: top1_error(X * math.nan, np.zeros(6, int)), ValueError, "training diverged"),
    # files of scenes
    "a file that is missing": (lambda: load("none.npz"), FileNotFoundError, "none.npz does not exist: check the path"),
    "a folder": (lambda: load("model"), ValueError, "model is not a file: pass a .npz, .npy or .h5 file"),
    "an empty file": (lambda: load(write(Path("x.npz"), b"")), ValueError, "x.npz is empty: write it again"),
    "text named .npz": (lambda: load(write(Path("x.npz"), "hello")), ValueError, "is not a whole .npz file"),
    "text named .npy": (lambda: load(write(Path("x.npy"), "hello")), ValueError, "is not a whole .npy array"),
    "text named .h5": (lambda: load(write(Path("x.h5"), "hello")), ValueError, "is not an HDF5 file"),
    "a picture": (lambda: load(write(Path("x.png"), b"\x89PNG")), ValueError, "ending '.png', expected .npz, .npy or"),
    "a .npy cut short": (lambda: load(write(Path("x.npy"), GOOD[:-1])), ValueError, "declares 9 bytes but 8 are there"),
    "a .npz cut short": (
        lambda: load(write(Path("x.npz"), pack(Path("y.npz"), x=GOOD).read_bytes()[:-30])),
        ValueError, "not a whole .npz",
    ),
    "a .h5 cut short": (
        lambda: load(write(Path("x.h5"), mischief.hdf5(Path("y.h5"), x=X).read_bytes()[:-400])),
        ValueError, "is not a whole HDF5 file",
    ),
    "a pickle in a .npy": (lambda: load(write(Path("x.npy"), TRAP)), TypeError, "nothing is ever unpickled"),
    "a pickle in a .npz": (lambda: load(pack(Path("x.npz"), x=TRAP)), TypeError, "nothing is ever unpickled"),
    "a pickle": (lambda: load(mischief.pickled(Path("x.npy"))), ValueError, "not a whole .npy array"),
    "a bomb of 100 GB": (lambda: load(mischief.bomb(Path("x.npz"))), ValueError, "unpacks to 100,059,539,874 bytes"),
    "a file that claims 100 GB": (
        lambda: load(mischief.liar(Path("x.npz"))), ValueError, "the limit is 17,179,869,184",
    ),
    "a .npy that claims 1 PB": (
        lambda: load(write(Path("x.npy"), mischief.header("(1000000, 1000000000)"))), ValueError, "but 0 are there",
    ),
    "HDF5 that claims 8 TB": (
        lambda: load(mischief.declared(Path("x.h5"), (10**6, 10**6))), ValueError, "the limit is",
    ),
    "HDF5 without x": (lambda: load(mischief.hdf5(Path("x.h5"), groups=X)), ValueError, "no array 'x'"),
    "HDF5 with other keys": (lambda: load(mischief.hdf5(Path("x.h5"), data=X)), ValueError, "'data', but no array"),
    "HDF5 of texts": (lambda: load(mischief.hdf5(Path("x.h5"), x=["a"])), TypeError, "dtype object, expected numbers"),
    "a .npz with other keys": (lambda: load(pack(Path("x.npz"), y=GOOD)), ValueError, "holds 'y', but no array 'x'"),
    "a .npz whose parts do not fit": (
        lambda: load(pack(Path("x.npz"), x=GOOD, classes=npy(np.zeros(2, int)))), ValueError, "2 rows, but x has 3",
    ),
    "too few scenes to train on": (lambda: look(pack(Path("x.npz"), x=GOOD)), ValueError, "too few to train on"),
    "scenes that are all alike": (lambda: look(scenes(x=np.ones((30, 4)))), ValueError, "there is nothing to group"),
    # models and runs
    "no model": (
        lambda: Tagger.load("none"), FileNotFoundError, "config.json does not exist: name a folder that holds",
    ),
    "a model's name misspelt": (lambda: Tagger.from_pretrained("shape"), ValueError, "there is no model 'shape'"),
    "a card that is no JSON": (
        lambda: write(Path("model/config.json"), "{") and Tagger.load("model"), ValueError, "is not JSON",
    ),
    "a card that is a list": (
        lambda: write(Path("model/config.json"), "[]") and Tagger.load("model"),
        ValueError, "holds a list, but an object",
    ),
    "a card nested without end": (
        lambda: write(Path("model/config.json"), "[" * 10**6) and Tagger.load("model"), ValueError, "nested too deeply",
    ),
    "a card of another format": (lambda: card(format=99), ValueError, "not a taggernet model card of format 1"),
    "a card without a model": (lambda: card(model=None), ValueError, "not a taggernet model card"),
    "a card with an unknown field": (lambda: card(model={"depth": 3}), ValueError, r"unknown fields \['depth'\]"),
    "a card with a field of another type": (lambda: card(model={"noise": "much"}), ValueError, "is not a number"),
    "a card with a number out of range": (lambda: card(model={"noise": 0.7}), ValueError, "noise=0.7 is out of range"),
    "a card of a gigantic model": (lambda: card(model={"widths": [10**9, 4]}), ValueError, "is out of range: give 2"),
    "weights of another shape": (lambda: card(model={"shape": [3, 3]}), ValueError, r"has shape .*, but its card says"),
    "weights missing": (lambda: weights(lambda w: w.pop("w")), ValueError, r"does not fit its card: missing \['w'\]"),
    "weights too many": (lambda: weights(lambda w: w.update(y=w["w"].clone())), ValueError, r"unknown \['y'\]"),
    "weights that are NaN": (lambda: weights(lambda w: w["w"].fill_(math.nan)), ValueError, "NaN or infinite values"),
    "weights that are integers": (lambda: weights(lambda w: w.update(w=w["w"].int())), ValueError, "expected floating"),
    "weights cut short": (
        lambda: write(Path("model/model.safetensors"), b"\x10") and Tagger.load("model"),
        ValueError, "is not a whole safe",
    ),
    "weights that are a pickle": (
        lambda: mischief.pickled_weights(Path("model/model.safetensors")) and Tagger.load("model"),
        ValueError, "is not a whole safetensors file",
    ),
    "a run that is missing": (lambda: tn.evaluate("none"), ValueError, "there is no model 'none'"),
    "a run's card without data": (lambda: run_card("data", name=3), ValueError, "name=3 is not a text"),
    "a run's card with a text for K": (
        lambda: run_card(None, groups="four"), ValueError, "groups='four' is not an int",
    ),
    "a run's card with an odd section": (lambda: run_card(None, runtime=[]), ValueError, "must be an object, not list"),
    "a run's card with an unknown field": (
        lambda: run_card("data", colour=1), ValueError, r"unknown fields \['colour'\]",
    ),
    "K = 10^6 in evaluation": (lambda: tn.evaluate("run", groups=10**6), ValueError, "give an integer from 1 to 64"),
    "T = 10^6 in evaluation": (lambda: tn.evaluate("run", iterations=10**6), ValueError, "integer from 1 to 1,000"),
    "99 objects": (lambda: tn.evaluate("run", objects=99), ValueError, "only about 6 of them are visible on 12 x 12"),
    "a recipe misspelt": (lambda: tn.recipe("shapes-layernrom"), ValueError, "did you mean shapes-layernorm?"),
    "a model for other scenes": (lambda: toy(shape=(5, 5)), ValueError, r"the scenes have shape \(12, 12\)"),
    "a class cost without labels": (
        lambda: train(replace(tn.recipe("texture-mnist-1-labels-1k"), data=tn.recipe("texture-mnist-1").data)),
        ValueError, "labels=0: say how many",
    ),
    # what cannot be written
    "scenes into no folder": (
        lambda: data.shapes(1).save("none/x.npz"), FileNotFoundError, "folder none does not exist",
    ),
    "scenes over a folder": (
        lambda: Path("d.npz").mkdir() or data.shapes(1).save("d.npz", overwrite=True), OSError, "cannot be written",
    ),
    "scenes over a file": (
        lambda: data.shapes(1).save(pack(Path("x.npz"), x=GOOD)),
        FileExistsError, "exists already: choose another name",
    ),
    "a model below a file": (lambda: BINARY.save("a-file/model"), OSError, "a-file/model cannot be written"),
    "a run below a file": (lambda: train(tn.recipe("small"), "a-file/run"), OSError, "choose another --out"),
    "ONNX below a file": (lambda: export(BINARY, "a-file/a.onnx"), OSError, "a-file cannot be written"),
    # downloads
    "a download cut short": (
        lambda: fetched(lambda h, good: mischief.reply(h, good[:9], len(good))),
        ConnectionError, "IncompleteRead",
    ),
    "a download cut short unsaid": (
        lambda: fetched(lambda h, g: mischief.reply(h, g[:9])), ConnectionError, "does not match the known hash",
    ),
    "a download of a wrong checksum": (
        lambda: fetched(lambda h, g: mischief.reply(h, g)), ConnectionError, "does not match the known hash",
    ),
    "a download without end": (
        lambda: fetched(lambda h, g: mischief.reply(h, g + bytes(10**6))), ConnectionError, "more than the",
    ),
    "a download that is not there": (
        lambda: fetched(lambda h, g: mischief.reply(h, b"no", code=404)), ConnectionError, "404",
    ),
}  # fmt: skip


def test_there_are_enough_cases() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_python_is_one_sentence(name: str, here: Path) -> None:
    wrong, error, words = WRONG[name]
    with pytest.raises(error, match=words) as caught:
        wrong()
    assert "\n" not in str(caught.value)
    assert not (here / mischief.MARK).exists()
    assert not (here / "out").exists(), "a run that cannot begin leaves nothing behind"


@pytest.mark.parametrize("wrong", ["nothing", "model.safetensors", "config.json"])
def test_a_model_from_the_hub_of_a_wrong_checksum_is_not_kept(
    wrong: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that stands in for the Hub and sends a file in which one byte was changed."""
    files = {path.name: path.read_bytes() for path in Path("model").iterdir()}
    with mischief.server(lambda handler: mischief.hub(handler, files, wrong)) as url:
        download = partial(huggingface_hub.snapshot_download, endpoint=url.rstrip("/"), cache_dir=here / "cache")
        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
        if wrong == "nothing":
            assert Tagger.from_pretrained("owner/name").group(X).groups == 4
            return
        with pytest.raises(OSError, match=f"{wrong} of 'owner/name' came with a wrong checksum and was not kept"):
            Tagger.from_pretrained("owner/name")
    assert not [path for path in (here / "cache").rglob(wrong) if path.is_file()]
