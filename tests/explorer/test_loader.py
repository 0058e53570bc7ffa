"""What the page can be opened for, and what is said where it cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from taggernet import Tagger, TaggerConfig, config_for
from taggernet.config.run import to_json
from taggernet.explorer import launch
from taggernet.explorer.loader import open_model, own_scenes
from taggernet.explorer.scenes import source_for
from taggernet.fileio import write_json
from taggernet.training.datasets import load_split

MODEL = Tagger(TaggerConfig(shape=(10, 10), widths=(8, 4)))


def test_a_model_is_shown_as_it_is() -> None:
    assert open_model(MODEL) == (MODEL, "model", "")


def test_the_folder_of_a_model_or_of_a_run(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "run" / "seed-0", {"recipe": "small"})
    MODEL.save(tmp_path / "plain")
    for folder, name, recipe in (("run", "small", "small"), ("run/seed-0", "small", "small"), ("plain", "plain", "")):
        model, shown, found = open_model(tmp_path / folder)
        assert (model.config, shown, found) == (MODEL.config, name, recipe)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds neither a model"):
        open_model(tmp_path)


def test_a_run_on_a_file_of_ones_own_shows_its_held_out_scenes(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.random.default_rng(0).normal(5, 2, (100, 6, 6)))
    config = config_for(path)
    Tagger(config.model).save(tmp_path / "run" / "seed-0")
    write_json(tmp_path / "run" / "config.json", to_json(config))
    found = own_scenes(tmp_path / "run")
    assert found is not None
    assert np.array_equal(found.x, load_split(config.data, "test").x)
    assert source_for(config.model, found).test is found
    path.unlink()
    assert own_scenes(tmp_path / "run" / "seed-0") is None, "nor is there an error where the file is gone"
    assert own_scenes(MODEL) is None


def test_a_machine_without_gradio_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradio", None)
    for name in [name for name in sys.modules if name.startswith("taggernet.explorer.")]:
        monkeypatch.delitem(sys.modules, name)  # so that another test's import does not stand in for this one
    with pytest.raises(OSError, match=r"pip install 'taggernet\[web\]'"):
        launch(MODEL, open_browser=False)
