"""The user's units and the model's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from taggernet.tag import Units


def test_the_models_zero_and_one() -> None:
    units = Units(offset=20.0, scale=5.0)
    assert units.to_model(torch.tensor([20.0, 25.0, 10.0])).tolist() == [0.0, 1.0, -2.0]
    assert units.to_user(torch.tensor([0.0, 1.0, -2.0])).tolist() == [20.0, 25.0, 10.0]


@given(offset=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3), value=st.floats(-1e3, 1e3))
def test_there_and_back(offset: float, scale: float, value: float) -> None:
    units, x = Units(offset, scale), torch.tensor([value], dtype=torch.float64)
    assert units.to_user(units.to_model(x)).item() == pytest.approx(value, abs=1e-9)


def test_each_element_may_have_units_of_its_own() -> None:
    units = Units(torch.tensor([0.0, 100.0]), torch.tensor([1.0, 50.0]))
    x = torch.tensor([[1.0, 150.0], [2.0, 0.0]])
    assert units.to_model(x).tolist() == [[1.0, 1.0], [2.0, -2.0]]
    assert torch.equal(units.to_user(units.to_model(x)), x)


def test_integers_are_no_longer_so() -> None:
    assert Units(1.0, 2.0).to_model(torch.tensor([2], dtype=torch.uint8)).tolist() == [0.5]
    assert Units().to_model(torch.tensor([2], dtype=torch.uint8)).dtype == torch.float32


def test_a_small_difference_on_a_large_offset_survives_in_float64() -> None:
    x = 1e9 + torch.tensor([0.0, 0.25], dtype=torch.float64)
    assert Units(1e9, 0.5).to_model(x).tolist() == [0.0, 0.5]


def test_the_default_changes_nothing() -> None:
    x = torch.tensor([-0.0, 0.1, float("inf")])
    assert Units().to_model(x) is x
    assert Units().to_user(x) is x
