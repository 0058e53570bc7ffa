"""Everything the page needs, by its address: its own files, the models' files as they are, and scenes to show.

``serve`` hands these out on this machine; ``Bundle.write`` puts them into a folder, for any static host.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from taggernet import data
from taggernet.data import Scenes
from taggernet.explorer.shown_model import Content, ShownModel, as_tensors, shown_model
from taggernet.fileio import make_folder
from taggernet.model_io import CARD, WEIGHTS
from taggernet.pretrained import shipped
from taggernet.tagger import Tagger

PAGE = Path(__file__).parent / "page"
DIGITS, LIST, SCENES = "digits.safetensors", "models.json", "scenes.safetensors"


@dataclass(frozen=True)
class Bundle:
    """Files by their address, relative to the page; a path is read when it is asked for."""

    files: dict[str, Content]

    def read(self, address: str) -> bytes | None:
        """The content of a file, None if there is no such file."""
        content = self.files.get(address)
        return content.read_bytes() if isinstance(content, Path) else content

    def write(self, folder: Path) -> None:
        """Write all files, for a static host."""
        for address in self.files:
            path = folder / address
            make_folder(path.parent)
            path.write_bytes(self.read(address) or b"")


def bundle(model: Tagger | str | Path = "shapes", scenes: Scenes | None = None) -> Bundle:
    """The page for a model, which it opens with; the shipped models can be chosen on it as well."""
    others = [name for name in shipped() if name != model]
    models = [shown_model(model, scenes), *map(shown_model, others)]
    images, labels = data.fixture_digits("test")
    files: dict[str, Content] = {p.relative_to(PAGE).as_posix(): p for p in sorted(PAGE.rglob("*")) if p.is_file()}
    files[DIGITS] = as_tensors(images=images, labels=labels)
    entries = []
    for number, one in enumerate(models):
        folder = f"models/{number}"
        files |= {f"{folder}/{WEIGHTS}": one.weights, f"{folder}/{CARD}": one.card}
        if one.scenes is not None:
            files[f"{folder}/{SCENES}"] = one.scenes
        entries.append(_entry(one, folder))
    files[LIST] = json.dumps({"digits": DIGITS, "models": entries}).encode()
    return Bundle(files)


def _entry(model: ShownModel, folder: str) -> dict[str, object]:
    """A line of the list of models."""
    return {
        "name": model.name,
        "weights": f"{folder}/{WEIGHTS}",
        "card": f"{folder}/{CARD}",
        "world": model.world,
        "objects": model.objects,
        **model.details,
        "scenes": None if model.scenes is None else f"{folder}/{SCENES}",
    }
