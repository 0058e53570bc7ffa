"""Sums of products become one product, with the same result, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from taggernet.fast import ops
from taggernet.fast.fx_passes import compiler_options, merge_gradients, write_into_stacks

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


@torch.library.custom_op("taggernet_test::kernel", mutates_args=())
def kernel(x: Tensor, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Stands for one of ours; the second result is to be written elsewhere."""
    return x + 1, x * factor, x - 1


@kernel.register_fake
def _(x: Tensor, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op("taggernet_test::kernel_into", mutates_args=("stack",))
def kernel_into(stack: Tensor, index: int, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    rows = x.shape[-2]
    stack.narrow(-2, index * rows, rows).copy_(x * factor)
    return x + 1, x - 1


@kernel_into.register_fake
def _(stack: Tensor, index: int, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


TEST_OPS = torch.ops.taggernet_test


def chained(*parts: Tensor) -> Tensor:
    """Three gradients, each made by the operation from what came of the one before, and the stack of them."""
    x, found, sums = parts[0], [], []
    for _ in range(3):
        first, second, third = TEST_OPS.kernel(x, 0.5)
        found.append(second)
        sums.append((first * third).sum())
        x = second.sin()
    return torch.cat(found, -2).cos().sum() + sums[0] + sums[1] * sums[2] + x.sum()


def another_order(*parts: Tensor) -> Tensor:
    a, b = (TEST_OPS.kernel(part, 2.0)[1] for part in parts[:2])
    return torch.cat([b, a], -2).sin()


def along_the_columns(*parts: Tensor) -> Tensor:
    a, b = (TEST_OPS.kernel(part, 2.0)[1] for part in parts[:2])
    return torch.cat([a, b], -1)


def another_result(*parts: Tensor) -> Tensor:
    a, b = (TEST_OPS.kernel(part, 2.0)[0] for part in parts[:2])
    return torch.cat([a, b], -2)


def one_from_elsewhere(*parts: Tensor) -> Tensor:
    return torch.cat([TEST_OPS.kernel(parts[0], 2.0)[1], parts[1].sin()], -2)


def the_same_twice(*parts: Tensor) -> Tensor:
    a = TEST_OPS.kernel(parts[0], 2.0)[1]
    return torch.cat([a, a], -2)


@pytest.mark.parametrize("seeds", [(), (3,)])
@pytest.mark.parametrize(
    ("function", "count"),
    [(chained, 1), (another_order, 1), (along_the_columns, 0), (another_result, 0), (one_from_elsewhere, 0),
     (the_same_twice, 0)],
)  # fmt: skip
def test_what_is_stacked_is_written_where_it_belongs(
    function: Callable[..., Tensor], count: int, seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "INTO", {TEST_OPS.kernel.default: (TEST_OPS.kernel_into.default, 1)})
    torch.manual_seed(0)
    parts = [torch.randn(*seeds, 4, 6) for _ in range(2)]
    module = make_fx(function, tracing_mode="fake")(*parts)
    assert write_into_stacks(module.graph) == count
    module.recompile()
    torch.testing.assert_close(module(*parts), function(*parts))
    stacks = calls(module, aten.cat.default)
    assert len(stacks) == 1 - count
    writers = calls(module, TEST_OPS.kernel_into.default)
    assert len(writers) == count * (3 if function is chained else 2)


def test_the_kernels_have_operations_that_write_into_a_stack() -> None:
    """Their arguments are those of the plain ones after the stack and the place in it; one result less."""
    assert len(ops.INTO) == 2
    for plain, (into, which) in ops.INTO.items():
        before, after = plain._schema, into._schema  # type: ignore[attr-defined]
        assert [a.name for a in after.arguments] == ["stack", "index", *(a.name for a in before.arguments)]
        assert after.arguments[0].alias_info.is_write
        assert len(after.returns) == len(before.returns) - 1
        assert 0 <= which < len(before.returns)
