"""The page of a run stands alone and says what it was given."""

from __future__ import annotations

from dataclasses import replace

from html_pages import Page

from taggernet.grouping_report import GroupingReport
from taggernet.viz.report_html import ReportContent, report_html

FORMED = GroupingReport(3, [0.9, 0.9], [0.8, 0.9], [2.5, 2.5])
UNDECIDED = GroupingReport(3, [0.1], [0.9], [2.5])
CONTENT = ReportContent(
    title="<mine>.npz",
    subtitle="40 scenes",
    binary=False,
    verdict=FORMED,
    seeds=[4, 5],
    best=5,
    steps=[10, 20],
    history=[{"cost": [[0.9, 0.8], [0.9, 0.7]]}, {"cost": [[0.5, 0.4], [0.5, 0.3]]}],
    agreements=[[0.1, 0.2], [0.8, 0.9]],
    by_iteration=[0.3, 0.9],
    scenes="<article class='scene image'></article>",
    settings={"noise": "0.6 & more"},
    commands=[("Group more:", "taggernet group 'a b' x.npz --out y.npz")],
)


def test_it_refers_to_nothing_else_and_forbids_it() -> None:
    page = Page(report_html(CONTENT))
    assert page.addresses == []
    (policy,) = [of["content"] for of in page.all("meta") if of.get("http-equiv")]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert not page.all("script")
    assert "url(" not in report_html(CONTENT)
    assert "prefers-color-scheme: dark" in report_html(CONTENT)


def test_it_says_what_it_was_given() -> None:
    page = Page(report_html(CONTENT))
    for words in (
        "<mine>.npz", "Groups formed", "agreement of random starts 0.85", "grouped by seed 5", "0.6 & more",
        "taggernet group 'a b' x.npz --out y.npz", "5 (shown)",
    ):  # fmt: skip
        assert words in page.text
    assert len(page.all("figure", "chart")) == 4
    assert "What was tuned" not in page.text
    assert page.all("div", "formed")


def test_the_truth_stands_in_the_verdict_where_it_is_known() -> None:
    known = [of | {"ami": [[0.1, 0.2], [0.1, 0.4]]} for of in CONTENT.history]
    page = Page(report_html(replace(CONTENT, history=known)))
    assert "AMI with the true groups of held-out scenes: 0.30" in page.text
    assert "AMI" not in Page(report_html(CONTENT)).text


def test_advice_stands_in_the_verdict() -> None:
    page = Page(report_html(replace(CONTENT, verdict=UNDECIDED, seeds=[5], agreements=[], by_iteration=[])))
    assert "No groups formed" in page.text
    assert "Masks are undecided; train longer (more --updates ), or try the other --norm" in page.text
    assert not page.all("div", "formed")
    assert "Seeds" not in page.text
    assert len(page.all("figure", "chart")) == 2, "cost alone"


def test_the_truth_is_a_second_line() -> None:
    history = [{**metrics, "ami": [[0.1, 0.2], [0.3, 0.6]]} for metrics in CONTENT.history]
    page = Page(report_html(replace(CONTENT, history=history)))
    assert len(page.all("polyline", "b")) == 4, "two seeds, over training and over iterations"
    assert page.text.count("with the true groups (AMI)") == 2
    assert "AMI" in page.text.split("Seeds")[1]


def test_without_records_or_scenes_the_rest_is_there() -> None:
    page = Page(report_html(replace(CONTENT, history=[], steps=[], agreements=[], scenes="", verdict=None)))
    assert not page.all("figure")
    assert "How to go on" in page.text


def test_what_was_tuned_is_a_table() -> None:
    tuning = [
        {"norm": "batch", "widths": [64, 32], "noise": 0.6, "agreement": 0.912, "chosen": True},
        {"norm": "layer", "lr": 1e-05, "agreement": None},
    ]
    page = Page(report_html(replace(CONTENT, tuning=tuning)))
    words = page.text.split("What was tuned")[1]
    assert "norm widths noise agreement lr batch 64-32 0.600 0.912 – layer – – – 1e-05" in words
    assert len(page.all("tr", "chosen")) == 2, "the setting chosen, and the seed shown"
    many = Page(report_html(replace(CONTENT, tuning=[{"noise": 0.1}] * 45)))
    assert "5 more are in tuning.json" in many.text


def test_binary_scenes_explain_their_masks() -> None:
    page = Page(report_html(replace(CONTENT, binary=True)))
    assert "pale where the scene is 0" in page.text
