"""Several settings of a baseline in one run, against each of them alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper.baselines import BaselineConfig, baseline, quick
from paper.baselines.run import Training
from paper.baselines.sweep import Settings, errors_by_setting, sweep

SETTINGS: dict[str, Settings] = {
    "ladder": {
        "topmost cost": {"input_noise": 0.0, "lambdas": [0, 0, 0, 0, 0, 0, 1], "whiten": 0.0},
        "noisy": {"input_noise": 0.6, "layer_noise": 0.0, "whiten": 0.1},
        "costly": {"lambdas": [1000, 10, 0.1, 0.1, 0.1, 0.1, 0.1], "whiten": 1},
    },
    "mlp": {"as it comes": {"whiten": 0.0, "input_noise": 0.0}, "white": {"layer_noise": 0.0, "whiten": 0.5}},
    "convnet": {"as it is": {}, "noisy": {"whiten": 0.5, "input_noise": 0.4, "layer_noise": 0.1}},
}


def toy(method: str) -> BaselineConfig:
    return replace(quick(baseline(f"{method}-texture-mnist-1-1k")), device="cpu", evaluate_every=10)


@pytest.mark.parametrize("method", SETTINGS)
def test_settings_together_are_the_settings_alone(method: str) -> None:
    config, settings = toy(method), SETTINGS[method]
    record = sweep(config, settings, progress=False)
    assert [point["step"] for point in record["curve"]] == [10, 20]
    assert record["settings"] == settings
    assert record["config"]["seeds"] == len(settings)
    assert "test" not in record
    for seed, setting in enumerate(settings.values()):
        changes = {k: tuple(map(float, v)) if k == "lambdas" else float(v) for k, v in setting.items()}
        alone = Training(replace(config, seeds=1, first_seed=seed, **changes), progress=False).run()
        for point, other in zip(record["curve"], alone, strict=True):
            np.testing.assert_allclose(point["classification"][seed], other["classification"][0], rtol=2e-3)
            np.testing.assert_allclose(point["denoising"][seed], other["denoising"][0], rtol=2e-3, atol=1e-6)
            assert abs(point["valid_error"][seed] - other["valid_error"][0]) <= 0.02


def test_errors_are_in_percent_one_list_per_setting() -> None:
    curve = [{"valid_error": [0.5, 0.25]}, {"valid_error": [0.75, 0.125]}]
    assert errors_by_setting({"settings": {"a": {}, "b": {}}, "curve": curve}) == {"a": [50.0, 75.0], "b": [25.0, 12.5]}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "there are no settings"),
        ({"fast": {"lr": 0.1}}, "setting 'fast' changes lr: give an object with some of whiten, input_noise"),
        ({"fast": 3}, "setting 'fast' changes 3: give an object"),
        (
            {"odd": {"input_noise": -1.0}},
            "setting 'odd': input_noise=-1.0 is out of range: give a finite number of at least 0",
        ),
        ({"odd": {"input_noise": "much"}}, "setting 'odd' has input_noise='much': give a number"),
        ({"odd": {"whiten": float("nan")}}, "setting 'odd' has whiten=nan: give a number"),
        ({"odd": {"lambdas": 3}}, "setting 'odd' has lambdas=3: give a list of numbers"),
        ({"odd": {"lambdas": [1.0]}}, "give 7 weights"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_settings_that_cannot_be_are_refused(settings: Settings, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sweep(toy("ladder"), settings, progress=False)
