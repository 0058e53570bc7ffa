"""What makes use of a model on a CPU faster: large matrices in the order in which oneDNN reads them, and kept memory.

torch gives a float32 product to MKL, which brings the matrix into an order of its own every time. With the few rows of
one scene that takes longer than the product. Here, for products without gradients, the order is made once and kept as
long as the matrix is the same. The operations are those that Inductor uses for models that it freezes; torch has no
public name for them.
"""

from __future__ import annotations

import platform
from functools import cache
from typing import NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

LARGE = 100_000
"""Numbers in a matrix from which it pays: with 12,800 it does not, with 125,000 hardly, with 1.6 million twofold."""

AT_ONCE = 1_000_000
"""Numbers of z, of all inputs and groups, that are computed at once: of images of 64 x 64 x 3 with six groups, 13 at a
time take half as long as 100, whose layers find no freed memory that is large enough."""


class _Packed(NamedTuple):
    version: tuple[int, int]
    storage: ReferenceType[torch.UntypedStorage]
    matrix: Tensor


_packed: WeakKeyDictionary[nn.Module, _Packed] = WeakKeyDictionary()
"""Of each module that holds a matrix. Not an attribute of the module: nobody should copy, save or move it."""


@cache
def _has_packing() -> bool:
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return available and platform.machine().lower() in ("x86_64", "amd64")


def packing_applies(x: Tensor, weight: Tensor) -> bool:
    """Whether ``packed_product`` may take the place of x @ weight: it has no gradient, and is for parameters alone."""
    return (
        not torch.is_grad_enabled()
        and isinstance(weight, nn.Parameter)
        and weight.numel() >= LARGE
        and weight.ndim == 2
        and weight.is_cpu
        and x.dtype == weight.dtype == torch.float32
        and not weight.is_inference()  # has no version
        and not torch.compiler.is_compiling()
        and _has_packing()
    )


def packed_product(owner: nn.Module, x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight to float precision; ``owner`` is the module that holds the weight.

    A change of the weight in place is noticed by its version, as in autograd: one through ``weight.data`` is not. Other
    memory is noticed by itself and not by its address, which may be that of memory freed before.
    """
    version, storage = (weight._version, weight.data_ptr()), weight.untyped_storage()
    known = _packed.get(owner)
    if known is None or known.version != version or known.storage() is not storage:
        matrix = torch.ops.mkldnn._reorder_linear_weight(weight.detach().t())
        _packed[owner] = known = _Packed(version, ref(storage), matrix)
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, known.matrix, None, "none", [], "")
    return result


@cache
def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next tensor, up to 64 MB, instead of returning it to the system.

    Every page that comes back from there has to be made anew: a quarter of the time of grouping many scenes. glibc
    raises its limit to twice the largest block that was freed, up to blocks of 32 MB; nothing is written to this one.
    """
    torch.empty((32 << 20) - (8 << 10), dtype=torch.uint8, device="cpu")
