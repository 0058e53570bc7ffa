"""Line charts as SVG text for a page: no library, no script, colours by the page's style sheet.

Lines that stand for several seeds are faint, but for the one that is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 210
LEFT, RIGHT, TOP, BOTTOM = 48, 22, 10, 38


@dataclass(frozen=True)
class Line:
    """Points of one line. ``role`` is its class in the style sheet: a, b; faint ones stand back."""

    x: Sequence[int | float]
    y: Sequence[float]
    role: str = "a"
    faint: bool = False


def line_chart(
    lines: Sequence[Line],
    title: str,
    across: str,
    *,
    low: float | None = None,
    high: float | None = None,
    legend: dict[str, str] | None = None,
) -> str:
    """A figure with its caption; ``low`` and ``high`` are values that the vertical axis must reach."""
    ys = [y for line in lines for y in line.y if math.isfinite(y)]
    xs = [x for line in lines for x in line.x]
    bottom, top = nice_range(min([*ys, *([] if low is None else [low])]), max([*ys, *([] if high is None else [high])]))
    left, right = min(xs), max(xs)
    right = right if right > left else left + 1

    def place(x: int | float, y: int | float) -> tuple[float, float]:
        return (
            LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT),
            TOP + (top - y) / (top - bottom) * (HEIGHT - TOP - BOTTOM),
        )

    parts = []
    for tick in ticks(bottom, top):
        _, y = place(left, tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in ticks(left, right, whole=True):
        x, _ = place(tick, bottom)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{short(tick)}</text>')
    parts.append(f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 3}" text-anchor="middle">'
                 f"{escape(across)}</text>")  # fmt: skip
    for line in sorted(lines, key=lambda one: not one.faint):
        points = " ".join(
            "{:.1f},{:.1f}".format(*place(x, y)) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(y)
        )
        classes = f"line {line.role}{' faint' if line.faint else ''}"
        parts.append(f'<polyline class="{classes}" points="{points}"/>')
        if len(line.x) <= 12 and not line.faint:
            parts += [
                f'<circle class="dot {line.role}" cx="{place(x, y)[0]:.1f}" cy="{place(x, y)[1]:.1f}" r="2.6"/>'
                for x, y in zip(line.x, line.y, strict=True)
                if math.isfinite(y)
            ]
    keys = "".join(f'<span class="key {role}">{escape(words)}</span>' for role, words in (legend or {}).items())
    return (
        f'<figure class="chart"><figcaption>{escape(title)}{keys}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg></figure>'
    )


def nice_range(low: float, high: float) -> tuple[float, float]:
    """A range a little larger than the values, never empty."""
    spread = high - low
    if spread <= 1e-9 * max(1.0, abs(low), abs(high)):
        spread = max(1e-3, abs(high) / 10)
        return low - spread, high + spread
    return low - 0.04 * spread, high + 0.04 * spread


def ticks(low: int | float, high: int | float, *, whole: bool = False) -> list[float]:
    """Three to six round numbers within a range."""
    step = 10.0 ** math.floor(math.log10(high - low))
    for size in (0.2, 0.5, 1.0, 2.0):
        if (high - low) / (size * step) <= 6:
            step *= size
            break
    if whole:
        step = max(1.0, step)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def short(number: int | float) -> str:
    """As few characters as tell it apart from its neighbours: 0.25, 12, 2,000, 40k."""
    if abs(number) >= 10_000:
        return f"{number / 1000:g}k"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.6g}"
