"""Anything at all: what is handed in is used rightly or refused in a sentence; no crash, no hang, no wrong result.

The soak (``make soak``) looks at twenty times as many examples.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mischief import MARK, TRAP, pack
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from taggernet import Tagger, TaggerConfig, cli, data
from taggernet.config.run import from_json, to_json
from taggernet.data import Scenes, load
from taggernet.data.mnist import parse_idx
from taggernet.metrics import adjusted_mutual_information, adjusted_rand_index, classification_error
from taggernet.model_io import CARD, WEIGHTS
from taggernet.recipes import recipe

pytestmark = pytest.mark.usefixtures("without_typecheck")

REFUSALS = (ValueError, TypeError, OSError)
BINARY = Tagger(TaggerConfig(shape=(2, 3), widths=(8, 4), norm="layer"))
REAL = Tagger(TaggerConfig(shape=(2, 3), kind="real", widths=(8, 4), classes=3))
SCENES = data.shapes(5, objects=2, size=10, style="small")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
counts = st.sampled_from([1, 2, 3, 5]) | st.integers() | st.sampled_from([0, -1, 64, 65, 1001, 10**6, 2**64]) | anything


def used_or_refused(call: Callable[[], Any]) -> Any:
    """What the call returns, or None where it refuses with a message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return call()
    except REFUSALS as refusal:
        if not str(refusal).strip():
            raise AssertionError(f"{type(refusal).__name__} without a message") from refusal
        return None


