"""Nothing that is loaded runs, the page lets nobody else in, and nothing is asked of the network unbidden.

What the page refuses over HTTP (other files, large requests, numbers out of bounds) is in tests/explorer.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mischief
import numpy as np
import pytest

import taggernet as tn
from taggernet import Tagger, TaggerConfig
from taggernet.data import load, mnist
from taggernet.data.lazy import open_data
from taggernet.explorer.shown_model import shown_model
from taggernet.fileio import read_tensors
from taggernet.training import train
from taggernet.training.checkpoint import load as load_checkpoint

pytestmark = pytest.mark.usefixtures("without_typecheck")
PACKAGE = Path(tn.__file__).parent
ROOT = Path(__file__).parents[2]

# --- no pickle, no eval -------------------------------------------------------------------------------------------

UNPICKLERS = {
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
    "jsonpickle",
}
RUNNERS = {"eval", "exec", "compile", "__import__"}
LOADERS = {
    "torch.load",
    "torch.jit.load",
    "torch.package",
    "pandas.read_pickle",
    "runpy.run_path",
    "os.system",
    "os.popen",
}
MUST_SAY_NO_PICKLE = ("np.load", "numpy.load", "read_array", "np.lib.format.open_memmap", "np.fromfile")


def dangers(source: str) -> Iterator[str]:
    """What a piece of Python does that could run what it reads."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"line {node.lineno}: import {m}" for m in modules if m.split(".")[0] in UNPICKLERS)
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in RUNNERS or called.removeprefix("builtins.") in RUNNERS or called in LOADERS:
            yield f"line {node.lineno}: {called}"
        options = {option.arg: option.value for option in node.keywords}
        allowed = options.get("allow_pickle")
        refuses = isinstance(allowed, ast.Constant) and allowed.value is False
        if (called.endswith(MUST_SAY_NO_PICKLE) or "allow_pickle" in options) and not refuses:
            yield f"line {node.lineno}: {called} without allow_pickle=False"
        if isinstance(options.get("shell"), ast.Constant) and options["shell"].value:  # type: ignore[attr-defined]
            yield f"line {node.lineno}: a shell"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_source_of_the_package_unpickles_or_evaluates(path: Path) -> None:
    assert list(dangers(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from dill import loads", "eval('1')", "exec(x)", "builtins.eval(x)", "torch.load(f)",
     "np.load(f)", "np.load(f, allow_pickle=True)", "np.lib.format.read_array(f)", "subprocess.run(x, shell=True)",
     "__import__(x)", "numpy.load(f, allow_pickle=flag)", "os.system(x)"],
)  # fmt: skip
def test_the_search_finds_what_it_is_for(source: str) -> None:
    assert len(list(dangers(source))) == 1
    assert list(dangers("model.eval(); re.compile(x); torch.compile(x); np.load(f, allow_pickle=False)")) == []


# --- files that mean no good --------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good model to spoil, in which no trap may have been sprung at the end."""
    monkeypatch.chdir(tmp_path)
    Tagger(TaggerConfig(shape=(2, 3), widths=(8, 4), norm="layer")).save("model")
    return tmp_path


def spoiled_model(name: str, spoil: Callable[[Path], Any]) -> Any:
    spoil(Path("model") / name)
    return Tagger.from_pretrained("model")


def spoiled_checkpoint() -> Any:
    config = tn.recipe("small")
    small = replace(
        config,
        model=replace(config.model, widths=(8, 4)),
        data=replace(config.data, valid=10, test=10),
        optimiser=replace(config.optimiser, updates=1, batch=2, warmup=0),
        runtime=replace(config.runtime, device="cpu", progress=False, tensorboard=False, evaluate_scenes=2),
    )
    train(small, "run")
    folder = Path("run/checkpoints/00000001")
    mischief.pickled_weights(folder / "seed-0.safetensors")
    with pytest.raises(ValueError, match="missing or damaged"):
        load_checkpoint(folder, small, "cpu")
    return read_tensors(folder / "seed-0.safetensors")  # as if its digest had been forged as well


def spoiled_mnist() -> Any:
    Path("mnist").mkdir()
    Path("mnist/t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(mischief.pickled(Path("p")).read_bytes()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TAGGERNET_DATA", str(Path("mnist").resolve()))
        return mnist("test", download=False)


