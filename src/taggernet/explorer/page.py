"""The page as gradio Blocks: controls on one side, the stage on the other, and the human test beside them."""

from __future__ import annotations

import functools
from html import escape
from typing import Any

import gradio as gr
from gradio.events import api

from taggernet.explorer import canvas
from taggernet.explorer.handlers import Answers, ContestAnswers
from taggernet.explorer.quiz import CLASSES, Contest, Round
from taggernet.explorer.quiz_html import board
from taggernet.explorer.scenes import MAX_OBJECTS
from taggernet.explorer.session import FEWEST_GROUPS, MOST_GROUPS, MOST_ITERATIONS, Explorer, Settings
from taggernet.explorer.stage_html import stage

WAITING = 256
"""Questions that may wait; more are refused."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
MODEL: dict[str, Any] = {**QUIET, "concurrency_limit": 2, "concurrency_id": "model"}
SLIDER: dict[str, Any] = {**MODEL, "trigger_mode": "always_last"}
"""While one answer is under way, only the last of the questions that wait is asked."""


def build(explorer: Explorer, contest: Contest | None = None) -> Any:
    """The whole page; ``contest`` adds the human test."""
    with gr.Blocks(title="taggernet", analytics_enabled=False) as page:
        gr.HTML(
            '<header class="tn-title"><h1>taggernet</h1><p>Perceptual grouping without labels, watched at work</p>'
            f"<code>{escape(explorer.name)} · {escape(explorer.source.name)}</code></header>",
            apply_default_css=False,
        )
        if contest is None:
            Exploring(explorer)
        else:
            with gr.Tabs():
                with gr.Tab("Explore"):
                    Exploring(explorer)
                with gr.Tab("You against the network"):
                    contest_tab(contest)
    page.queue(max_size=WAITING, default_concurrency_limit=8)
    return page


def slider(low: float, high: float, value: float, label: str, step: float = 1, **more: Any) -> Any:
    return gr.Slider(low, high, value, step=step, label=label, buttons=[], **more)


class Exploring:
    """The tab on which scenes are grouped: its controls, and who answers them."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer, self.source, self.answers = explorer, explorer.source, Answers(explorer)
        self.choice, self.removed, self.seed = gr.State(explorer.first), gr.State([]), gr.State(0)
        with gr.Row(elem_classes="tn-main"):
            with gr.Column(scale=1, min_width=300, elem_classes="tn-side"):
                with gr.Column(elem_classes="tn-source"):
                    self._sources()
                with gr.Column(elem_classes="tn-settings"):
                    self._settings()
            with gr.Column(scale=3, min_width=300, elem_classes="tn-show"):
                self._show()
        self.asked = [self.noise, self.groups, self.iterations, self.seed]
        self.fresh = [self.choice, self.removed, self.shown, self.view]
        self._listen()
        self._listen_to_sources()
        api(self.group, api_name="group", concurrency_limit=2, concurrency_id="model")

    def _sources(self) -> None:
        source = self.source
        with gr.Tabs():
            if source.test is not None:
                with gr.Tab("Test set"):
                    self.number = slider(0, max(len(source.test) - 1, 1), 0, "Scene number", elem_id="tn-number")
                    with gr.Row():
                        self.back = gr.Button("Previous scene", size="sm", min_width=100)
                        self.forth = gr.Button("Next scene", size="sm", min_width=100)
            if source.things:
                with gr.Tab("Random"):
                    self.objects = slider(1, MAX_OBJECTS, 3, f"Number of {source.things}", elem_id="tn-objects")
                    self.roll = gr.Button("New random scene", size="sm")
            if source.pens:
                with gr.Tab("Draw"):
                    self.paper = gr.HTML(
                        "",
                        html_template=canvas.template(source, self.explorer.shape),
                        js_on_load=canvas.asset("canvas.js"),
                        setup=canvas.setup(source, self.explorer.shape),
                        apply_default_css=False,
                        elem_id="tn-canvas",
                    )
                    self.copy = gr.Button("Start from the scene shown", size="sm", visible=self.explorer.binary)

    def _settings(self) -> None:
        explorer = self.explorer
        unit = "bit flips" if explorer.binary else "sd"
        step = float(f"{explorer.most_noise / 45:.1g}")
        self.noise = slider(0, explorer.most_noise, 0, f"Noise ({unit})", step, elem_id="tn-noise")
        self.groups = slider(FEWEST_GROUPS, MOST_GROUPS, explorer.usual_groups, "Groups K", elem_id="tn-k")
        self.iterations = slider(1, MOST_ITERATIONS, explorer.usual_iterations, "Iterations T", elem_id="tn-t")
        self.again = gr.Button("New noise and random start", size="sm")

    def _show(self) -> None:
        explorer, last = self.explorer, self.explorer.usual_iterations
        first = explorer.look(explorer.first, Settings(0.0, explorer.usual_groups, last))
        with gr.Row(elem_classes="tn-player"):
            self.shown = slider(0, last, last, "Show iteration", elem_id="tn-shown", scale=5, min_width=180)
            self.play = gr.Button("▶ Play", variant="primary", scale=1, min_width=92)
        self.view = gr.HTML(
            stage(explorer, first, last, ()),
            js_on_load=canvas.asset("stage.js"),
            apply_default_css=False,
            elem_id="tn-stage",
        )

    def _listen(self) -> None:
        answers, state = self.answers, [self.choice, *self.asked]
        for changed in (self.noise, self.groups, self.iterations):
            changed.input(answers.look_at, state, self.fresh, **SLIDER)
        self.again.click(answers.again, state[:-1], [self.seed, *self.fresh], **MODEL)
        self.shown.input(answers.show, [*state, self.shown, self.removed], self.view, **SLIDER)
        self.view.group(answers.press, [*state, self.shown, self.removed], [self.removed, self.view], **MODEL)
        self.view.frame(answers.frame, [*state, self.removed], [self.shown, self.view], **MODEL)
        self.play.click(answers.play, [*state, self.removed], [self.shown, self.view], concurrency_limit=16, **QUIET)

    def _listen_to_sources(self) -> None:
        answers, source = self.answers, self.source
        if source.test is not None:
            self.number.input(answers.pick, [self.number, *self.asked], self.fresh, **SLIDER)
            for button, by in ((self.back, -1), (self.forth, 1)):
                turn = functools.partial(answers.turn, by)
                button.click(turn, [self.number, *self.asked], [self.number, *self.fresh], **MODEL)
        if source.things:
            made = [self.objects, self.choice, *self.asked]
            self.objects.input(answers.make, made, self.fresh, **SLIDER)
            self.roll.click(answers.make, made, self.fresh, **MODEL)
        if source.pens:
            self.paper.draw(answers.draw, self.asked, self.fresh, **SLIDER)
            self.copy.click(answers.copy, self.choice, self.paper, **MODEL)

    def group(self, scene: int, noise: float, groups: int, iterations: int, seed: int) -> str:
        """For programs: the stage of a test scene after the last iteration, as HTML."""
        return self.answers.pick(scene, noise, groups, iterations, seed)[-1]


def contest_tab(contest: Contest) -> None:
    """Name the two digits."""
    answers, first = ContestAnswers(contest), Round(0)
    state = gr.State(first)
    view = gr.HTML(board(contest, first), apply_default_css=False, elem_id="tn-board")
    digits = [str(digit) for digit in range(CLASSES)]
    named = gr.CheckboxGroup(digits, label="Digits you see: two, or one if both are the same", elem_id="tn-digits")
    with gr.Row():
        answer = gr.Button("Answer", variant="primary")
        following = gr.Button("Next scene")
    gr.on(None, answers.begin, None, [state, view], **QUIET)
    answer.click(answers.answer, [state, named], [state, view], **MODEL)
    following.click(answers.following, state, [state, named, view], **MODEL)
