"""Models on disk: what is written comes back, and a damaged or foreign file is refused with a sentence."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from taggernet.fileio import read_tensors, write_tensors
from taggernet.model_io import CARD, ROW_SCALE, WEIGHTS
from taggernet.nets import MLPMapping
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig

CONFIG = TaggerConfig(
    shape=(5, 8),
    kind="real",
    widths=(30, 20, 10),
    classes=3,
    norm="layer",
    noise=0.15,
    mean=0.4,
    v_start=0.7,
    delta_z="exact",
    ratio_variance="reference",
    gate="plain",
    top="relu",
    norm_eps=1e-8,
    offset=1.5,
    scale=2.0,
)


def tagger() -> Tagger:
    torch.manual_seed(0)
    model = Tagger(CONFIG)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def wide() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(400,), kind="real", widths=(200, 100), norm="layer"))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tagger().save(tmp_path / "model", {"AMI": 0.97})


def edit_card(folder: Path, **fields: Any) -> None:
    content = json.loads((folder / CARD).read_text())
    content["model"].update(fields)
    (folder / CARD).write_text(json.dumps(content))


def edit_weights(folder: Path, **tensors: Any) -> None:
    content = load_file(folder / WEIGHTS) | tensors
    save_file({name: tensor for name, tensor in content.items() if tensor is not None}, folder / WEIGHTS)


# --- there and back --------------------------------------------------------------------------------------


def test_round_trip(saved: Path) -> None:
    model, again = tagger(), Tagger.load(saved)
    assert again.config == CONFIG
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert all(parameter.requires_grad for parameter in again.parameters())
    x = Key.of(0).uniform(3, 5, 8)
    assert torch.equal(model.group(x).masks, again.group(x).masks)
    assert torch.equal(model.predict(x), again.predict(x))


def test_a_person_can_read_the_card(saved: Path) -> None:
    content = json.loads((saved / CARD).read_text())
    assert content["card"] == {"AMI": 0.97}
    assert content["format"] == 1
    assert content["model"]["widths"] == [30, 20, 10]
    assert sorted(path.name for path in saved.iterdir()) == [CARD, WEIGHTS]


def test_half_precision(saved: Path, tmp_path: Path) -> None:
    """Large tensors as float16, small ones (v among them) exact; the model that comes back is float32."""
    half = tagger().save(tmp_path / "half", bits=16)
    assert (half / WEIGHTS).stat().st_size < 0.7 * (saved / WEIGHTS).stat().st_size
    model, again = tagger(), Tagger.load(half)
    for name, tensor in model.state_dict().items():
        other = again.state_dict()[name]
        assert other.dtype == torch.float32
        exact = tensor.half().float() if tensor.numel() > 1000 else tensor
        assert torch.equal(other, exact), name
    x = Key.of(0).uniform(3, 5, 8)
    torch.testing.assert_close(model.group(x).masks, again.group(x).masks, rtol=0.05, atol=0.05)


def test_eight_bits(tmp_path: Path) -> None:
    """Matrices are within half a step of what they were, and stay so if the model is saved again."""
    model = wide()
    folder = model.save(tmp_path / "8", bits=8)
    assert (folder / WEIGHTS).stat().st_size < 0.3 * (model.save(tmp_path / "32") / WEIGHTS).stat().st_size
    once = Tagger.load(folder)
    again = Tagger.load(once.save(tmp_path / "again", bits=8))
    for name, tensor in model.state_dict().items():
        found = once.state_dict()[name]
        assert found.dtype == torch.float32
        if name.endswith("weight"):
            step = tensor.abs().amax(-1, keepdim=True) / 127
            assert ((found - tensor).abs() <= 0.501 * step).all(), name
            assert not torch.equal(found, tensor)
        torch.testing.assert_close(again.state_dict()[name], found, rtol=1e-6, atol=0)
    x = Key.of(0).uniform(3, 400)
    torch.testing.assert_close(model.group(x).masks, once.group(x).masks, rtol=0.1, atol=0.1)


def test_rows_of_zeros_survive_eight_bits(tmp_path: Path) -> None:
    model = wide()
    with torch.no_grad():
        model.mapping.W_h.weight[3] = 0  # type: ignore[union-attr, index]
    assert not Tagger.load(model.save(tmp_path / "m", bits=8)).mapping.W_h.weight[3].any()  # type: ignore[union-attr]


@pytest.mark.parametrize("damage", ["missing", "float", "longer"])
def test_row_scales_that_do_not_fit_are_refused(damage: str, tmp_path: Path) -> None:
    folder = wide().save(tmp_path / "m", bits=8)
    tensors = read_tensors(folder / WEIGHTS)
    name = "mapping.W_h.weight"
    if damage == "missing":
        del tensors[name]
    elif damage == "float":
        tensors[name] = tensors[name].float()
    else:
        tensors[name + ROW_SCALE] = torch.ones(7, 1)
    write_tensors(folder / WEIGHTS, tensors)
    with pytest.raises(ValueError, match=r"the row scales of mapping\.W_h\.weight do not fit it"):
        Tagger.load(folder)


@pytest.mark.usefixtures("without_typecheck")
def test_other_numbers_of_bits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bits=4 was given, but weights are stored in 32, 16 or 8 bits"):
        tagger().save(tmp_path / "m", bits=4)  # type: ignore[arg-type]
    assert not (tmp_path / "m").exists()


def test_a_default_configuration_survives(tmp_path: Path) -> None:
    config = TaggerConfig(shape=(4,), widths=(5, 3))
    assert Tagger.load(Tagger(config).save(tmp_path / "m")).config == config


def test_saving_again_replaces_the_model(saved: Path) -> None:
    other = Tagger(replace(CONFIG, widths=(9, 7)))
    other.save(saved)
    assert Tagger.load(saved).config.widths == (9, 7)


def test_an_older_card_gets_the_defaults(saved: Path) -> None:
    """A field added later is absent from a card written before."""
    content = json.loads((saved / CARD).read_text())
    del content["model"]["norm_eps"]
    (saved / CARD).write_text(json.dumps(content))
    assert Tagger.load(saved).config.norm_eps == TaggerConfig().norm_eps


def test_groups_and_iterations_are_saved(tmp_path: Path) -> None:
    config = TaggerConfig(shape=(3, 4), widths=(8, 4))
    Tagger(config, groups=2, iterations=7).save(tmp_path, {"groups": "a note of the user's own"})
    again = Tagger.load(tmp_path)
    assert (again.groups, again.iterations) == (2, 7)
    card = json.loads((tmp_path / CARD).read_text())
    (tmp_path / CARD).write_text(json.dumps(card | {"groups": 0}))
    with pytest.raises(ValueError, match=r"config\.json: groups=0 is out of range"):
        Tagger.load(tmp_path)


def test_a_card_without_groups_and_iterations_gets_the_papers(saved: Path) -> None:
    """Version 0.1 wrote none."""
    card = json.loads((saved / CARD).read_text())
    (saved / CARD).write_text(json.dumps({name: card[name] for name in ("format", "model", "card")}))
    model = Tagger.load(saved)
    assert (model.groups, model.iterations) == (4, 5)


@pytest.mark.usefixtures("without_typecheck")
def test_whole_numbers_stand_for_floats(saved: Path) -> None:
    edit_card(saved, scale=2)
    assert Tagger.load(saved).config.scale == 2.0


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [CARD, WEIGHTS])
def test_missing_files(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} does not exist: name a folder that holds {name}"):
        Tagger.load(saved)


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_truncated_weights(saved: Path, kept: float) -> None:
    content = (saved / WEIGHTS).read_bytes()
    (saved / WEIGHTS).write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match=r"is not a whole safetensors file .*: copy or train it again"):
        Tagger.load(saved)


def test_weights_with_a_tail(saved: Path) -> None:
    with open(saved / WEIGHTS, "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        Tagger.load(saved)


class Boom:
    """Unpickling this would be seen."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(saved: Path) -> None:
    (saved / WEIGHTS).write_bytes(pickle.dumps(Boom()))
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        Tagger.load(saved)
    torch.save({"w": Boom()}, saved / WEIGHTS)
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        Tagger.load(saved)
    (saved / CARD).write_bytes(pickle.dumps(Boom()))
    with pytest.raises(ValueError, match="is not JSON"):
        Tagger.load(saved)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is not JSON"),
        ('{"format": 1, "mod', "is not JSON .*: copy or write it again"),
        ("[1, 2]", "holds a list, but an object with fields is expected"),
        ("{}", "is not a taggernet model card of format 1: was it edited"),
        ('{"format": 2, "model": {}}', "is not a taggernet model card of format 1"),
        ('{"format": 1, "model": []}', "is not a taggernet model card of format 1"),
    ],
)
def test_cards_that_are_not_cards(saved: Path, content: str, sentence: str) -> None:
    (saved / CARD).write_text(content)
    with pytest.raises(ValueError, match=sentence):
        Tagger.load(saved)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("depth", 3, r"has unknown fields \['depth'\] in TaggerConfig: expected some of"),
        ("shape", 40, "shape=40 is not a list of integers"),
        ("shape", [5, 8.0], r"shape=\(5, 8\.0\) is not a list of integers"),
        ("shape", [5, True], r"shape=\(5, True\) is not a list of integers"),
        ("shape", [5, -8], r"shape=\(5, -8\) is out of range"),
        ("widths", [30], r"widths=\(30,\) is out of range"),
        ("widths", None, "widths=None is not a list of integers"),
        ("kind", "grey", "kind='grey' is not known"),
        ("kind", 1, "kind=1 is not known: choose one of 'binary', 'real'"),
        ("classes", "3", "classes='3' is not an integer"),
        ("classes", True, "classes=True is not an integer"),
        ("classes", -3, "classes=-3 is out of range"),
        ("noise", "0.2", "noise='0.2' is not a number"),
        ("noise", True, "noise=True is not a number"),
        ("noise", -0.2, r"noise=-0\.2 is out of range"),
        ("v_start", 0, r"v_start=0\.0 is out of range"),
        ("scale", math.nan, "scale=nan is out of range"),
        ("norm", "group", "norm='group' is not known: choose one of 'batch', 'layer'"),
        ("gate", "open", "gate='open' is not known: choose one of 'auto', 'plain', 'stable'"),
        ("top", "tanh", "'tanh' is not known"),
        ("feedback", "z", "'z' is not known"),
        ("delta_z", "eq5", "'eq5' is not known"),
        ("ratio_variance", "v", "'v' is not known"),
        ("mean", math.nan, "mean=nan is out of range"),
        ("mean", 10**400, "mean=inf is out of range"),
        ("v_start", 1e308, r"v_start=1e\+308 is out of range"),
        ("shape", [10**5, 10**5], "has more than 10,000,000 elements: give smaller inputs"),
        ("widths", [10**9, 10], r"widths=\(1000000000, 10\) is out of range"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_cards_with_a_wrong_field(saved: Path, field: str, value: Any, sentence: str) -> None:
    edit_card(saved, **{field: value})
    with pytest.raises(ValueError, match=sentence):
        Tagger.load(saved)


@pytest.mark.parametrize("change", [{"widths": [30, 21, 10]}, {"shape": [5, 9]}, {"classes": 4}])
def test_cards_that_do_not_fit_the_weights(saved: Path, change: dict[str, Any]) -> None:
    edit_card(saved, **change)
    with pytest.raises(ValueError, match=r"has shape \(.*\), but its card says \(.*\)"):
        Tagger.load(saved)


def test_another_number_of_levels(saved: Path) -> None:
    edit_card(saved, widths=[30, 20])
    with pytest.raises(ValueError, match=r"does not fit its card: missing nothing, unknown \['mapping\."):
        Tagger.load(saved)


def test_missing_and_unknown_weights(saved: Path) -> None:
    edit_weights(saved, w=None, v=torch.zeros(1))
    with pytest.raises(ValueError, match=r"does not fit its card: missing \['w'\], unknown \['v'\]"):
        Tagger.load(saved)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 2)])