@contextlib.contextmanager
def a_folder() -> Iterator[Path]:
    """A fresh folder to stand in, in which no trap may be sprung."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
            assert not Path(MARK).exists(), "something was unpickled"
        finally:
            os.chdir(before)


def check_scenes(scenes: Scenes) -> None:
    """What everything behind the border relies on."""
    assert len(scenes) > 0
    assert scenes.x.dtype == (np.uint8 if scenes.kind == "binary" else np.float32)
    assert np.isfinite(scenes.x).all()
    assert scenes.kind == "real" or scenes.x.max() <= 1
    assert scenes.groups is None or (scenes.groups.shape == scenes.x.shape and scenes.groups.min() >= 0)
    assert scenes.classes is None or (len(scenes.classes) == len(scenes) and scenes.classes.min() >= -1)


# --- loaders ------------------------------------------------------------------------------------------------------


@given(content=st.binary(max_size=300), ending=st.sampled_from([".npz", ".npy", ".h5", ".hdf5", ".txt", ""]))
@example(content=b"\x93NUMPY\x01\x00", ending=".npy")
@example(content=b"PK\x05\x06" + bytes(18), ending=".npz")
@example(content=b"\x89HDF\r\n\x1a\n", ending=".h5")
@example(content=TRAP, ending=".npy")
def test_any_bytes_as_a_file(content: bytes, ending: str) -> None:
    with a_folder() as folder:
        (folder / f"x{ending}").write_bytes(content)
        found = used_or_refused(lambda: load(folder / f"x{ending}"))
        if found is not None:
            check_scenes(found)


def saved(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        SCENES.save(Path(name) / f"x{ending}")
        return (Path(name) / f"x{ending}").read_bytes()


GOOD_FILES = {ending: saved(ending) for ending in (".npz", ".h5")}
damages = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=4)


@given(ending=st.sampled_from(sorted(GOOD_FILES)), damage=damages, cut=st.none() | st.integers(0, 10**6))
def test_a_damaged_file_is_refused_or_still_right(ending: str, damage: list[tuple[int, int]], cut: int | None) -> None:
    content = bytearray(GOOD_FILES[ending])
    for place, bits in damage:
        content[place % len(content)] ^= bits
    with a_folder() as folder:
        (folder / f"x{ending}").write_bytes(content if cut is None else content[: cut % len(content)])
        found = used_or_refused(lambda: load(folder / f"x{ending}"))
    if found is not None:
        check_scenes(found)
        assert np.array_equal(found.x, SCENES.x)
        assert found.groups is None or np.array_equal(found.groups, SCENES.groups)


@given(
    arrays=st.dictionaries(
        st.sampled_from(["x", "groups", "classes", "kind", "details_a", "y"]),
        hnp.arrays(hnp.scalar_dtypes() | st.just(np.dtype("U4")), hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)),
        min_size=1,
        max_size=4,
    )
)
def test_any_arrays_in_a_file(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    with a_folder() as folder:
        np.savez(folder / "x.npz", **arrays)  # type: ignore[arg-type]
        found = used_or_refused(lambda: load(folder / "x.npz"))
    if found is not None:
        check_scenes(found)
        with np.errstate(over="ignore"):
            assert np.array_equal(found.x, arrays["x"].astype(found.x.dtype))


@given(content=st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: b"\0\0\x08\x01\0\0\0\x04" + rest))
def test_any_bytes_as_mnist(content: bytes) -> None:
    found = used_or_refused(lambda: parse_idx(content, "the digits"))
    assert found is None or content.endswith(found.tobytes())


# --- cards and weights --------------------------------------------------------------------------------------------


def edited(content: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """A copy of nested objects in which the value at a path is another one."""
    copy: dict[str, Any] = json.loads(json.dumps(content))
    place = copy
    for name in path[:-1]:
        if isinstance(place.get(name), dict):
            place = place[name]
    place[path[-1]] = value
    return copy


with tempfile.TemporaryDirectory() as _folder:
    BINARY.save(_folder)
    MODEL_CARD: dict[str, Any] = json.loads((Path(_folder) / CARD).read_text())
    MODEL_WEIGHTS = (Path(_folder) / WEIGHTS).read_bytes()
model_fields = st.sampled_from([*(["model", name] for name in MODEL_CARD["model"]), ["model"], ["format"]])


@given(path=model_fields, value=anything | st.lists(st.integers(), max_size=4))
def test_a_card_with_any_field_is_used_or_refused(path: list[str], value: Any) -> None:
    with a_folder() as folder:
        (folder / CARD).write_text(json.dumps(edited(MODEL_CARD, path, value)))
        (folder / WEIGHTS).write_bytes(MODEL_WEIGHTS)
        model = used_or_refused(lambda: Tagger.load(folder))
        if model is not None:
            out = used_or_refused(lambda: model.group(np.eye(6)))
            assert out is None or np.isfinite(out.masks).all()


@given(damage=damages, cut=st.none() | st.integers(0, 10**6))
def test_damaged_weights_are_refused_or_finite(damage: list[tuple[int, int]], cut: int | None) -> None:
    content = bytearray(MODEL_WEIGHTS)
    for place, bits in damage:
        content[place % len(content)] ^= bits
    with a_folder() as folder:
        (folder / CARD).write_text(json.dumps(MODEL_CARD))
        (folder / WEIGHTS).write_bytes(content if cut is None else content[: cut % len(content)])
        model = used_or_refused(lambda: Tagger.load(folder))
    assert model is None or all(torch.isfinite(weights).all() for weights in model.parameters())


RUN_CARD = to_json(recipe("small"))
run_fields = st.sampled_from(
    [[section, name] for section in ("data", "optimiser", "runtime", "model") for name in RUN_CARD[section]]
    + [[name] for name in RUN_CARD]
    + [["y"], ["data", "y"]]
)


@given(path=run_fields, value=anything)
def test_a_runs_card_with_any_field_is_used_or_refused(path: list[str], value: Any) -> None:
    content = edited(RUN_CARD, path, value)
    config = used_or_refused(lambda: from_json(content, "config.json"))
    if config is not None:
        assert to_json(config).keys() == RUN_CARD.keys()
        assert 1 <= config.groups <= 64
        assert 1 <= config.iterations <= 1000


# --- group --------------------------------------------------------------------------------------------------------

inputs = hnp.arrays(
    hnp.scalar_dtypes() | hnp.array_dtypes(max_size=2),
    st.sampled_from([(2, 6), (1, 2, 3), (3, 3, 2)]) | hnp.array_shapes(min_dims=0, max_dims=3, max_side=7),
)
bits = hnp.arrays(st.sampled_from([bool, np.uint8, np.float32, np.int64]), (2, 2, 3), elements=st.sampled_from([0, 1]))


@given(x=bits | inputs | anything, groups=counts, iterations=counts, seed=counts, batch=counts, model=st.booleans())
def test_group_takes_anything_or_says_why_not(
    x: Any, groups: Any, iterations: Any, seed: Any, batch: Any, model: bool
) -> None:
    before = x.copy() if isinstance(x, np.ndarray) else None
    tagger = BINARY if model else REAL
    out = used_or_refused(lambda: tagger.group(x, groups, iterations, seed=seed, batch_size=batch))
    if before is not None:
        assert before.tobytes() == x.tobytes(), "the caller's array was changed"
    if out is not None:
        n = len(np.asarray(x))
        assert out.masks.shape == (n, groups, *np.asarray(x).shape[1:])
        assert len(out.history) == iterations + 1
        np.testing.assert_allclose(out.masks.sum(1), 1, atol=1e-5)
        assert np.isfinite(out.reconstructions).all()
        assert set(np.unique(out.labels)) <= set(range(groups))


# --- metrics ------------------------------------------------------------------------------------------------------

shapes = st.sampled_from([(2, 5), (1, 3), (2, 2, 2), (3,), (0, 4), (2, 0), ()])
labels = st.tuples(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.boolean_dtypes(), shapes).flatmap(
    lambda kind: hnp.arrays(kind[0], kind[1]) | hnp.arrays(kind[0], kind[1], elements=st.integers(0, 1))
)


@given(true=labels | inputs | anything, pred=labels | inputs | anything, unscored=st.none() | st.integers() | anything)
def test_agreement_of_anything_is_scikit_learns_or_refused(true: Any, pred: Any, unscored: Any) -> None:
    scores = {
        adjusted_mutual_info_score: used_or_refused(
            lambda: adjusted_mutual_information(true, pred, unscored, average="arithmetic")
        ),
        adjusted_rand_score: used_or_refused(lambda: adjusted_rand_index(true, pred, unscored)),
    }
    for oracle, found in scores.items():
        if found is None:
            continue
        assert found.shape == (len(true),)
        assert (found <= 1 + 1e-9).all()
        for one, left, right in zip(found, map(np.ravel, true), map(np.ravel, pred), strict=True):
            kept = np.ones(left.shape, bool) if unscored is None else np.array([int(v) != unscored for v in left], bool)
            if kept.sum() > len(np.unique(left[kept])) and kept.sum() > len(np.unique(right[kept])):
                assert one == pytest.approx(oracle(left[kept], right[kept]), abs=1e-9)


@given(
    probabilities=hnp.arrays(hnp.floating_dtypes(), shapes | st.just((2, 3))) | inputs | anything,
    classes=labels | hnp.arrays(np.int64, (2,), elements=st.integers(-1, 3)) | anything,
)
def test_errors_of_anything_are_shares_or_refused(probabilities: Any, classes: Any) -> None:
    found = used_or_refused(lambda: classification_error(probabilities, classes))
    if found is not None:
        assert found.shape == (len(probabilities),)
        assert set(found.tolist()) <= {0.0, 0.5, 1.0}


# --- the command line ---------------------------------------------------------------------------------------------

OPTIONS = [
    "--out", "--groups", "--iterations", "--objects", "--split", "--device", "--json", "--n", "--seed", "--overwrite",
    "--lr", "--batch", "--widths", "--shape", "--noise", "--seeds", "--updates", "--name", "--mode", "--kind", "--help",
    "--debugg", "-h", "-x", "--",
]  # fmt: skip
VALUES = [
    "0", "-1", "3", "2.5", "nan", "inf", "1e400", "10000000000000", "", " ", "x", "x.npz", "none/x.npz", "a-file/x.h5",
    "cpu", "cuda:9", "toaster", "test", "é", "\x00", "\ud800", "a" * 300, "[]", "None", "../..", "~", "*", "small",
]  # fmt: skip
COMMANDS = ["train", "evaluate", "data", "demo", "reproduce", "explore", "export", "trian", ""]
words = st.sampled_from(OPTIONS) | st.sampled_from(VALUES) | st.text(max_size=6)
NAMES = ["small", "shapes", "texture-mnist-2", "run", "a-file", "table1", "smal", ""]


@given(
    command=st.sampled_from(COMMANDS) | st.text(max_size=5),
    name=st.sampled_from(NAMES),
    rest=st.lists(words, max_size=6),
)
@example(command="evaluate", name="run", rest=["--groups", "99999999999999999999"])
@example(command="data", name="shapes", rest=["--out", "\x00.npz"])
@example(command="train", name="small", rest=["--out", "\ud800"])
@settings(max_examples=3 * settings.default.max_examples)  # type: ignore[union-attr]
def test_any_arguments_end_in_a_status_and_two_lines(command: str, name: str, rest: list[str]) -> None:
    """Parsing and checking are real; what would train, draw or serve for minutes is left out."""
    out, err = io.StringIO(), io.StringIO()
    patch = pytest.MonkeyPatch()
    with a_folder(), patch.context() as patched, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        Path("a-file").write_text("hello")
        for name_of_command in ("demo", "explore", "export"):
            options = cli.COMMANDS[name_of_command][0]
            patched.setitem(cli.COMMANDS, name_of_command, (options, lambda options: None))
        patched.setattr("taggernet.training.train_to_end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        try:
            status = cli.main([command, name, *rest])
        except SystemExit as end:
            status = int(end.code or 0)
    assert status in (0, 2, 130)
    assert "Traceback" not in err.getvalue()
    assert "unexpected error" not in err.getvalue()
    if status == 2:
        assert err.getvalue().startswith("taggernet: ")
        assert 1 <= len(err.getvalue().splitlines()) <= 2, err.getvalue()


def test_a_trap_among_good_arrays_is_not_sprung() -> None:
    with a_folder() as folder:
        path = pack(folder / "x.npz", x=GOOD_FILES[".npz"][:10], details_a=TRAP)
        assert used_or_refused(lambda: load(path)) is None
