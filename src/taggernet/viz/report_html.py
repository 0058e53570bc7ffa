"""The page of a run: did groups form, how do they look, how did training go, what was chosen, how to go on.

# S seeds · T iterations

One file that refers to no other: style and pictures are inside, and its policy forbids anything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from taggernet.evaluation import Metrics
from taggernet.grouping_report import GroupingReport, beside_truth
from taggernet.viz.svg import Line, line_chart

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
MOST_TUNED = 40
NAMES = {"ami": "AMI", "ari": "ARI", "ami_arithmetic": "AMI (arithmetic)", "error": "class error"}


@dataclass(frozen=True)
class ReportContent:
    """What the page shows."""

    title: str
    subtitle: str
    binary: bool
    verdict: GroupingReport | None
    seeds: list[int]
    best: int
    """The seed whose groups are shown."""
    steps: list[int]
    """Updates after which the run was evaluated."""
    history: list[Metrics]
    """The metrics on validation at each of them."""
    agreements: list[list[float]]
    """Agreement of random starts at each of them, by seed; empty where it was not recorded."""
    by_iteration: list[float]
    """Agreement after each iteration of the seed shown; empty where there is one group."""
    scenes: str
    """As HTML."""
    settings: dict[str, str]
    commands: list[tuple[str, str]]
    """What a command is for, and the command."""
    tuning: list[dict[str, Any]] = field(default_factory=list)
    footer: str = ""


def report_html(content: ReportContent) -> str:
    sections = [
        ("Scenes and their groups", _scenes(content)),
        ("Training", _charts(content)),
        ("Seeds", _seeds(content) if len(content.seeds) > 1 else ""),
        ("What was tuned", _tuning(content.tuning) if content.tuning else ""),
        ("Settings", _settings(content.settings)),
        ("How to go on", _commands(content.commands)),
    ]
    body = "".join(f"<section><h2>{title}</h2>{html}</section>" for title, html in sections if html)
    style = files("taggernet.viz").joinpath("report.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(content.title)} · taggernet</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(content.title)}</h1><p class="soft">{escape(content.subtitle)}</p>
{_verdict(content)}</header>
<main>{body}</main>
<footer class="soft">{escape(content.footer)}</footer>
</body>
</html>
"""


def _verdict(content: ReportContent) -> str:
    report = content.verdict
    if report is None:
        return ""
    words, _, rest = str(report).partition(" (")
    numbers, _, advice = rest.partition(")")
    advice = advice.removeprefix(": ")
    formed = " formed" if any(report.formed) else ""
    sentence = re.sub(r"(--[\w-]+)", r"<code>\1</code>", escape(advice[:1].upper() + advice[1:]))
    said = f"<p>{sentence}.</p>" if advice else ""
    truth = beside_truth(content.history[-1]) if content.history else ""
    lines = "".join(f'<p class="soft">{escape(line)}</p>' for line in (numbers, truth) if line)
    return f'<div class="verdict{formed}"><strong>{escape(words[:1].upper() + words[1:])}</strong>{lines}{said}</div>'


def _scenes(content: ReportContent) -> str:
    if not content.scenes:
        return ""
    which = f" by seed {content.best}" if len(content.seeds) > 1 else ""
    pale = ", pale where the scene is 0, which any group may own" if content.binary else ""
    return (
        f'<p class="note">Held-out scenes, grouped{which} from one random start. <i>z</i> is what a group expects to '
        f"see, also where it is hidden; <i>m</i> is its mask{pale}. Every group has a colour.</p>"
        f'<div class="scenes">{content.scenes}</div>'
    )


# --- charts -------------------------------------------------------------------------------------------------------


