"""Passes over compiled graphs: the weight gradients of the T iterations as one matrix product.

    x_1' g_1 + ... + x_T' g_T  =  [x_1; ...; x_T]' [g_1; ...; g_T]

Every iteration uses the same matrices, so autograd makes T gradients of each and adds them. Stacking the factors first
spares T writes and reads of a whole weight matrix, and lets the product run over T times as many rows. It costs a
copy of the factors, so small matrices are left as they are. A second pass spares the copy of those g that our own
kernels make (fast/ops.py): they write them where they belong in the stack.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from taggernet.fast import ops
from taggernet.fast.ops import INTO

aten = torch.ops.aten
PRODUCTS = (aten.mm.default, aten.bmm.default)


def compiler_options() -> dict[str, Any] | None:
    """Options of torch.compile for an update, with these passes; None where this PyTorch's Inductor takes no passes."""
    try:
        from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
    except ImportError:
        return None

    class Pass(CustomGraphPass):
        def __init__(self, change: Callable[[fx.Graph], int]) -> None:
            self.change = change

        def __call__(self, graph: fx.Graph) -> None:
            self.change(graph)

        def uuid(self) -> object:
            """What the cache of compiled code knows it by."""
            return get_hash_for_files((__file__, ops.__file__))

    # Rows padded to 128 bytes would only be copied back: the kernels of fast/ops.py want them dense.
    return {
        "post_grad_custom_pre_pass": Pass(merge_gradients),
        "post_grad_custom_post_pass": Pass(write_into_stacks),
        "comprehensive_padding": False,
    }


def _is_call(node: fx.Node, *targets: object) -> bool:
    return node.op == "call_function" and node.target in targets


def _is_sum(node: fx.Node) -> bool:
    return _is_call(node, aten.add.Tensor) and not node.kwargs and all(isinstance(a, fx.Node) for a in node.args)


def _terms(node: fx.Node) -> Iterator[fx.Node]:
    """The leaves of a tree of additions whose inner nodes nobody else reads."""
    for part in node.args:
        assert isinstance(part, fx.Node)
        if _is_sum(part) and len(part.users) == 1:
            yield from _terms(part)
        else:
            yield part


def _value(node: fx.Node) -> Tensor:
    """The fake tensor that stands for a node's result."""
    value: Tensor = node.meta["val"]
    return value


def _pays(left: Tensor, right: Tensor) -> bool:
    """Whether writing and adding this product's result moves more memory than copying its factors x' and g."""
    inputs, rows = left.shape[-2:]
    outputs = right.shape[-1]
    return bool(inputs * outputs > rows * (inputs + outputs))


def _stacked(graph: fx.Graph, nodes: Sequence[fx.Node]) -> fx.Node:
    """Their rows below each other."""
    node = graph.call_function(aten.cat.default, (list(nodes), -2))
    node.meta["val"] = torch.cat([_value(part) for part in nodes], -2)
    return node


def _transposed(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The node's last two dimensions exchanged; what was just transposed is taken as it was before."""
    dims = [*range(_value(node).ndim)]
    dims[-2:] = dims[-1], dims[-2]
    if _is_call(node, aten.permute.default) and node.args[1] == dims:
        before = node.args[0]
        assert isinstance(before, fx.Node)
        return before
    new = graph.call_function(aten.permute.default, (node, dims))
    new.meta["val"] = _value(node).permute(dims)
    return new


def merge_gradients(graph: fx.Graph) -> int:
    """Rewrite the graph in place; returns how many sums of products became one product."""
    merged = 0
    for node in reversed(list(graph.nodes)):
        inner = len(node.users) == 1 and all(_is_sum(user) for user in node.users)
        if not _is_sum(node) or inner:
            continue
        terms = list(_terms(node))
        target: Any = terms[0].target
        if not all(_is_call(term, *PRODUCTS) and term.target == target and len(term.users) == 1 for term in terms):
            continue
        pairs: list[Any] = [term.args[:2] for term in terms]
        if not all(_pays(_value(left), _value(right)) for left, right in pairs):
            continue
        with graph.inserting_before(node):
            x = _stacked(graph, [_transposed(graph, left) for left, _ in pairs])
            g = _stacked(graph, [right for _, right in pairs])
            product = graph.call_function(target, (_transposed(graph, x), g))
            product.meta["val"] = _value(node)
        node.replace_all_uses_with(product)
        merged += 1
    graph.eliminate_dead_code()
    graph.lint()
    return merged


def _makers(stack: fx.Node) -> list[fx.Node] | None:
    """The operations whose results the parts of a stack are, if they can write into it."""
    if not _is_call(stack, aten.cat.default) or len(stack.args) != 2:
        return None
    parts: Any = stack.args[0]
    dim = stack.args[1]
    if dim not in (-2, _value(stack).ndim - 2) or len({_value(part).shape for part in parts}) != 1:
        return None
    makers = []
    for part in parts:
        maker = part.args[0] if _is_call(part, operator.getitem) else None
        if maker is None or maker.target not in INTO or part.args[1] != INTO[maker.target][1]:
            return None
        makers.append(maker)
    return makers if len(set(makers)) == len(makers) else None


def write_into_stacks(graph: fx.Graph) -> int:
    """Let operations write into a stack what was copied there; returns how many stacks are filled so.

    The graph is no longer free of side effects then: this must be the last pass.
    """
    filled = 0
    for cat in list(graph.nodes):
        makers = _makers(cat)
        if makers is None:
            continue
        value = _value(cat)
        with graph.inserting_before(min(makers)):  # the first in the graph
            stack = graph.call_function(
                aten.empty.memory_format, (list(value.shape),), {"dtype": value.dtype, "device": value.device}
            )
            stack.meta["val"] = value
        for index, maker in enumerate(makers):
            _redirect(graph, maker, stack, index)
        cat.replace_all_uses_with(stack)
        graph.erase_node(cat)
        filled += 1
    graph.eliminate_dead_code()
    graph.lint()
    return filled


def _redirect(graph: fx.Graph, maker: fx.Node, stack: fx.Node, index: int) -> None:
    """Replace an operation by the one that writes into the stack, and its result by that part of the stack."""
    target, which = INTO[maker.target]
    values = list(maker.meta["val"])
    rows = values[which].shape[-2]
    with graph.inserting_before(maker):
        writer = graph.call_function(target, (stack, index, *maker.args), maker.kwargs)
        writer.meta = {**maker.meta, "val": tuple(values[:which] + values[which + 1 :])}
        if "eager_input_vals" in maker.meta:  # the strides that the kernels count on
            args, kwargs = maker.meta["eager_input_vals"]
            writer.meta["eager_input_vals"] = ((_value(stack), index, *args), kwargs)
        bounds = (_value(stack).ndim - 2, index * rows, (index + 1) * rows)
        part = graph.call_function(aten.slice.Tensor, (stack, *bounds))
        part.meta["val"] = aten.slice.Tensor(_value(stack), *bounds)
    for result in list(maker.users):
        at = result.args[1]
        assert isinstance(at, int)
        if at == which:
            result.replace_all_uses_with(part)
        else:
            with graph.inserting_before(maker):
                other = graph.call_function(operator.getitem, (writer, at - (at > which)))
                other.meta = dict(result.meta)
            result.replace_all_uses_with(other)
        graph.erase_node(result)
    graph.erase_node(maker)
