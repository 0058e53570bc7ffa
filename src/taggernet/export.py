"""A model as ONNX: one step, and the whole loop; batch, K and T stay free.

# B batch · K groups · N elements at P positions · T iterations · C classes

    step   x, z, fed, m [, iteration] [, prior]  ->  z_next, fed_next, m_next [, shares (B, K, C)] [, result]
    loop   x, start [, iterations]               ->  masks, reconstructions [, classes (B, C)]
    start  x, random                             ->  start; for models whose masks start from the scene

z, fed and reconstructions are (B, K, N), masks and ``start`` (B, K, P). N = P unless inputs have channels, which stand
side by side then, position by position. ``x`` is (B, N): the step's in the model's units, as it is one of many; the
loop's in the user's own, and so are its reconstructions. ``start`` holds standard normal numbers, whose softmax over K
are the first masks; its shape decides K. Groups that start alike would stay alike, so a start of zeros is replaced by a
random one. ``iterations`` is T and may be left out. The step begins with such masks and with z and fed at the data's
mean, to which z adds the scene's median for models with origin="scene". BatchNorm models depend on what shares their
batch, here as everywhere, unless their statistics are frozen. The step of a frozen model also takes ``iteration``,
counted from 1. Where masks start from the scene, a third file turns standard normal numbers, for the model's own K,
into the loop's ``start``; the step's ``prior`` is that start, times the model's tie for each iteration but the first,
of models that have a tie. ``result`` are the masks to show where they are not those of the loop (masks="posterior-
result").
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from taggernet._version import __version__
from taggernet.config.validate import MAX_ITERATIONS, check_count
from taggernet.fileio import make_folder, write_durably
from taggernet.nets.frozen import in_iteration
from taggernet.tag import State, step
from taggernet.tag.grouping import scene_median
from taggernet.tag.start import first_of_patch
from taggernet.tagger import Tagger

INSTALL = "pip install -e '.[onnx]' in a clone of taggernet"


class Step(nn.Module):
    """One iteration of the TAG loop."""

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, x: Tensor, z: Tensor, fed: Tensor, m: Tensor, iteration: Tensor | None = None, prior: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        model = self.model
        mapping = model.mapping_for_groups(m.shape[1])
        if iteration is not None:
            mapping = in_iteration(mapping, iteration)
        variant, before = model.variant, State(z=z, m=m, fed=fed, m_pre=m)
        origin = scene_median(x, variant.from_scene) if variant.from_scene else None
        state = step(mapping, model.likelihood, x, before, model.v, variant, prior, origin)
        shares = (model.class_shares(state),) if model.config.classes else ()
        result = (model.as_result(x, state).m,) if _has_result(model) else ()
        return (state.z, state.fed, state.m, *shares, *result)


def _has_result(model: Tagger) -> bool:
    """Whether the masks to show are others than the loop's."""
    return model.config.masks == "posterior-result"


class Start(nn.Module):
    """The first masks, before their softmax, of a model whose masks start from the scene."""

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, random: Tensor) -> Tensor:
        informed = self.model.informed_start(self.model.units.to_model(x))
        assert informed is not None
        return informed(random)