def _charts(content: ReportContent) -> str:
    if not content.history:
        return ""
    last, shown = content.history[-1], content.seeds.index(content.best)
    charts = [_over_training(content, "cost", "Cost over training, nats per element of held-out scenes", shown)]
    truth = "ami" if "ami" in last else None
    if content.agreements or truth:
        found = {"a": content.agreements} if content.agreements else {}
        lines = [line for role, rows in found.items() for line in _by_seed(content.steps, rows, role, shown)]
        if truth:
            lines += _by_seed(content.steps, _last_iteration(content.history, truth), "b", shown)
        charts.append(_agreement_chart(lines, "update", bool(content.agreements), bool(truth)))
    iterations = list(range(1, len(last["cost"][0]) + 1))
    if len(iterations) > 1:
        costs = [Line(iterations, of_seed, "a", i != shown) for i, of_seed in enumerate(last["cost"])]
        charts.append(line_chart(costs, "Cost over iterations", "iteration"))
        lines = [Line(iterations, content.by_iteration, "a")] if content.by_iteration else []
        if truth:
            lines += [Line(iterations, of_seed, "b", i != shown) for i, of_seed in enumerate(last[truth])]
        if lines:
            charts.append(_agreement_chart(lines, "iteration", bool(content.by_iteration), bool(truth)))
    return f'<div class="charts">{"".join(charts)}</div>'


def _over_training(content: ReportContent, name: str, title: str, shown: int) -> str:
    return line_chart(
        list(_by_seed(content.steps, _last_iteration(content.history, name), "a", shown)), title, "update"
    )  # fmt: skip


def _agreement_chart(lines: list[Line], across: str, agreement: bool, truth: bool) -> str:
    names = {"a": "of random starts"} if agreement else {}
    names |= {"b": "with the true groups (AMI)"} if truth else {}
    over = "training" if across == "update" else "iterations"
    return line_chart(lines, f"Agreement over {over}", across, low=0.0, high=1.0, legend=names)


def _last_iteration(history: list[Metrics], name: str) -> list[list[float]]:
    return [[of_seed[-1] for of_seed in metrics[name]] for metrics in history]


def _by_seed(steps: Sequence[int], rows: list[list[float]], role: str, shown: int) -> list[Line]:
    """A line for each seed; ``rows`` are its values at the last of the steps."""
    steps = steps[-len(rows) :]
    return [Line(steps, [row[s] for row in rows], role, faint=s != shown) for s in range(len(rows[0]))]


# --- tables -------------------------------------------------------------------------------------------------------


def _seeds(content: ReportContent) -> str:
    columns: dict[str, list[float]] = {}
    if content.history:
        columns |= {NAMES.get(n, n.replace("_", " ")): [v[-1] for v in of] for n, of in content.history[-1].items()}
    if content.verdict is not None:
        columns |= {"confidence": content.verdict.confidence, "agreement": content.verdict.agreement,
                    "groups used": content.verdict.used}  # fmt: skip
    rows = [
        {"seed": f"{seed} (shown)" if seed == content.best else str(seed), "chosen": seed == content.best}
        | {name: values[i] for name, values in columns.items()}
        for i, seed in enumerate(content.seeds)
    ]
    return _table(rows)


def _tuning(settings: list[dict[str, Any]]) -> str:
    more = len(settings) - MOST_TUNED
    rest = f'<p class="note">{more} more are in tuning.json.</p>' if more > 0 else ""
    note = '<p class="note">Settings that were tried in short runs; scores need no true groups.</p>'
    return note + _table(settings[:MOST_TUNED]) + rest


def _table(rows: list[dict[str, Any]]) -> str:
    """A column for every name that any row has; a row whose ``chosen`` is true stands out."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "chosen"))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    lines = [
        f"<tr{' class=chosen' if row.get('chosen') else ''}>"
        + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in names)
        + "</tr>"
        for row in rows
    ]
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if 0.01 <= abs(value) < 1000 or not value else f"{value:.3g}"
    return "-".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _settings(settings: dict[str, str]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in settings.items())
    return f'<div class="wide"><table class="settings">{rows}</table></div>'


def _commands(commands: list[tuple[str, str]]) -> str:
    return "".join(f"<p>{escape(words)}</p><pre>{escape(command)}</pre>" for words, command in commands)
