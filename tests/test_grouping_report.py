"""Whether groups formed is told without the truth, and agrees with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_mutual_info_score

from taggernet import data
from taggernet.evaluation import stack_weights
from taggernet.grouping_report import GroupingReport, _by_value, _elsewhere, _loud, _reproduced, grouping_report
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import train
from taggernet.training.auto_config import config_for
from taggernet.training.seeds import initial_weights

SCENES = data.shapes(12, split="test")


@pytest.fixture(scope="module")
def shapes() -> Tagger:
    return Tagger.from_pretrained("shapes")


def test_a_model_that_groups_is_confident_and_agrees_with_itself(shapes: Tagger) -> None:
    report = grouping_report(shapes, stack_weights([shapes]), SCENES, groups=6, iterations=8)
    assert report.formed == [True]
    assert report.confidence[0] > 0.85
    assert report.agreement[0] > 0.8
    assert 3 <= report.used[0] <= 5
    assert str(report).startswith("groups formed (confidence 0.9")
    assert ": " not in str(report), "no advice is needed"


def test_an_untrained_model_does_not_and_gets_advice(shapes: Tagger) -> None:
    """Its masks are all equal, so that the first group 'wins' everywhere, and every start agrees on it."""
    both = {
        name: torch.cat([fresh, trained])
        for (name, fresh), trained in zip(
            initial_weights(shapes.config, [0], "cpu").items(), stack_weights([shapes]).values(), strict=True
        )
    }
    report = grouping_report(shapes, both, SCENES, groups=4, iterations=5)
    assert report.formed == [False, True]
    assert report.confidence[0] < 0.01
    assert str(report).startswith("groups formed in 1 of 2 seeds")
    assert "masks are undecided; train longer (more --updates)" in str(report)


def test_the_numbers_are_those_of_a_naive_pass() -> None:
    """Real data, where every element counts; scikit-learn's AMI."""
    torch.manual_seed(0)
    scenes = data.Scenes.of(np.random.default_rng(0).normal(size=(5, 12)))
    model = Tagger(replace(config_for(_enough(scenes)).model, widths=(16, 8), norm="batch"))
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn_like(weight)
    report = grouping_report(model, stack_weights([model]), scenes, groups=3, iterations=2, starts=2)
    masks = _masks(model, scenes)
    assert report.confidence == pytest.approx([np.mean((masks.max(2) - 1 / 3) * 1.5)], rel=1e-4)
    labels = masks.argmax(2)
    ami = [adjusted_mutual_info_score(a, b, average_method="max") for a, b in zip(*labels, strict=True)]
    assert report.agreement == pytest.approx([np.mean(ami)], abs=1e-5)
    assert report.used == pytest.approx([np.mean([len(np.unique(one)) for start in labels for one in start])])


def test_groups_of_other_first_weights_are_compared() -> None:
    """Each model with its twins, by scikit-learn's AMI of what counts, where that is more than one group."""
    random = np.random.default_rng(0)
    labels, counted = random.integers(0, 3, (4, 40, 12)), random.random((40, 12)) < 0.6
    labels[:2, :5] = 1  # not a scene on which the twins agree: neither divides it
    labels[3] = labels[2]
    same = torch.from_numpy(labels)
    found = [_reproduced(same, same, s, 2, torch.from_numpy(counted)) for s in range(4)]
    pairs = [[(a[c], b[c]) for a, b, c in zip(*labels[i : i + 2], counted, strict=True)] for i in (0, 2)]
    wanted = [np.mean([adjusted_mutual_info_score(a, b, average_method="max") for a, b in of_two if len(set(a)) > 1])
              for of_two in pairs]  # fmt: skip
    assert found == pytest.approx([wanted[0], wanted[0], 1.0, 1.0], abs=1e-5)
    one = torch.ones(2, 40, 12, dtype=torch.int64)
    assert _reproduced(one, one, 0, 2, torch.from_numpy(counted)) == 0.0
    assert _reproduced(same, same.roll(1, 1), 2, 2, torch.from_numpy(counted)) < 0.2, "another start of the twin counts"


def test_the_score_is_that_of_other_first_weights_where_they_are_known() -> None:
    scenes = data.Scenes.of(np.random.default_rng(0).normal(size=(40, 12)))
    config = replace(config_for(scenes).model, widths=(16, 8))
    weights = initial_weights(config, [0, 1, 2, 2], "cpu")
    report, alone = (
        grouping_report(Tagger(config), weights, scenes, groups=3, iterations=2, twins=twins) for twins in (2, 1)
    )
    assert (alone.reproduced, alone.by_value) == ([], [])
    parts = zip(report.reproduced, report.confidence, report.by_value, strict=True)
    wanted = [max(0.0, r) * c**0.5 * (1 - max(0.0, v) / 2) for r, c, v in parts]
    assert min(report.used) > 2
    assert report.score == pytest.approx(wanted)
    assert alone.score[2] == pytest.approx(alone.confidence[2] * (alone.agreement[2] - alone.elsewhere[2]))


def _enough(scenes: data.Scenes) -> data.Scenes:
    return data.Scenes.of(np.concatenate([scenes.x] * 4))


