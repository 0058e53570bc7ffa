"""The board of the human test: the scene, the verdict and the running errors, as HTML."""

from __future__ import annotations

import numpy as np

from taggernet.explorer.pictures import Painter, img
from taggernet.explorer.quiz import BEST_HUMAN, Contest, Round


def board(contest: Contest, state: Round) -> str:
    picture = img(Painter(False).plain(contest.x(state)), "A scene of two textured digits to name")
    return (
        '<div class="tn-board">'
        f'<figure class="tn-picture" data-picture="test">{picture}<figcaption><b>Scene {state.position + 1}</b>'
        "<span>two digits, one over the other</span></figcaption></figure>"
        f'<div class="tn-verdict" aria-live="polite">{_verdict(contest, state)}{_errors(state)}</div></div>'
    )


def _verdict(contest: Contest, state: Round) -> str:
    if not state.answer:
        return (
            "<h3>Which two digits do you see?</h3><p>Name two, or one if both are the same. Take your time: the "
            "paper's subjects needed more than 30 seconds a scene.</p>"
        )
    truth = contest.truth(state)
    right = sum(digit in state.answer for digit in truth)
    words = {0: "Neither digit", 1: "One of two", 2: "Both right"}[right]
    rows = [("Truth", truth), ("You", state.answer)]
    probabilities = contest.probabilities(state)
    if probabilities is not None:
        best = np.argsort(-probabilities, kind="stable")[:2]
        rows.append(("Network", tuple(int(c) for c in best)))
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{''.join(_digit(d, d in truth) for d in digits)}</dd></div>" for name, digits in rows
    )
    return f'<h3 data-verdict="{right}">{words}</h3><dl class="tn-answers">{cells}</dl>'


def _digit(digit: int, right: bool) -> str:
    return f'<span class="tn-digit" data-right="{"yes" if right else "no"}">{digit}</span>'


def _errors(state: Round) -> str:
    tally = state.tally
    rows = [
        ("you", "You", tally.your_error),
        ("network", "The network", tally.network_error),
        ("human", "The paper's best human", BEST_HUMAN),
    ]
    bars = "".join(
        f'<div data-error="{key}"><dt>{name}</dt><dd><span class="tn-track">'
        f'<span style="width:{100 * (error or 0):.1f}%"></span></span>'
        f"<strong>{'—' if error is None else f'{100 * error:.1f} %'}</strong></dd></div>"
        for key, name, error in rows
    )
    answered = f"{tally.scenes} scene{'' if tally.scenes == 1 else 's'} answered"
    return f'<h4>Error so far <small>{answered}</small></h4><dl class="tn-errors">{bars}</dl>'