def test_wrong_shapes(saved: Path, shape: tuple[int, ...]) -> None:
    edit_weights(saved, w=torch.zeros(shape))
    with pytest.raises(ValueError, match=r"w has shape \(.*\), but its card says \(1, 1, 1\)"):
        Tagger.load(saved)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite(saved: Path, bad: float) -> None:
    edit_weights(saved, w=torch.full((1, 1, 1), bad))
    with pytest.raises(ValueError, match=r"w holds NaN or infinite values: train or copy the model again"):
        Tagger.load(saved)


def test_a_model_with_another_mapping_is_not_saved_as_a_ladder(tmp_path: Path) -> None:
    """The card only describes the mappings of the package, so such a folder could not be read back."""
    model = Tagger(TaggerConfig(shape=(6,), widths=(5, 3)), MLPMapping(6, (8,)))
    with pytest.raises(TypeError, match="is a MLPMapping, but a model card only describes the package's own"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_half_precision_refuses_weights_that_overflow(tmp_path: Path) -> None:
    """Else the folder is written and refuses to load: float16 ends at 65504."""
    model = tagger()
    with torch.no_grad():
        model.mapping.W_h.weight[0, 0] = 1e5  # type: ignore[union-attr, index]
    with pytest.raises(ValueError, match=r"W_h\.weight holds 100000, but half precision ends at 65504"):
        model.save(tmp_path / "m", bits=16)
    assert not (tmp_path / "m").exists()
    assert torch.equal(Tagger.load(model.save(tmp_path / "m")).mapping.W_h.weight, model.mapping.W_h.weight)  # type: ignore[union-attr]