def _masks(model: Tagger, scenes: data.Scenes) -> Any:
    """(starts, n, K, N) from the same random starts."""
    x = torch.as_tensor(scenes.x, dtype=torch.float32)
    found = []
    for number in range(2):
        with torch.no_grad():
            *_, last = model.states(x, 3, 2, Key.of(number).fold("grouping report"))
        found.append(last.m.numpy())
    return np.stack(found)


@pytest.mark.parametrize(
    ("confidence", "agreement", "used", "words"),
    [
        (0.03, 1.0, 1.0, "masks are undecided"),
        (0.9, 1.0, 1.1, "one group takes everything"),
        (0.68, 0.45, 3.0, "each start gives other groups"),
        (0.45, 0.72, 3.0, "masks are undecided"),
    ],
)
def test_the_advice_fits(confidence: float, agreement: float, used: float, words: str) -> None:
    text = str(GroupingReport(3, [confidence], [agreement], [used]))
    assert text.startswith(f"no groups formed (confidence {confidence:.2f}")
    assert words in text
    assert "\n" not in text


def test_a_split_that_is_the_same_in_every_scene_scores_nothing() -> None:
    """However decided and agreed on; the report of a model that groups scores high."""
    same, other = (GroupingReport(3, [1.0], [1.0], [3.0], [e]) for e in (1.0, 0.1))
    assert same.score == [0.0]
    assert other.score == pytest.approx([0.9])
    assert GroupingReport(3, [1.0], [1.0], [1.0], [0.0]).score == [0.0], "one group takes everything"
    assert (same.formed, other.formed) == ([False], [True])
    assert "all scenes are cut alike (1.00)" in str(same)


def test_the_same_split_in_every_scene_counts_where_it_is_no_chance() -> None:
    """Other first weights find it too, or masks start from the data's parts: each element has one owner."""
    assert GroupingReport(3, [1.0], [1.0], [3.0], [1.0], [0.8]).score == pytest.approx([0.8])
    found = GroupingReport(3, [1.0], [0.9], [3.0], [1.0], by_parts=True)
    assert found.score == pytest.approx([0.9])
    assert found.formed == [True]
    assert str(found).endswith("3.0 of 3 groups used, the same in all scenes)")


def test_labels_of_other_scenes_are_compared_where_both_count() -> None:
    labels = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]])
    counted = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    pairs = [(0, 2), (1, 0), (2, 1)]
    wanted = [adjusted_mutual_info_score(labels[a][:4], labels[b][:4], average_method="max") for a, b in pairs]
    assert _elsewhere(labels, counted) == pytest.approx(np.mean(wanted))
    assert _elsewhere(torch.zeros(3, 5, dtype=torch.int64), counted) == 0.0


def test_crossings_of_two_pairs_of_bars_say_nothing_of_other_scenes() -> None:
    """Each is one element of two groups, in which both scenes agree for want of another choice."""
    row, column = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    at = torch.tensor([[0, 1], [2, 3], [4, 5], [1, 0]])
    lit = torch.stack([(row == r) | (column == c) for r, c in at]).flatten(1)
    labels = torch.stack([(column == c).long() for _, c in at]).flatten(1)
    assert _elsewhere(labels, lit) == 0.0


def test_scenes_without_ones_are_left_out(shapes: Tagger) -> None:
    blank = replace(SCENES, x=np.concatenate([SCENES.x, np.zeros_like(SCENES.x)]), groups=None)
    reports = [
        grouping_report(shapes, stack_weights([shapes]), scenes, groups=6, iterations=8) for scenes in (SCENES, blank)
    ]
    assert reports[0] == reports[1]
    assert reports[0].formed == [True]


def test_training_on_own_data_ends_with_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "mine.npz", x=np.random.default_rng(0).normal(50, 10, (60, 9)))
    config = config_for(tmp_path / "mine.npz")
    config = replace(
        config,
        model=replace(config.model, widths=(16, 8)),
        optimiser=replace(config.optimiser, updates=3, warmup=0),
        runtime=replace(config.runtime, device="cpu", tensorboard=False),
    )
    train(config, tmp_path / "run")
    assert "no groups formed (confidence 0." in capsys.readouterr().err


def test_groups_that_single_values_tell_count_half() -> None:
    plain, told = (GroupingReport(2, [1.0], [0.9], [2.0], [0.1], [0.8], by_value=[v]) for v in (0.0, 1.0))
    assert plain.score == pytest.approx([0.8])
    assert told.score == pytest.approx([0.4])
    random = torch.Generator().manual_seed(0)
    x = torch.rand(20, 60, 1, generator=random) * 9
    assert _by_value((x[..., 0] > x.median()).long(), x, 2) == pytest.approx(1.0)
    assert abs(_by_value(torch.randint(2, (20, 60), generator=random), x, 2)) < 0.05


def test_silence_does_not_count_for_other_first_weights() -> None:
    """A position counts if any of its channels differs from its own mean."""
    x = torch.zeros(4, 3, 2)
    x[:, 2] = 50.0
    x[0, 0, 1], x[1, 1, 0] = 5.0, -5.0
    assert _loud(x).nonzero().tolist() == [[0, 0], [1, 1]]
