"""Training on own data leaves a report; ``taggernet report`` writes it again."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_pages import Page
from own_files import sensors, short, write
from PIL import Image
from toys import toy

from taggernet import config_for
from taggernet.cli import main
from taggernet.data import Scenes
from taggernet.grouping_report import grouping_report
from taggernet.pretrained import evaluations
from taggernet.tagger import Tagger
from taggernet.training import train
from taggernet.training.datasets import load_split
from taggernet.training.report import _comparable, write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, unchecked: Callable[[], AbstractContextManager[None]]) -> Path:
    folder = tmp_path_factory.mktemp("report")
    config = config_for(write(folder / "mine.npz", sensors()))
    config = short(replace(config, seeds=2, model=replace(config.model, widths=(8, 4))), updates=4)
    with unchecked():
        train(replace(config, runtime=replace(config.runtime, evaluate_every=2)), folder / "run")
    return folder / "run"


def test_training_on_own_data_leaves_a_report(run: Path) -> None:
    page = Page((run / "report.html").read_text("utf-8"))
    assert page.addresses == []
    for words in ("mine.npz", "48 training scenes of shape (5, 2), real", "2 seeds", "4 updates", "No groups formed",
                  f"taggernet group {run} more.npz --out groups.npz", f"taggernet evaluate {run}"):  # fmt: skip
        assert words in page.text
    assert len(page.all("article", "image")) == 6
    assert [record["step"] for record in evaluations(run)] == [2, 4]


@pytest.mark.usefixtures("without_typecheck")
def test_the_command_writes_it_again(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run / "report.html").read_text("utf-8")
    (run / "report.html").unlink()
    assert main(["report", str(run)]) == 0
    assert f"the report is in {run / 'report.html'}" in capsys.readouterr().out
    assert (run / "report.html").read_text("utf-8") == before
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    config = json.loads((moved / "config.json").read_text())
    config["data"]["name"] = str(tmp_path / "gone.npz")
    (moved / "config.json").write_text(json.dumps(config))
    for words in (["report", str(moved)], ["report", str(tmp_path)], ["report", str(moved), "--data", "none.npz"]):
        assert main(words) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["report", str(moved), "--data", str(run.parent / "mine.npz")]) == 0


def test_one_cut_for_all_scenes_is_what_the_parts_of_the_data_say(run: Path, tmp_path: Path) -> None:
    """The verdict of the page is that of the console, though a record does not say where masks start."""
    for start, words in (("random", "No groups formed"), ("parts", "Groups formed")):
        folder = tmp_path / start
        shutil.copytree(run, folder)
        config = json.loads((folder / "config.json").read_text())
        config["model"]["start"] = start
        (folder / "config.json").write_text(json.dumps(config))
        records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for record in records:
            if "grouping" in record:
                record["grouping"] = {name: [0.9] * 2 for name in record["grouping"]} | {"used": [2.0] * 2}
        (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        assert words in Page(write_report(folder).read_text("utf-8")).text


def test_elements_with_units_of_their_own_are_drawn_in_one_scale(tmp_path: Path) -> None:
    """Raw, the second column would be a flat line beside the first."""
    random = np.random.default_rng(0)
    scales = np.array([1000.0, 0.001, 1.0])
    table = write(tmp_path / "table.npz", {"x": random.normal(size=(60, 3)) * scales + 5 * scales})
    config = config_for(table)
    train(short(replace(config, model=replace(config.model, widths=(8, 4))), updates=2), tmp_path / "run")
    page = Page((tmp_path / "run" / "report.html").read_text("utf-8"))
    assert "each element by itself" in page.text
    heights = [float(bar["height"]) for bar in page.all("rect")]
    model, scenes = Tagger.load(tmp_path / "run" / "seed-0"), load_split(config.data, "valid")
    drawn, grouping = _comparable(model, scenes, model.group(scenes.x))
    np.testing.assert_allclose(drawn.x, (scenes.x - model.config.offsets) / model.config.scales, rtol=1e-4)
    assert np.abs(drawn.x).max() < 6
    assert np.abs(np.asarray(grouping.reconstructions)).max() < 100
    assert max(heights) < 100


def test_what_was_tuned_is_shown(run: Path) -> None:
    path = run / "tuning.json"
    path.write_text(json.dumps([{"noise": 0.123, "agreement": 0.5, "chosen": True}]))
    assert "0.123" in Page(write_report(run).read_text("utf-8")).text
    path.write_text('{"noise": 1}')
    with pytest.raises(ValueError, match="not a list of settings"):
        write_report(run)
    path.unlink()


def test_agreement_by_iteration_is_that_of_the_grouping_report(run: Path) -> None:
    from taggernet.evaluation import stack_weights
    from taggernet.training.report import _by_iteration
    from taggernet.training.run_dir import read_config

    config, model = read_config(run), Tagger.load(run / "seed-0")
    scenes = load_split(config.data, "valid")
    found = _by_iteration(model, config, scenes)
    assert len(found) == model.iterations
    for i in (1, model.iterations):
        expected = grouping_report(
            model, stack_weights([model]), scenes, groups=model.groups, iterations=i, batch=config.evaluation_batch
        ).agreement
        assert found[i - 1] == pytest.approx(expected[0])


def test_scenes_in_memory_and_records_without_a_verdict(tmp_path: Path) -> None:
    scenes = Scenes.of(np.random.default_rng(0).normal(size=(60, 9)))
    config = config_for(scenes)
    config = short(replace(config, model=replace(config.model, widths=(8, 4))), updates=2)
    train(config, tmp_path / "run", scenes)
    assert "No groups formed" in (tmp_path / "run" / "report.html").read_text("utf-8")
    with pytest.raises(ValueError, match="trained on scenes in memory, which it does not keep: add --data FILE"):
        write_report(tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    page = Page(write_report(tmp_path / "run", scenes).read_text("utf-8"))
    assert "No groups formed" in page.text, "asked of the models"
    assert not page.all("figure", "chart")


@pytest.mark.parametrize("axis", ["last", "first"])
def test_colours_are_where_the_file_has_them(axis: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((60, 4, 5, 3))
    file = write(tmp_path / "rgb.npy", {"x": x if axis == "last" else np.moveaxis(x, -1, 1)})
    config = config_for(file)
    assert (config.model.channels, config.model.channels_first) == (3, axis == "first")
    train(short(replace(config, model=replace(config.model, widths=(8, 4))), updates=2), tmp_path / "run")
    page = Page((tmp_path / "run" / "report.html").read_text("utf-8"))
    assert len(page.all("article", "image")) == 6
    size = Image.open(io.BytesIO(base64.b64decode(page.all("img")[0]["src"].split(",")[1]))).size
    assert size == (5, 4)


def test_the_papers_recipes_have_one_on_request(tmp_path: Path) -> None:
    train(toy(updates=1), tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
    page = Page(write_report(tmp_path / "run").read_text("utf-8"))
    assert "taggernet evaluate" in page.text
    assert "--updates" not in page.text.split("How to go on")[1], "there is no file to train on again"
    assert len(page.all("article", "image")) == 6
