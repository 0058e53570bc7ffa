"""The stage: what a look shows, as HTML. Groups and iterations on it are buttons that the page listens to.

# K groups · T iterations · C classes
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from taggernet.arrays import Array
from taggernet.config.validate import check_count
from taggernet.explorer.pictures import Painter, img
from taggernet.explorer.session import Explorer, Look
from taggernet.viz.colours import group_colour

COLUMNS = {2: 2, 3: 3, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4}
"""Of the cards of K groups, on a wide screen."""
NAMED = 2
"""How many of the likeliest classes the stage names."""


def stage(explorer: Explorer, look: Look, iteration: int, removed: Sequence[int]) -> str:
    """Everything about one iteration, with these groups taken away."""
    iteration = check_count("iteration", iteration, low=0, high=look.iterations)
    painter = Painter(explorer.binary, explorer.low, explorer.high)
    shares = explorer.class_shares(look, iteration)
    parts = [
        _pictures(explorer, painter, look, iteration, removed),
        _facts(look, iteration, removed, shares),
        '<h3 class="tn-head">Groups <small>press one to take it away, again to bring it back</small></h3>',
        _groups(painter, look, iteration, removed, shares),
        '<h3 class="tn-head">Iterations <small>how the groups form</small></h3>',
        _film(painter, look, iteration),
    ]
    return f'<div class="tn-stage">{"".join(parts)}</div>'


def names(groups: Sequence[int]) -> str:
    """'group 1', 'groups 1 and 3': counted from one, as people do."""
    numbers = [str(k + 1) for k in groups]
    if len(numbers) == 1:
        return f"group {numbers[0]}"
    return f"groups {', '.join(numbers[:-1])} and {numbers[-1]}"


def _pictures(explorer: Explorer, painter: Painter, look: Look, iteration: int, removed: Sequence[int]) -> str:
    z, m, picture = look.without(iteration, removed)
    changed = bool((look.x_tilde != look.scene.x).any())
    caption = "with noise" if changed else look.scene.title
    rest = f"without {names(removed)}" if removed else "from all groups"
    return (
        '<div class="tn-pictures">'
        + _figure("input", "Input", caption, img(painter.plain(look.x_tilde), f"The input, {caption}"))
        + _figure("colour", "In colour", "who explains what", img(painter.together(z, m), "Groups in their colours"))
        + _figure("scene", "Rebuilt", rest, img(painter.plain(picture), f"The scene rebuilt {rest}"))
        + "</div>"
    )


def _figure(name: str, title: str, caption: str, picture: str) -> str:
    return (
        f'<figure class="tn-picture" data-picture="{name}">{picture}'
        f"<figcaption><b>{title}</b><span>{escape(caption)}</span></figcaption></figure>"
    )


def _facts(look: Look, iteration: int, removed: Sequence[int], shares: Array | None) -> str:
    if look.ami is None:
        why = "the truth is unknown" if look.scene.groups is None else "no element can be scored"
        facts = [("AMI", "—", why, "ami")]
    else:
        facts = [("AMI", _two(look.ami[iteration]), "of at most 1", "ami")]
    facts.append(("Iteration", f"{iteration}", f"of {look.iterations}" if iteration else "the random start", "at"))
    if shares is not None:
        kept = shares[[k for k in range(len(shares)) if k not in removed]].sum(0)
        kept = kept / max(float(kept.sum()), 1e-12)
        best = kept.argsort(kind="stable")[::-1][:NAMED]
        seen = " · ".join(f"{c} ({kept[c]:.0%})" for c in best)
        truth = f"truly {' and '.join(map(str, look.scene.classes))}" if look.scene.classes else "the likeliest classes"
        facts.append(("Reads", seen, truth, "reads"))
    return (
        '<dl class="tn-facts">'
        + "".join(
            f'<div data-fact="{key}"><dt>{name}</dt><dd><strong>{escape(value)}</strong>'
            f"<span>{escape(note)}</span></dd></div>"
            for name, value, note, key in facts
        )
        + "</dl>"
    )


def _groups(painter: Painter, look: Look, iteration: int, removed: Sequence[int], shares: Array | None) -> str:
    z, m, _ = look.without(iteration, ())
    top = float(shares.max()) if shares is not None else 0.0
    cards = []
    for k in range(len(z)):
        gone = k in removed
        pictures = (
            ("z", "looks like", img(painter.plain(z[k]), f"Group {k + 1}: what it looks like, z")),
            ("m", "is where", img(painter.mask(m[k], k), f"Group {k + 1}: where it is, m")),
            ("m·z", "adds", img(painter.alone(z[k], m[k], k), f"Group {k + 1}: what it adds, m times z")),
        )
        cells = "".join(
            f'<span class="tn-cell">{p}<span><i>{s}</i> <small>{t}</small></span></span>' for s, t, p in pictures
        )
        bars = _bars(shares[k], top) if shares is not None else ""
        cards.append(
            f'<button type="button" class="tn-card" data-group="{k}" data-focus="group-{k}" '
            f'aria-pressed="{"true" if gone else "false"}" style="--group:{group_colour(k)}" '
            f'aria-label="Group {k + 1}, {"taken away: bring it back" if gone else "shown: take it away"}">'
            f'<span class="tn-name"><span class="tn-dot"></span>Group {k + 1}'
            f"<em>{'taken away' if gone else ''}</em></span>"
            f'<span class="tn-cells">{cells}</span>{bars}</button>'
        )
    return f'<div class="tn-groups" style="--columns:{COLUMNS[len(z)]}">{"".join(cards)}</div>'


def _bars(shares: Array, top: float) -> str:
    """A bar per class, all groups on one scale."""
    bars = "".join(
        f'<span class="tn-bar" title="class {c}: {share:.1%}">'
        f'<span style="height:{100 * share / max(top, 1e-12):.1f}%"></span><b>{c}</b></span>'
        for c, share in enumerate(shares)
    )
    best = int(shares.argmax())
    label = f"Classes: most likely {best}, {shares[best]:.0%} of the whole scene"
    return f'<span class="tn-bars" role="img" aria-label="{label}">{bars}</span>'


def _film(painter: Painter, look: Look, iteration: int) -> str:
    frames = []
    for i in range(look.iterations + 1):
        z, m, _ = look.without(i, ())
        score = "" if look.ami is None else f"<span>{_two(look.ami[i])}</span>"
        frames.append(
            f'<button type="button" class="tn-frame" data-iteration="{i}" data-focus="iteration-{i}" '
            f'aria-label="Show iteration {i}"{" aria-current=step" if i == iteration else ""}>'
            f"{img(painter.together(z, m), f'Groups after iteration {i}')}<span><b>{i}</b>{score}</span></button>"
        )
    note = '<p class="tn-note">0 is the random start.'
    note += "</p>" if look.ami is None else " The small figures are the AMI after each iteration.</p>"
    return f'<div class="tn-film">{"".join(frames)}</div>{note}'


def _two(score: float) -> str:
    """Two digits, with a minus sign where one is due."""
    return f"{round(score, 2) + 0.0:.2f}".replace("-", "−")
