"""A model on the Hugging Face Hub, by huggingface_hub's mixin: it makes the repository, the page and the upload.

Imported only when a model is pushed, so that neither training nor use waits for it or needs it. The base mixin is used
and not the one for PyTorch, which falls back to unpickling; the files are ours, as ``storage`` writes them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from huggingface_hub import HfApi, ModelHubMixin

from taggernet.fileio import read_json
from taggernet.model_io import CARD, WEIGHTS

PAGE = "README.md"
TEMPLATE = """---
{{ card_data }}
---

# {{ hub_id }}

A Tagger for inputs of shape {{ shape }} ({{ kind }}): it splits them into groups without having been told what an
object is (Greff et al., [Tagger: Deep Unsupervised Perceptual Grouping]({{ paper_url }}), NIPS 2016).

```python
import taggernet as tn

model = tn.Tagger.from_pretrained("{{ hub_id }}")
out = model.group(x, groups=4, iterations=5)
out.masks, out.reconstructions, out.labels
```

{{ notes }}
"""


class HubModel(
    ModelHubMixin,
    library_name="taggernet",
    tags=["tagger", "perceptual-grouping", "object-centric", "unsupervised"],
    paper_url="https://arxiv.org/abs/1606.06724",
    model_card_template=TEMPLATE,
):
    """A Tagger as the mixin sees it."""

    files: Path
    """Where its two files are."""

    def _save_pretrained(self, save_directory: Path) -> None:
        for name in (WEIGHTS, CARD):
            shutil.copy(self.files / name, save_directory)


def upload(files: Path, hub_id: str, *, private: bool, message: str) -> None:
    """Push the two files of a folder, and a page unless the repository has one."""
    content = read_json(files / CARD)
    config, card = content["model"], content["card"]
    hub = HubModel()
    hub.files = files
    hub.push_to_hub(
        hub_id,
        commit_message=message,
        private=private,
        allow_patterns=[WEIGHTS, CARD] if _has_page(hub_id) else [WEIGHTS, CARD, PAGE],
        model_card_kwargs={
            "hub_id": hub_id,
            "shape": " x ".join(map(str, config["shape"])),
            "kind": config["kind"],
            "notes": f"```json\n{json.dumps(card, indent=2)}\n```" if card else "",
        },
    )


def _has_page(hub_id: str) -> bool:
    """Whether there is a page already, which may have been edited and is left alone."""
    return HfApi(library_name="taggernet").file_exists(hub_id, PAGE)
