"""A pass over compiled graphs: the weight gradients of the T iterations become one matrix product.

    x_1' g_1 + ... + x_T' g_T  =  [x_1; ...; x_T]' [g_1; ...; g_T]

Every iteration uses the same matrices, so autograd computes T gradients of each and adds them. Concatenating the
factors first avoids writing and reading T whole weight matrices, and the product runs over T times as many rows. It
costs a copy of the factors, so the pass leaves small matrices as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten
PRODUCTS = (aten.mm.default, aten.bmm.default)


def compiler_options() -> dict[str, Any] | None:
    """Options of torch.compile for the cost of an update; None where this PyTorch's Inductor takes no passes."""
    try:
        from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
    except ImportError:
        return None

    class MergeGradients(CustomGraphPass):
        def __call__(self, graph: fx.Graph) -> None:
            merge_gradients(graph)

        def uuid(self) -> object:
            """The key of this pass in the cache of compiled code."""
            return get_hash_for_files((__file__,))

    # Rows padded to 128 bytes would only be copied back: the kernels of fast/ops.py want them dense.
    return {"post_grad_custom_pre_pass": MergeGradients(), "comprehensive_padding": False}


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