TRAPS: dict[str, Callable[[], Any]] = {
    "an object array": lambda: load(mischief.write(Path("x.npy"), mischief.TRAP)),
    "an object array in a .npz": lambda: load(mischief.pack(Path("x.npz"), x=mischief.GOOD, groups=mischief.TRAP)),
    "an object array as a detail": lambda: load(mischief.pack(Path("x.npz"), x=mischief.GOOD, details_a=mischief.TRAP)),
    "a pickle named .npy": lambda: load(mischief.pickled(Path("x.npy"))),
    "a pickle named .npz": lambda: load(mischief.pickled(Path("x.npz"))),
    "a pickle named .h5": lambda: load(mischief.pickled(Path("x.h5"))),
    "a pickle to train on": lambda: open_data(mischief.pickled(Path("x.npy"))),
    "torch's archive named .npz": lambda: load(mischief.pickled_weights(Path("x.npz"))),
    "a header that is code": lambda: load(mischief.write(Path("x.npy"), mischief.header("__import__('os')"))),
    "weights that are torch's archive": lambda: spoiled_model("model.safetensors", mischief.pickled_weights),
    "weights that are a pickle": lambda: spoiled_model("model.safetensors", mischief.pickled),
    "a card that is a pickle": lambda: spoiled_model("config.json", mischief.pickled),
    "a card that is code": lambda: spoiled_model(
        "config.json", lambda path: path.write_text('{"format": 1, "model": {"shape": "__import__(\'os\')"}}')
    ),
    "a checkpoint that is torch's archive": spoiled_checkpoint,
    "MNIST that is a pickle": spoiled_mnist,
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_refused_and_not_sprung(name: str, here: Path) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        TRAPS[name]()
    assert str(caught.value)
    assert not list(here.rglob(mischief.MARK))


def test_the_trap_is_a_trap(here: Path) -> None:
    """Unpickled, it does leave its mark; so the tests above would notice."""
    np.load(mischief.write(here / "x.npy", mischief.TRAP), allow_pickle=True)
    assert (here / mischief.MARK).exists()


def test_a_run_names_no_file_to_execute_or_overwrite(here: Path) -> None:
    """Seeds and names in a stranger's config.json cannot lead out of its folder."""
    stranger = json.loads((here / "model" / "config.json").read_text())
    stranger["card"] = {"recipe": "../../etc/passwd", "seed": "../../x"}
    (here / "model" / "config.json").write_text(json.dumps(stranger))
    before = sorted(str(path) for path in here.rglob("*"))
    assert Tagger.from_pretrained("model").group(np.eye(6)).groups == 4
    assert sorted(str(path) for path in here.rglob("*")) == before


# --- the page -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(129, 4), (4, 129), (3, 4, 5), (64,)])
def test_pictures_that_are_too_large_are_not_shown(shape: tuple[int, ...], tmp_path: Path) -> None:
    model = Tagger(TaggerConfig(shape=shape, widths=(8, 4)))
    for named in (model, str(model.save(tmp_path / "model"))):
        with pytest.raises(ValueError, match="the page shows"):
            shown_model(named)


# --- the network --------------------------------------------------------------------------------------------------

A_DAY = """
import numpy as np, taggernet as tn
from dataclasses import replace
from taggernet.cli import main
scenes = tn.data.shapes(40, objects=2, size=12, style="small")
scenes.save("x.npz"), tn.data.load("x.npz"), tn.data.fixture_digits("test")
small = tn.recipe("small")
run = tn.train(replace(
    small, model=replace(small.model, widths=(8, 4)), data=replace(small.data, valid=10, test=10),
    optimiser=replace(small.optimiser, updates=2, batch=4, warmup=0),
    runtime=replace(small.runtime, device="cpu", progress=False, evaluate_scenes=4),
), "run")
out = tn.Tagger.from_pretrained("run").group(scenes.x)
tn.metrics.adjusted_mutual_information(scenes.groups, out.labels)
assert main(["evaluate", "run", "--device", "cpu"]) == 0
assert main(["export", "no-such-model", "--to", "x.onnx"]) == 2
import huggingface_hub, taggernet.estimators, paper.figure4
"""
ASKED = """
import taggernet as tn
for ask in (lambda: tn.Tagger.from_pretrained("someone/some-model"), lambda: tn.data.mnist("test")):
    try:
        ask()
    except OSError as refusal:
        print(refusal)
"""


def reached(program: str, folder: Path) -> tuple[list[str], str]:
    """The hosts that a program tried to reach, and what it printed."""
    log = folder / "reached"
    settings = {name: value for name, value in os.environ.items() if name != "TAGGERNET_DATA"} | {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "tests" / "offline", PACKAGE.parent, ROOT))),
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder), "HF_HOME": str(folder), "OMP_NUM_THREADS": "1",
        "TAGGERNET_REACHED_LOG": str(log),
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=settings, capture_output=True, text=True, timeout=250
    )
    assert ended.returncode == 0, ended.stderr
    return (log.read_text().split() if log.exists() else []), ended.stdout


def test_an_ordinary_day_asks_nothing_of_the_network(tmp_path: Path) -> None:
    assert reached(A_DAY, tmp_path)[0] == []


def test_the_network_is_asked_for_a_hub_id_and_for_mnist(tmp_path: Path) -> None:
    """And so the test above would notice."""
    hosts, said = reached(ASKED, tmp_path)
    assert "huggingface.co" in hosts
    assert "ossci-datasets.s3.amazonaws.com" in hosts
    assert "could not be downloaded from the Hub" in said
    assert "could not be downloaded" in said


def test_every_version_that_is_audited_is_pinned() -> None:
    """``make audit`` looks up the very versions that are installed."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]
    assert len(pins) > 50
    assert all("==" in line for line in pins)
    assert "pip-audit --strict" in (ROOT / "Makefile").read_text()
