"""The Hugging Face Hub: download a model, upload a model.

huggingface_hub is imported only when the Hub is used. Only model.safetensors and config.json are ever downloaded, and
nothing is unpickled: the base mixin uploads them, as the one for PyTorch falls back to pickles.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

from taggernet.errors import first_line
from taggernet.fileio import read_json
from taggernet.model_io import CARD, WEIGHTS

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
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


def is_hub_id(name: object) -> bool:
    """Whether this could name a model on the Hub: owner/name."""
    return isinstance(name, str) and _HUB_ID.fullmatch(name) is not None


def download(hub_id: str, revision: str | None = None) -> Path:
    """The local folder of a model on the Hub, downloaded unless it is in the cache already."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        folder = Path(snapshot_download(hub_id, revision=revision, allow_patterns=[WEIGHTS, CARD]))
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        what = f"model {hub_id!r}" if isinstance(error, RepositoryNotFoundError) else f"{revision!r} of {hub_id!r}"
        raise ValueError(
            f"the Hub has no {what} that you may read, and there is no such folder here: check the name, or log in "
            "with 'hf auth login'"
        ) from None
    except Exception as error:  # the Hub's client passes on whatever its transport raises
        raise OSError(
            f"{hub_id!r} is not a local folder and could not be downloaded from the Hub ({type(error).__name__}): "
            "connect to the network, or download it elsewhere and give its folder"
        ) from None
    if not ((folder / WEIGHTS).is_file() and (folder / CARD).is_file()):
        raise ValueError(f"{hub_id!r} is on the Hub but holds no {WEIGHTS} and {CARD}: it is not a taggernet model")
    for name in (WEIGHTS, CARD):
        _check_sum(folder / name, hub_id)
    return folder


def _check_sum(path: Path, hub_id: str) -> None:
    """The Hub's client checks the length of what came; its cache names each file by its checksum, which we check."""
    stored = path.resolve()
    if not path.is_symlink() or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", stored.name):
        return  # a cache without links, or a name that is no checksum
    content = stored.read_bytes()
    if len(stored.name) == 64:
        found = hashlib.sha256(content).hexdigest()
    else:  # a file that git keeps itself
        found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if found != stored.name:
        path.unlink()
        stored.unlink()
        raise OSError(f"{path.name} of {hub_id!r} came with a wrong checksum and was not kept: fetch it again")


def upload(files: Path, hub_id: str, *, private: bool, message: str) -> str:
    """Upload the model in a folder, with a model page unless the repository has one; returns its address."""
    try:
        _push(files, hub_id, private, message)
    except Exception as error:  # the Hub's client passes on whatever its transport raises
        raise OSError(
            f"{hub_id!r} could not be uploaded to the Hub ({type(error).__name__}: {first_line(error)}): "
            "connect to the network and log in with 'hf auth login'"
        ) from None
    return f"https://huggingface.co/{hub_id}"


def _push(files: Path, hub_id: str, private: bool, message: str) -> None:
    from huggingface_hub import HfApi, ModelHubMixin

    class HubModel(
        ModelHubMixin,
        library_name="taggernet",
        tags=["tagger", "perceptual-grouping", "object-centric", "unsupervised"],
        paper_url="https://arxiv.org/abs/1606.06724",
        model_card_template=TEMPLATE,
    ):
        """The two files of a model, as the mixin sees them: it makes the repository, the page and the upload."""

        def _save_pretrained(self, save_directory: Path) -> None:
            for name in (WEIGHTS, CARD):
                shutil.copy(files / name, save_directory)

    content = read_json(files / CARD)
    config, card = content["model"], content["card"]
    has_page = HfApi(library_name="taggernet").file_exists(hub_id, PAGE)  # it may have been edited and is left alone
    HubModel().push_to_hub(
        hub_id,
        commit_message=message,
        private=private,
        allow_patterns=[WEIGHTS, CARD] if has_page else [WEIGHTS, CARD, PAGE],
        model_card_kwargs={
            "hub_id": hub_id,
            "shape": " x ".join(map(str, config["shape"])),
            "kind": config["kind"],
            "notes": f"```json\n{json.dumps(card, indent=2)}\n```" if card else "",
        },
    )
