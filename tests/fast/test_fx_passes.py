"""Sums of products become one product, with the same result, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from taggernet.fast.fx_passes import compiler_options, merge_gradients

aten = torch.ops.aten
ROWS, IN, OUT = 3, 16, 12
"""Merging pays when IN * OUT > ROWS * (IN + OUT)."""


def factors(seeds: tuple[int, ...] = (), rows: int = ROWS, terms: int = 3) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(*seeds, rows, width) for _ in range(terms) for width in (IN, OUT)]


def transposed(x: Tensor) -> Tensor:
    return x.permute(*range(x.ndim - 2), -1, -2)


def products(parts: tuple[Tensor, ...]) -> list[Tensor]:
    multiply = torch.mm if parts[0].ndim == 2 else torch.bmm
    return [multiply(transposed(x), g) for x, g in zip(parts[::2], parts[1::2], strict=True)]


def merged(function: Callable[..., Tensor], parts: list[Tensor]) -> tuple[int, fx.GraphModule]:
    """How many sums were merged, and the graph that then gives the same result as the function."""
    module = make_fx(function, tracing_mode="fake")(*parts)
    count = merge_gradients(module.graph)
    module.recompile()
    torch.testing.assert_close(module(*parts), function(*parts))
    return count, module


def calls(module: fx.GraphModule, target: object) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.target == target]


@pytest.mark.parametrize("seeds", [(), (1,), (4,)])
@pytest.mark.parametrize("terms", [2, 3, 5])
def test_iterations_become_one_product(seeds: tuple[int, ...], terms: int) -> None:
    def gradient(*parts: Tensor) -> Tensor:
        total, *others = products(parts)
        for other in others:
            total = total + other
        return total * 2

    count, module = merged(gradient, factors(seeds, terms=terms))
    assert count == 1
    (product,) = calls(module, aten.bmm.default if seeds else aten.mm.default)
    assert not calls(module, aten.add.Tensor)
    assert product.args[1].meta["val"].shape == (*seeds, terms * ROWS, OUT)  # type: ignore[union-attr]
    assert product.meta["val"].shape == (*seeds, IN, OUT)


def test_any_order_of_additions_and_two_sums_in_a_graph() -> None:
    def gradient(*parts: Tensor) -> Tensor:
        a, b, c, d = products(parts)
        left = (a + b) + (c + d)
        e, f, *_ = products(parts)
        return left.sin() + (e + f).cos()

    count, module = merged(gradient, factors(terms=4))
    assert (count, len(calls(module, aten.mm.default)), len(calls(module, aten.add.Tensor))) == (2, 2, 1)


def test_small_matrices_are_left() -> None:
    """Copying the factors would cost more than writing the products."""

    def gradient(*parts: Tensor) -> Tensor:
        a, b, c = products(parts)
        return a + b + c

    assert merged(gradient, factors(rows=IN))[0] == 0


def one_more_term(*parts: Tensor) -> Tensor:
    a, b, c = products(parts)
    return a + b + c.sin()


def a_product_used_twice(*parts: Tensor) -> Tensor:
    a, b, c = products(parts)
    return (a + b + c) * c


def a_partial_sum_used_twice(*parts: Tensor) -> Tensor:
    a, b, c = products(parts)
    part = a + b
    return (part + c) * part


def a_scaled_sum(*parts: Tensor) -> Tensor:
    a, b, _ = products(parts)
    return torch.add(a, b, alpha=2)


@pytest.mark.parametrize(
    ("function", "count"),
    [(one_more_term, 0), (a_product_used_twice, 0), (a_partial_sum_used_twice, 1), (a_scaled_sum, 0)],
)
def test_what_others_read_is_left(function: Callable[..., Tensor], count: int) -> None:
    """Of a sum whose part is needed as well, the part is merged and the rest stays."""
    assert merged(function, factors())[0] == count


@pytest.mark.filterwarnings("ignore:.*script_method. is deprecated:DeprecationWarning")  # importing Inductor
def test_the_compiler_takes_it() -> None:
    options, again = compiler_options(), compiler_options()
    assert options is not None
    assert again is not None
    assert set(options) <= set(torch._inductor.list_options()), "Inductor refuses options it does not know"
    merge = options["post_grad_custom_pre_pass"]
    assert merge.uuid() == again["post_grad_custom_pre_pass"].uuid()
    module = make_fx(one_more_term, tracing_mode="fake")(*factors())
    before = str(module.graph)
    merge(module.graph)
    assert str(module.graph) == before
    torch.compile(lambda x: x, options=options)