def export(
    model: Tagger, path: str | PathLike[str], iterations: int | None = None, *, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write NAME.onnx, the loop, NAME.step.onnx, one iteration, and where masks start from the scene NAME.start.onnx.

    Returns all of them. ``iterations`` is the loop's default T, the model's own unless given.
    """
    t = check_count("iterations", model.iterations if iterations is None else iterations, low=1, high=MAX_ITERATIONS)
    whole = Path(path)
    if whole.suffix.lower() != ".onnx":
        raise ValueError(f"{whole} does not end in .onnx: name the file like model.onnx")
    informed = model.config.start != "random"
    files = tuple(whole.with_name(whole.stem + end) for end in (".onnx", ".step.onnx", ".start.onnx")[: 2 + informed])
    for existing in files:
        if existing.exists() and not overwrite:
            raise FileExistsError(
                f"{existing} exists already: choose another name, or pass overwrite=True (--overwrite)"
            )
    make_folder(whole.parent)
    onnx = _onnx()
    one = _traced_step(model)
    protos = [_loop(one, model, t), one, *([_traced_start(model)] if informed else [])]
    for file, proto in zip(files, protos, strict=True):
        onnx.helper.set_model_props(proto, _metadata(model, t))
        onnx.checker.check_model(proto, full_check=True)
        content = proto.SerializeToString()
        write_durably(file, lambda temporary, content=content: temporary.write_bytes(content))
    return files


def _metadata(model: Tagger, iterations: int) -> dict[str, str]:
    """What a user of the file must know of the model: as text, as ONNX keeps it."""
    config = model.config
    known = {
        "taggernet": __version__, "shape": list(config.shape), "kind": config.kind, "groups": model.groups,
        "iterations": iterations, "offset": config.offsets or config.offset, "scale": config.scales or config.scale,
        "mean": config.mean, "classes": config.classes, "norm": config.norm, "channels": config.channels,
    }  # fmt: skip
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in known.items()}


def _onnx() -> Any:
    try:
        import onnx
        import onnxscript  # noqa: F401  which torch's exporter needs
    except ImportError:
        raise OSError(f"exporting needs onnx and onnxscript: {INSTALL}") from None
    return onnx


def _traced_step(model: Tagger) -> Any:
    """One iteration as ONNX."""
    config = model.config
    sizes = (config.elements, config.elements, config.positions)
    x, *groups = torch.zeros(2, config.elements), *(torch.zeros(2, 3, size) for size in sizes)
    batch, k = torch.export.Dim("batch"), torch.export.Dim("groups")
    inputs = {"x": (x, {0: batch})} | {
        name: (group, {0: batch, 1: k}) for name, group in zip(("z", "fed", "m"), groups, strict=True)
    }
    if config.frozen_iterations:
        inputs["iteration"] = (torch.tensor(1), {})
    if config.is_tied:
        inputs["prior"] = (torch.zeros_like(groups[2]), {0: batch, 1: k})
    outputs = ["z_next", "fed_next", "m_next", *(["shares"] if config.classes else [])]
    return _traced(Step(model), inputs, [*outputs, *(["result"] if _has_result(model) else [])])


def _traced_start(model: Tagger) -> Any:
    """The first masks as ONNX, for the model's own K: where clusters begin depends on those before."""
    config, batch = model.config, torch.export.Dim("batch")
    x, random = torch.zeros(2, config.elements), torch.zeros(2, model.groups, config.positions)
    return _traced(Start(model), {"x": (x, {0: batch}), "random": (random, {0: batch})}, ["start"])


def _traced(module: Step | Start, inputs: dict[str, tuple[Tensor, dict[int, Any]]], outputs: list[str]) -> Any:
    """A part of a model as ONNX; of every input an example, and its dimensions that stay free.

    Torch's own optimisation is off: it takes the 1e-10 that the norms add to a variance for nothing and leaves it out.
    """
    model = module.model
    device = model.w.device
    try:
        model.cpu()
        with _quietly():
            program = torch.onnx.export(
                module.eval(),
                kwargs={name: example for name, (example, _) in inputs.items()},
                input_names=list(inputs),
                output_names=outputs,
                dynamic_shapes={name: free for name, (_, free) in inputs.items()},
                dynamo=True,
                external_data=False,
                optimize=False,
                verbose=False,
            )
    finally:
        model.to(device)
    assert program is not None
    return _with_plain_casts(program.model_proto)


def _with_plain_casts(proto: Any) -> Any:
    """Casts to the type of another value name that type: onnxruntime warns of each cast that does not."""
    onnx = _onnx()
    graph = onnx.shape_inference.infer_shapes(proto).graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    for node in proto.graph.node:
        if node.op_type == "CastLike" and types.get(node.input[1]):
            node.CopyFrom(
                onnx.helper.make_node("Cast", node.input[:1], node.output, node.name, to=types[node.input[1]])
            )
    return proto


def _loop(one: Any, model: Tagger, iterations: int) -> Any:
    """The step as the body of ONNX's Loop, between the user's units and the model's.

    Names of its own begin with 'loop.', as the body sees them beside its own.
    """
    onnx, config = _onnx(), model.config
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    number, flag = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL
    elements, positions = ["batch", "groups", config.elements], ["batch", "groups", config.positions]
    mean = 1 / config.channels if config.kind == "categorical" else config.mean
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in one.graph.node]
    for each in nodes:
        each.input[:] = ["loop.x_in_units" if name == "x" else name for name in each.input]
    extra = [*(["shares"] if config.classes else []), *(["result"] if _has_result(model) else [])]
    if config.frozen_iterations:  # ONNX counts from 0
        nodes.insert(0, node("Add", ["loop.iteration", "loop.one"], ["iteration"]))
    if config.is_tied:
        nodes[:0] = [
            node("Cast", ["loop.iteration"], ["loop.before"], to=number),
            node("Pow", ["loop.tie", "loop.before"], ["loop.tied"]),
            node("Mul", ["loop.start", "loop.tied"], ["prior"]),
        ]
    body = onnx.helper.make_graph(
        [*nodes, node("Identity", ["loop.go_on"], ["loop.go_on_next"])],
        "iteration",
        [value("loop.iteration", onnx.TensorProto.INT64, []), value("loop.go_on", flag, [])]
        + [value(name, number, shape) for name, shape in (("z", elements), ("fed", elements), ("m", positions))],
        [value("loop.go_on_next", flag, []), *one.graph.output],
        value_info=list(one.graph.value_info),
    )
    constants = {
        "iterations": np.array(iterations, np.int64),
        "loop.always": np.array(True),
        "loop.groups_axis": np.array([1], np.int64),
        "loop.zero": np.array(0, np.float32),
        "loop.patches": first_of_patch(config.shape, config.start_patch).numpy(),
        "loop.mean": np.array(mean, np.float32),
        "loop.channels": np.array([1, 1, config.channels], np.int64),
        "loop.offset": np.array(config.offsets or config.offset, np.float32),
        "loop.scale": np.array(config.scales or config.scale, np.float32),
    }
    if config.frozen_iterations:
        constants["loop.one"] = np.array(1, np.int64)
    if config.is_tied:
        constants["loop.tie"] = np.array(config.tie, np.float32)
    if config.origin == "scene":
        constants |= {
            "loop.by_position": np.array([0, config.positions, config.channels], np.int64),
            "loop.half": np.array([(config.positions - 1) // 2 + 1], np.int64),
            "loop.middle": np.array([(config.positions - 1) // 2], np.int64),
            "loop.every_position": np.array([1, config.positions, 1], np.int64),
            "loop.one_group": np.array([0, 1, config.elements], np.int64),
        }
    if extra:
        constants |= {"loop.last": np.array(-1, np.int64)}
    around = [
        node("Sub", ["x", "loop.offset"], ["loop.x_centred"]),
        node("Div", ["loop.x_centred", "loop.scale"], ["loop.x_in_units"]),
        # Groups that start alike stay alike: such a start, e.g. of zeros, is replaced by a random one.
        node("RandomNormalLike", ["start"], ["loop.random"], seed=0.0),
        node("ReduceMax", ["start", "loop.groups_axis"], ["loop.most"], keepdims=1),
        node("ReduceMin", ["start", "loop.groups_axis"], ["loop.least"], keepdims=1),
        node("Sub", ["loop.most", "loop.least"], ["loop.differences"]),
        node("ReduceMax", ["loop.differences"], ["loop.difference"], keepdims=0),
        node("Greater", ["loop.difference", "loop.zero"], ["loop.groups_differ"]),
        node("Where", ["loop.groups_differ", "start", "loop.random"], ["loop.every_start"]),
        node("Gather", ["loop.every_start", "loop.patches"], ["loop.start"], axis=2),
        node("Softmax", ["loop.start"], ["loop.first_m"], axis=1),
        node("Shape", ["start"], ["loop.start_shape"]),
        node("Mul", ["loop.start_shape", "loop.channels"], ["loop.first_shape"]),
        node("Expand", ["loop.mean", "loop.first_shape"], ["loop.first_fed"]),
        *_first_z(node, config.origin == "scene"),
        node(
            "Loop",
            ["iterations", "loop.always", "loop.first_z", "loop.first_fed", "loop.first_m"],
            ["loop.last_z", "loop.last_fed", "loop.last_m", *(f"loop.all_{name}" for name in extra)],
            body=body,
        ),
        *(node("Gather", [f"loop.all_{name}", "loop.last"], [f"loop.last_{name}"], axis=0) for name in extra),
        node("Identity", ["loop.last_result" if _has_result(model) else "loop.last_m"], ["masks"]),
        node("Mul", ["loop.last_z", "loop.scale"], ["loop.z_scaled"]),
        node("Add", ["loop.z_scaled", "loop.offset"], ["reconstructions"]),
    ]
    outputs = [value("masks", number, positions), value("reconstructions", number, elements)]
    if config.classes:
        around.append(node("ReduceSum", ["loop.last_shares", "loop.groups_axis"], ["classes"], keepdims=0))
        outputs.append(value("classes", number, ["batch", config.classes]))
    inputs = [value("x", number, ["batch", config.elements]), value("start", number, positions)]
    graph = onnx.helper.make_graph(
        around,
        "tagger",
        [*inputs, value("iterations", onnx.TensorProto.INT64, [])],  # with a default below, so it may be left out
        outputs,
        [*one.graph.initializer, *(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())],
    )
    return onnx.helper.make_model(
        graph, opset_imports=list(one.opset_import), ir_version=one.ir_version, functions=list(one.functions)
    )


def _first_z(node: Any, from_scene: bool) -> list[Any]:
    """Nodes that make the first z out of the first that is fed back: the same, or with the scene's median added."""
    if not from_scene:
        return [node("Identity", ["loop.first_fed"], ["loop.first_z"])]
    return [
        node("Reshape", ["loop.x_in_units", "loop.by_position"], ["loop.values"]),
        node("TopK", ["loop.values", "loop.half"], ["loop.lower", "loop.lower_at"], axis=1, largest=0, sorted=1),
        node("Gather", ["loop.lower", "loop.middle"], ["loop.median"], axis=1),
        node("Tile", ["loop.median", "loop.every_position"], ["loop.medians"]),
        node("Reshape", ["loop.medians", "loop.one_group"], ["loop.origin"]),
        node("Add", ["loop.first_fed", "loop.origin"], ["loop.first_z"]),
    ]


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporter prints progress and warns of its own workings; errors still come through."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def session(path: str | PathLike[str], threads: int = 0) -> Any:
    """An onnxruntime session on the CPU; ``threads`` 0 leaves the choice to it."""
    try:
        import onnxruntime
    except ImportError:
        raise OSError(f"running an exported model needs onnxruntime: {INSTALL}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # it warns that iterations has a default
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
