"""What TAG asks of a mapping: the networks of the package keep to it, and so can any function."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from taggernet.nets import LadderMapping, MLPMapping
from taggernet.rng import Key
from taggernet.tag import BernoulliGroups, run, start
from taggernet.tag.mapping import Mapped, Mapping

N, ROWS = 6, 9
MAPPINGS = {"Ladder": lambda: LadderMapping(N, (12, 8), "layer"), "MLP": lambda: MLPMapping(N, (12, 8))}


@pytest.mark.parametrize("name", MAPPINGS)
def test_rows_of_4n_features_become_rows_of_n_and_are_treated_alike(name: str) -> None:
    torch.manual_seed(0)
    mapping = MAPPINGS[name]()
    assert isinstance(mapping, Mapping)
    rows, order = torch.randn(ROWS, 4 * N), torch.randperm(ROWS)
    found, shuffled = mapping(rows), mapping(rows[order])
    assert found.z_pre.shape == found.m_pre.shape == (ROWS, N)
    for one, other in zip(found, shuffled, strict=True):
        torch.testing.assert_close(other, one[order])


def test_any_function_of_rows_can_be_the_mapping() -> None:
    """One that always says 0 leaves every group at one half, and the groups equal; it has no top."""

    def indifferent(features: Tensor) -> Mapped:
        return Mapped(torch.zeros(len(features), N), torch.zeros(len(features), N))

    first = start(2, 3, torch.full((N,), 0.3), Key.of(0))
    (state,) = run(indifferent, BernoulliGroups(0.2), torch.ones(2, N), first, torch.tensor(1.0), 1)
    torch.testing.assert_close(state.z, torch.full((2, 3, N), 0.5))
    torch.testing.assert_close(state.m, torch.full((2, 3, N), 1 / 3))
    assert state.top is None
