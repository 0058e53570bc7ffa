"""The table of the field's own benchmarks as markdown: records under results/objects in."""

from __future__ import annotations

from pathlib import Path

from paper.markdown import DASH, links, mean_sd, table
from paper.objects import ROWS, read, seconds_per_seed, seed_scores
from paper.published import OBJECTS
from paper.records import Record

HEAD = ("data", "values alone", "first masks alone", "Tagger", "Slot Attention, trained here", "published")


def objects_table(results: Path, root: str | None = None) -> str:
    """Foreground ARI on test scenes; ``root`` leads from the page to the repository and adds links."""
    return "\n".join(table("", HEAD, [row for name in ROWS if (row := _row(name, results, root))]))


def _row(name: str, results: Path, root: str | None) -> list[str]:
    """The cells of a row; none without its record of what needs no training."""
    files = {"record": name, "untrained": f"untrained-{name}", "slots": f"slots-{name}"}
    records = {word: found for word, file in files.items() if (found := read(results, file)) is not None}
    if "untrained" not in records:
        return []
    alone = [f"{records['untrained']['test'][of]['mean']:.3f}" for of in ("values", "start")]
    trained = [_trained(records.get(word)) for word in ("record", "slots")]
    published = ", ".join(f"{method} {figure}" for method, figure in OBJECTS.get(name, {}).items()) or DASH
    paths = {word: f"results/objects/{files[word]}.json" for word in records}
    title = name if root is None else name + links("src/taggernet/recipes/objects.py", paths, root)
    return [title, *alone, *trained, published]


def _trained(record: Record | None) -> str:
    """Mean and spread over seeds, with their number and the time that one takes."""
    if record is None:
        return DASH
    scores = seed_scores(record)
    text = mean_sd(scores) if len(scores) > 1 else f"{scores[0]:.3f}"
    return f"{text} (n={len(scores)}, {seconds_per_seed(record):.0f} s each)"
