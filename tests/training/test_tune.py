"""Settings that are tried: ranked without the truth, and remembered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import own, sensors, write

from taggernet.cli import main
from taggernet.data import Scenes
from taggernet.training import trials, tune
from taggernet.training.auto_config import config_for


def test_the_best_score_comes_first_and_the_truth_is_not_looked_at() -> None:
    arrays, (_, config) = sensors(), own("real")
    found = [tune.tune(config, Scenes.of(arrays["x"], groups), updates=3) for groups in (None, arrays["groups"])]
    for tried in found:
        usual = [tune.setting(trial.config) == tune.setting(config) for trial in tried]
        assert sum(usual) == 1
        scores = [
            trial.score + tune.MARGIN * default - tune.TIED * (1 - trial.score) * (trial.config.model.start != "random")
            for trial, default in zip(tried, usual, strict=True)
        ]
        assert scores == sorted(scores, reverse=True)
        assert [tune.setting(trial.config) for trial in tried] == [tune.setting(t.config) for t in found[0]]
    assert {trial.config.model.masks for trial in found[0]} == {"mapping", "posterior"}
    assert {trial.config.model.tie for trial in found[0]} == {1.0, tune.FADING}
    assert {len(weight) for trial in found[0] for weight in trial.weights.values()} == {trials.TWINS}


@pytest.mark.parametrize(("scores", "first"), [((0.3, 0.4), 0), ((0.3, 0.5), 1), ((0.5, 0.1), 0)])
def test_the_default_is_left_for_a_clearly_better_score_only(scores: tuple[float, float], first: int) -> None:
    _, config = own("real")
    settings = [config, replace(config, model=replace(config.model, noise=0.7))]
    pairs = zip(settings, scores, strict=True)
    tried = [trials.Trial(c, score, 0.5, 0.5, 2.0, 0.0, 0.5, 0.0, {}) for c, score in pairs]
    assert tune.ranked(tried, tune.setting(config))[0] is tried[first]


def test_masks_tied_to_their_start_have_to_be_better() -> None:
    _, config = own("real")
    settings = [replace(config, model=replace(config.model, **c)) for c in ({"noise": 0.7}, {"start": "parts"})]
    for score, first in ((0.58, 0), (0.59, 1)):  # 1.2 score - 0.2 against 0.5
        pair = zip(settings, (0.5, score), strict=True)
        tried = [trials.Trial(c, one, 0.5, 0.5, 2.0, 0.0, 0.5, 0.0, {}) for c, one in pair]
        assert tune.ranked(tried, tune.setting(config))[0] is tried[first]


def test_values_are_started_from_where_they_fall_into_clusters() -> None:
    random = np.random.default_rng(0)
    clear = random.choice([-1.0, 1.0], (200, 12)) + 0.05 * random.standard_normal((200, 12))
    for x, wanted in ((clear, True), (random.standard_normal((200, 12)), False)):
        scenes = Scenes.of(x.astype(np.float32))
        config = replace(config_for(scenes), groups=2, test_groups=2)
        assert tune._values_tell(config, scenes) == wanted


def test_what_was_asked_for_is_not_varied() -> None:
    _, config = own("real")
    asked = replace(config, model=replace(config.model, noise=0.123, widths=(20, 10)))
    tried = tune.candidates(asked, default=config)
    assert {(c.model.noise, c.model.widths) for c in tried} == {(0.123, (20, 10))}
    assert [(c.model.masks, c.model.start, c.model.tie) for c in tried] == [
        ("mapping", "random", 1), ("posterior", "random", 1), ("mapping", "values", 1), ("mapping", "parts", 1),
        ("mapping", "parts", tune.FADING),
    ]  # fmt: skip
    for changes in ({"shape": (tune.MOST_PARTS + 1,)}, {"start_patch": 2}):
        other = replace(config, model=replace(config.model, offsets=(), scales=(), **changes))
        assert {c.model.start for c in tune.candidates(other)} == {"random"}


def test_wider_networks_are_tried_for_binary_scenes() -> None:
    """Four times, with posterior masks and a low rate, or twice if four times is a giant; twice with parts."""
    _, config = own("binary")
    for first, times in ((100, 4), (200, 2)):
        tried = tune.candidates(replace(config, model=replace(config.model, widths=(first, first // 2))))
        found = {(c.model.masks, c.model.start): (c.model.widths[0] // first, c.optimiser.lr) for c in tried}
        assert found == {
            ("mapping", "random"): (1, config.optimiser.lr),
            ("posterior", "random"): (times, tune.WIDEST_RATE),
            ("mapping", "parts"): (2, min(tune.PARTS_RATE, config.optimiser.lr)),
        }


@pytest.mark.parametrize("asked", ["widths", "lr"])
def test_sizes_that_were_asked_for_leave_the_rest_to_be_tried(asked: str) -> None:
    _, config = own("binary")
    mine = tune.changed(config, {asked: (20, 10) if asked == "widths" else 1e-4})
    tried = tune.candidates(mine, default=config)
    assert {tune.setting(c)[asked] if asked == "lr" else c.model.widths for c in tried} == {
        1e-4 if asked == "lr" else (20, 10)
    }
    assert {(c.model.masks, c.model.start) for c in tried} == {
        ("mapping", "random"), ("posterior", "random"), ("mapping", "parts"),
    }  # fmt: skip


def test_a_group_less_is_tried_for_binary_scenes_unless_k_was_asked_for() -> None:
    _, config = own("binary")
    config = replace(config, groups=4, test_groups=4)
    assert {(c.groups, c.test_groups) for c in tune.candidates(config)} == {(4, 4), (3, 3)}
    assert {c.groups for c in tune.candidates(replace(config, groups=5, test_groups=5), default=config)} == {5}
    two = tune.candidates(replace(config, groups=2, test_groups=2))
    assert all(one != two[0] for one in two[1:]), "nothing is tried twice"


def test_the_command_tunes_once_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tune, "UPDATES", 2)
    monkeypatch.setattr(tune, "FEWEST", 2)
    path, run = write(tmp_path / "my.npz", sensors()), tmp_path / "run"
    words = ["train", str(path), "--out", str(run), "--batch", "8", "--device", "cpu", "--no-progress"]
    assert main([*words, "--updates", "10", "--widths", "12", "6"]) == 0
    shown = capsys.readouterr().out
    assert "tuning: up to 5 settings, 2 updates each" in shown
    assert "chosen: " in shown
    rows: list[dict[str, Any]] = json.loads((run / "tuning.json").read_text())
    assert [row["chosen"] for row in rows] == [True, False, False, False, False]
    model = json.loads((run / "config.json").read_text())["model"]
    assert {name: model[name] for name in tune.OF_MODEL} == {name: rows[0][name] for name in tune.OF_MODEL}
    assert main([*words, "--updates", "12", "--widths", "12", "6"]) == 0
    assert "tuning:" not in capsys.readouterr().out, "what was chosen is kept"
    for value, code in ((0.0, 0), (1.0, 2)):  # options of an earlier version
        (run / "tuning.json").write_text(json.dumps([rows[0] | {"levels": value, "residual": 0.0}]))
        assert main([*words, "--updates", "12", "--widths", "12", "6"]) == code
    assert "tuning.json: levels=1.0 is an option of an earlier version" in capsys.readouterr().err
    (run / "tuning.json").write_text("[]")
    assert main([*words, "--updates", "12", "--widths", "12", "6"]) == 2
    assert "is not what tuning wrote" in capsys.readouterr().err


def test_an_interruption_says_that_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "UPDATES", 2)
    monkeypatch.setattr(tune, "FEWEST", 2)
    monkeypatch.setattr(tune, "tune", interrupted)
    words = ["train", str(write(tmp_path / "my.npz", sensors())), "--out", str(tmp_path / "run")]
    assert main([*words, "--updates", "10", "--device", "cpu"]) == 130
    assert "stopped while tuning, of which nothing is kept: repeat the command" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--no-tune"], ["--groups", "1", "--test-groups", "1"], ["--updates", "9"]])
def test_no_tuning_where_it_was_not_wanted_or_does_not_pay(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "UPDATES", 2)
    monkeypatch.setattr(tune, "FEWEST", 2)
    path = write(tmp_path / "my.npz", sensors())
    words = ["train", str(path), "--out", str(tmp_path / "run"), "--batch", "8", "--device", "cpu", "--no-progress"]
    assert main([*words, "--updates", "10", "--widths", "12", "6", *more]) == 0
    assert not (tmp_path / "run" / "tuning.json").exists()
