"""Runs that start from a trained model: what they take over, and which models are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from own_files import sensors, short, write
from toys import toy

from taggernet import config_for
from taggernet.cli import main
from taggernet.fileio import read_json
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import train
from taggernet.training.finetune import finetune, start_weights
from taggernet.training.seeds import initial_weights, one_seed


def saved(folder: Path, config: TaggerConfig, groups: int = 3, iterations: int = 4) -> Path:
    return one_seed(config, initial_weights(config, [7], "cpu"), 0, groups=groups, iterations=iterations).save(folder)


REAL = TaggerConfig((10,), "real", (16, 8), norm="layer", noise=0.3, mean=0.0, offset=100.0, scale=12.0)


@pytest.mark.usefixtures("without_typecheck")
def test_the_command_keeps_the_models_network_units_and_groups(tmp_path: Path) -> None:
    arrays = sensors()
    file = write(tmp_path / "mine.npz", {"x": arrays["x"]})
    model = saved(tmp_path / "model", REAL)
    command = ["train", str(file), "--finetune", str(model), "--out", str(tmp_path / "run"), "--updates", "1"]
    options = "--lr 1e-12 --no-progress --no-tensorboard --device cpu --batch 8 --seeds 2 --noise 0.4 --warmup 0"
    assert main([*command, *options.split()]) == 0
    config = read_json(tmp_path / "run" / "config.json")
    assert (config["groups"], config["test_groups"], config["test_iterations"]) == (3, 3, 4)
    expected = {"shape": [5, 2], "widths": [16, 8], "norm": "layer", "offset": 100.0, "scale": 12.0, "noise": 0.4}
    assert {name: config["model"][name] for name in expected} == expected, "what is named wins"
    before = Tagger.load(model).state_dict()
    for seed in (0, 1):
        tuned = Tagger.load(tmp_path / "run" / f"seed-{seed}")
        assert (tuned.groups, tuned.iterations) == (3, 4)
        for name, weight in tuned.state_dict().items():
            torch.testing.assert_close(weight, before[name], rtol=0, atol=1e-9)


@pytest.mark.usefixtures("without_typecheck")
def test_wrong_models_get_one_sentence_and_leave_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = sensors()["x"]
    file = write(tmp_path / "mine.npz", {"x": x})
    smaller = saved(tmp_path / "smaller", replace(REAL, shape=(9,)))
    binary = saved(tmp_path / "binary", TaggerConfig((10,), "binary", (16, 8), norm="layer"))
    torn = saved(tmp_path / "torn", REAL)
    (torn / "model.safetensors").write_bytes(b"torn")
    batch = saved(tmp_path / "batch", replace(REAL, norm="batch"))
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_text('{"optimiser": {}}')
    other = {"--finetune": "--start-from", "--start-from": "--finetune"}
    for option, model, sentence in (
        ("--finetune", smaller, "has inputs of shape (9,), but the scenes of this run have (5, 2): choose a model"),
        ("--finetune", binary, "is a model of binary scenes, but these hold other values than 0 and 1"),
        ("--finetune", torn, "is not a whole safetensors file"),
        ("--finetune", "shapes", "shapes has inputs of shape (20, 20), but the scenes of this run have (5, 2)"),
        ("--finetune", "shape", "did you mean 'shapes'?"),
        ("--finetune", unfinished, "holds a run that is not finished"),
        ("--start-from", smaller, "has inputs of shape (9,) and widths (16, 8), but this run has (5, 2) and (16, 8)"),
        ("--start-from", binary, "has kind 'binary', but this run has 'real': set --kind binary"),
        ("--start-from", batch, "has norm 'batch', but this run has 'layer': set --norm batch"),
        ("--start-from", torn, "is not a whole safetensors file"),
        ("--start-from", tmp_path / "none", "does not exist"),
    ):
        out, norm = tmp_path / "run", [] if option == "--finetune" else ["--norm", "layer", "--widths", "16", "8"]
        assert main(["train", str(file), option, str(model), "--out", str(out), "--no-progress", *norm]) == 2
        assert sentence in capsys.readouterr().err
        assert not out.exists(), "nothing was written"
        both = [option, str(model), other[option], "shapes"]
        assert main(["train", str(file), *both, "--out", str(out)]) == 2
        assert "give one of them" in capsys.readouterr().err


def test_a_run_without_the_seed_is_refused(tmp_path: Path) -> None:
    first = replace(toy(seeds=2, updates=1), runtime=toy().runtime)
    train(first, tmp_path / "first")
    second = replace(toy(first_seed=5, updates=1), start_from=str(tmp_path / "first"))
    with pytest.raises(ValueError, match=r"has no seed 5, only seed-0, seed-1: choose --seeds and --first-seed"):
        train(second, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_a_run_that_has_begun_needs_its_start_no_more(tmp_path: Path) -> None:
    model = saved(tmp_path / "model", replace(REAL, shape=(5, 2)))
    scenes = write(tmp_path / "mine.npz", {"x": sensors()["x"]})
    config = short(finetune(config_for(scenes), str(model)), updates=2)
    train(config, tmp_path / "run")
    (model / "model.safetensors").unlink()
    longer = replace(config, optimiser=replace(config.optimiser, updates=3))
    assert train(longer, tmp_path / "run").finished


def test_classes_are_kept_or_added(tmp_path: Path) -> None:
    arrays = sensors()
    with_labels = config_for(write(tmp_path / "labels.npz", arrays))
    without = config_for(write(tmp_path / "x.npz", {"x": arrays["x"]}))
    none, three = saved(tmp_path / "none", REAL), saved(tmp_path / "three", replace(REAL, classes=3))
    assert finetune(with_labels, str(none)).model.classes == 2
    assert finetune(with_labels, str(three)).model.classes == 3
    kept = finetune(without, str(three))
    assert (kept.model.classes, kept.class_cost) == (3, 0)
    run = train(short(replace(kept), updates=2), None)
    assert run.model().predict(np.asarray(arrays["x"][:4])).shape == (4, 3)
    weights = start_weights(kept, torch.device("cpu"))
    assert {len(w) for w in weights.values()} == {1}
