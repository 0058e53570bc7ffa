"""The figures beside ours are those that the paper prints: typed once more here, in the layout of its tables."""

from __future__ import annotations

from paper.baselines import BASELINES
from paper.published import LADDER_ON_MNIST, TABLE_1A, TABLE_1B, TABLE_2, Published
from taggernet.recipes import RECIPES

PRINTED_1A = """
denoising cost  BN  0.094 0.068 0.063 0.063 0.063
AMI             BN  0.58  0.73  0.77  0.79  0.79
denoising cost  LN  0.100 0.069 0.057 0.054 0.054
AMI             LN  0.70  0.90  0.95  0.96  0.97
"""
PRINTED_2 = """
mlp-texture-mnist-1               31.1 2.2  89.0 0.2
ladder-texture-mnist-1             7.2 0.1  30.5 0.5
texture-mnist-1-labels             4.0 0.3  10.5 0.9
convnet-texture-mnist-1            3.9 0.3  52.4 5.3
mlp-texture-mnist-2               55.2 1.0  79.4 0.3
ladder-texture-mnist-2            41.1 0.2  68.5 0.2
texture-mnist-2-labels             7.9 0.3  24.9 1.8
convnet-texture-mnist-2           12.6 0.4  79.1 0.8
"""
"""Error and standard deviation with 50,000 labels, and with 1,000."""


def test_table_1a() -> None:
    lines = [line.split() for line in PRINTED_1A.strip().split("\n")]
    rows = {tuple(line[-7:-5]): [float(number) for number in line[-5:]] for line in lines}
    assert {
        recipe: {"cost": rows["cost", norm], "ami": rows["AMI", norm]}
        for recipe, norm in (("shapes", "BN"), ("shapes-layernorm", "LN"))
    } == TABLE_1A


def test_table_1b_ends_where_1a_does() -> None:
    assert {
        "rc": Published(0.61, 0.005),
        "shapes": Published(0.79, 0.034, 20),
        "shapes-layernorm": Published(0.97, 0.009, 20),
    } == TABLE_1B
    assert all(TABLE_1B[name].value == found["ami"][-1] for name, found in TABLE_1A.items())


def test_table_2() -> None:
    expected = {}
    for line in PRINTED_2.strip().split("\n"):
        name, *numbers = line.split()
        every, sd, few, few_sd = map(float, numbers)
        expected |= {f"{name}-50k": Published(every, sd, 5), f"{name}-1k": Published(few, few_sd, 5)}
    assert expected == TABLE_2


def test_each_figure_belongs_to_a_row_of_ours() -> None:
    """The paper's Tagger on TextureMNIST1 has no recipe: its figures are shown without a record."""
    ours = {*RECIPES, *BASELINES}
    assert {*TABLE_1A, *TABLE_2} <= ours


def test_a_figure_is_shown_as_it_is_printed() -> None:
    assert str(TABLE_2["ladder-texture-mnist-1-50k"]) == "7.2 ± 0.1"
    assert str(Published(31.0)) == "31.0"
    assert str(LADDER_ON_MNIST) == "0.84 ± 0.08"
