"""Models by name: shipped, in a folder, in a run; the Hub is asked for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch

from taggernet import pretrained
from taggernet.model_io import CARD
from taggernet.tagger import Tagger, TaggerConfig


def tiny(seed: int = 0) -> Tagger:
    torch.manual_seed(seed)
    return Tagger(TaggerConfig(shape=(3, 4), widths=(8, 4), norm="layer"))


def same(a: Tagger, b: Tagger, atol: float = 0.0) -> bool:
    theirs = b.state_dict()
    return all(torch.allclose(w, theirs[name], rtol=0, atol=atol) for name, w in a.state_dict().items())


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights folder with one shipped model, 'tiny'."""
    folder = tmp_path / "weights"
    tiny().save(folder / "tiny", {"recipe": "none"}, bits=16)
    monkeypatch.setattr(pretrained, "SHIPPED", folder)
    return folder


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the Hub was asked")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


@pytest.mark.usefixtures("weights", "no_hub")
def test_a_shipped_name_loads_and_wins_over_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny(1).save(tmp_path / "here" / "tiny")
    monkeypatch.chdir(tmp_path / "here")
    assert pretrained.shipped() == ["tiny"]
    model = Tagger.from_pretrained("tiny")
    assert same(model, tiny(), atol=1e-3)
    assert model.w.dtype == torch.float32
    assert same(Tagger.from_pretrained("./tiny"), tiny(1))
    assert same(Tagger.from_pretrained(Path("tiny")), tiny(1))
    x = np.eye(12)[:2].reshape(2, 3, 4)
    assert model.group(x, groups=2, iterations=2).masks.shape == (2, 2, 3, 4)


@pytest.mark.usefixtures("weights", "no_hub")
def test_a_run_without_records_gives_its_first_seed(tmp_path: Path) -> None:
    for seed in (10, 2):
        tiny(seed).save(tmp_path / "run" / f"seed-{seed}")
    (tmp_path / "run" / "config.json").write_text('{"optimiser": {}}')
    with pytest.warns(UserWarning, match="using seed 2, the first of 2, as no validation is recorded"):
        assert same(Tagger.from_pretrained(tmp_path / "run"), tiny(2))
    assert same(Tagger.from_pretrained(str(tmp_path / "run" / "seed-10")), tiny(10))


@pytest.mark.usefixtures("weights", "no_hub")
@pytest.mark.parametrize(
    ("valid", "best", "words"),
    [
        ({"cost": [[0.9, 0.3], [0.1, 0.2], [0.1, 0.4]]}, 6, "cost on validation, 0.200"),
        ({"cost": [[0.1], [0.2], [0.3]], "ami": [[0.7], [0.786], [0.856]]}, 7, "AMI on validation, 0.856"),
        ({"ami": [[0.9], [0.8], [0.7]], "error": [[0.3], [0.1], [0.2]]}, 6, "class error on validation, 0.100"),
    ],
)
def test_a_run_gives_the_seed_that_is_best_on_validation(
    valid: dict[str, Any], best: int, words: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    for seed in (5, 6, 7):
        tiny(seed).save(run / f"seed-{seed}", {"updates": 20})
    (run / CARD).write_text('{"optimiser": {}, "first_seed": 5}')
    other = {name: [[1 - values[-1]] for values in seeds] for name, seeds in valid.items()}
    records = [{"step": 10, "valid": other}, {"step": 20, "valid": valid}, {"step": 20, "loss": [1.0]}]
    later = {"step": 30, "valid": other}  # of a longer training that has not ended
    text = "".join(json.dumps(r) + "\n" for r in [*records, later])
    (run / "metrics.jsonl").write_bytes(b"\xff\n" + text.encode() + b'{"st')
    with pytest.warns(UserWarning, match=f"using seed {best}, the best of 3 by its {words}"):
        assert same(Tagger.from_pretrained(run), tiny(best))
    assert same(Tagger.load(run / "seed-5"), tiny(5))


@pytest.mark.usefixtures("weights", "no_hub")
def test_without_the_truth_the_agreement_of_random_starts_decides(tmp_path: Path) -> None:
    """Not the cost, which can be the same with groups and without."""
    for seed in (0, 1):
        tiny(seed).save(tmp_path / "run" / f"seed-{seed}")
    (tmp_path / "run" / CARD).write_text('{"optimiser": {}}')
    record = {"step": 9, "valid": {"cost": [[0.1], [0.2]]}, "grouping": {"agreement": [0.1, 0.9]}}
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(record))
    with pytest.warns(UserWarning, match="using seed 1, the best of 2 by its agreement of random starts on validation"):
        assert same(Tagger.from_pretrained(tmp_path / "run"), tiny(1))


@pytest.mark.usefixtures("weights", "no_hub", "without_typecheck")
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("tine", ValueError, "did you mean 'tiny'"),
        ("elephants", ValueError, "give 'tiny', a folder that holds a model or a run, or a Hub id"),
        ("", ValueError, "is empty"),
        (7, TypeError, "not the name of a model"),
        ("sub/missing", FileNotFoundError, "does not exist"),
        ("/nowhere/at/all", FileNotFoundError, "does not exist"),
        ("../../tiny", FileNotFoundError, "does not exist"),
        ("sub", FileNotFoundError, "neither a model"),
        ("sub/unfinished", ValueError, "not finished"),
        ("sub/file", ValueError, "is a file"),
    ],
)
def test_a_wrong_name_gets_one_sentence_and_no_network(
    name: Any, kind: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub" / "unfinished").mkdir(parents=True)
    (tmp_path / "sub" / "unfinished" / CARD).write_text('{"optimiser": {}}')
    (tmp_path / "sub" / "file").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words) as caught:
        Tagger.from_pretrained(name)
    assert "\n" not in str(caught.value)
