"""The configuration of a run: what differs between two, and what a file may hold."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from taggernet.config.model import TaggerConfig
from taggernet.config.run import (
    Config,
    DataConfig,
    OptimiserConfig,
    RuntimeConfig,
    differing_fields,
    from_json,
    is_longer,
    to_json,
)
from taggernet.fileio import read_json, write_json

OTHER = Config(
    model=TaggerConfig(shape=(3, 4), widths=(8, 4), norm="layer"),
    data=DataConfig(mode="fresh"),
    optimiser=OptimiserConfig(lr=0.5, clip=1.0),
    runtime=RuntimeConfig(log_every=9),
    seeds=3,
)


def test_only_more_updates_make_a_run_longer() -> None:
    more = replace(OTHER, optimiser=replace(OTHER.optimiser, updates=OTHER.optimiser.updates + 1))
    assert is_longer(more, OTHER)
    assert is_longer(replace(more, runtime=RuntimeConfig()), OTHER)
    assert not is_longer(OTHER, more)
    assert not is_longer(OTHER, OTHER)
    assert not is_longer(replace(more, seeds=2), OTHER)


def test_differing_fields_name_every_leaf() -> None:
    a = replace(OTHER, model=replace(OTHER.model, norm="batch"), data=DataConfig(), runtime=RuntimeConfig(), seeds=2)
    assert differing_fields(a, a) == []
    assert differing_fields(a, OTHER) == ["model.norm", "data.mode", "seeds"]


@pytest.mark.parametrize("config", [Config(), OTHER])
def test_a_configuration_survives_its_file(config: Config, tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", to_json(config))
    assert from_json(read_json(tmp_path / "config.json"), "it") == config
    assert to_json(config) == asdict(config)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"bananas": 3}, r"unknown fields \['bananas'\] in Config"), ({"data": {"bananas": 3}}, "in DataConfig"),
     ({"optimiser": 3}, "OptimiserConfig must be an object, not int"), ({"groups": 0}, "groups=0 is out of range"),
     ({"first_seed": -1}, "first_seed=-1"), ({"class_cost": 0.1}, "the model has no classes")],
)  # fmt: skip
def test_an_edited_configuration_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_json(to_json(Config()) | change, "config.json")


@pytest.mark.parametrize(("part", "name"), [("optimiser", "weight_decay"), ("model", "levels"), ("model", "residual")])
def test_a_retired_field_is_ignored_where_it_had_no_effect(part: str, name: str) -> None:
    content = to_json(Config())
    content[part] = content[part] | {name: 0.0}
    assert from_json(content, "config.json") == Config()
    content[part][name] = 0.1
    with pytest.raises(ValueError, match=rf"config\.json: {name}=0\.1 .* only {name}=0\.0 can be loaded"):
        from_json(content, "config.json")


def test_a_missing_part_is_named() -> None:
    content = to_json(Config())
    del content["data"]
    with pytest.raises(ValueError, match=r"config\.json lacks the field 'data'"):
        from_json(content, "config.json")


@pytest.mark.parametrize(
    ("options", "words"),
    [({"lr": 0.0}, "lr=0.0 is out of range"), ({"lr": math.nan}, "lr=nan"), ({"batch": 0}, "batch=0"),
     ({"ema": 1.0}, "ema=1.0 is out of range"), ({"warmup": -1}, "warmup=-1"), ({"clip": -0.1}, "clip=-0.1"),
     ({"lower_rate": -0.1}, "lower_rate=-0.1"),
     ({"lower_rate": 0.5}, "was given for no layers: set lower_layers"),
     ({"lower_wait": 9}, "lower_wait=9 was given for no layers: set lower_layers"),
     ({"lower_layers": -1}, "lower_layers=-1")],
)  # fmt: skip
def test_bad_settings_of_the_optimiser_are_refused_with_their_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OptimiserConfig(**options)
