"""The table of the field's own benchmarks as markdown: records under results/objects in."""

from __future__ import annotations

from pathlib import Path

from paper.markdown import DASH, links, mean_sd, table
from paper.objects import ROWS, read, seconds_per_seed, seed_scores
from paper.published import OBJECTS

HEAD = ("data", "values alone", "first masks alone", "Tagger", "Slot Attention, trained here", "published")


def objects_table(results: Path, root: str | None = None) -> str:
    """Foreground ARI on test scenes; ``root`` leads from the page to the repository and adds links."""
    rows = [_row(name, results, root) for name in ROWS if (results / f"untrained-{name}.json").exists()]
    return "\n".join(table("", HEAD, rows))


def _row(name: str, results: Path, root: str | None) -> list[str]:
    untrained = read(results, f"untrained-{name}")
    assert untrained is not None
    alone = [f"{untrained['test'][of]['mean']:.3f}" for of in ("values", "start")]
    trained = [_trained(results, file) for file in (name, f"slots-{name}")]
    published = ", ".join(f"{method} {figure}" for method, figure in OBJECTS.get(name, {}).items()) or DASH
    files = {"record": name, "untrained": f"untrained-{name}", "slots": f"slots-{name}"}
    paths = {word: f"results/objects/{file}.json" for word, file in files.items() if read(results, file) is not None}
    return [
        name + ("" if root is None else links("src/taggernet/recipes/objects.py", paths, root)),
        *alone,
        *trained,
        published,
    ]


def _trained(results: Path, file: str) -> str:
    """Mean and spread over seeds, with their number and the time that one takes."""
    record = read(results, file)
    if record is None:
        return DASH
    scores = seed_scores(record)
    text = mean_sd(scores) if len(scores) > 1 else f"{scores[0]:.3f}"
    return f"{text} (n={len(scores)}, {seconds_per_seed(record):.0f} s each)"
