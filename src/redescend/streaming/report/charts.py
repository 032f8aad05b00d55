"""Small charts as inline SVG, styled by the classes of the page in light and dark mode, and a heat map as an SVG file.

The output is deterministic.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape

from redescend.numeric import Array
from redescend.streaming.report.formatting import abbreviate, format_number, format_percent

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 560.0, 66.0, 24.0, 12.0, 46.0


@dataclass(frozen=True)
class Scale:
    """Maps values to positions between 0 and 1; `log` needs positive values."""

    low: float
    high: float
    log: bool = False
    percent: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        # Halves, because the difference of two huge numbers may overflow.
        return (0.5 * value - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values for an axis, about `most` of them.

        >>> Scale(0.0, 8088.0).ticks(), Scale(0.02, 50.0, log=True).ticks()
        ([0.0, 2000.0, 4000.0, 6000.0, 8000.0], [0.1, 1.0, 10.0])
        """
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last - first >= 1:
                return [10.0**power for power in range(first, last + 1, -(-(last - first) // most))]
            return [tick for tick in Scale(self.low, self.high).ticks(4) if tick > 0.0]
        raw = (self.high / most) - (self.low / most)
        power = 10.0 ** math.floor(math.log10(raw))
        each = next(power * step for step in (1.0, 2.0, 5.0, 10.0) if power * step >= raw * (1.0 - 1e-9))
        high = min(self.high, 1.0) if self.percent else self.high
        first, last = math.ceil(self.low / each - 1e-9), math.floor(high / each + 1e-9)
        return [place * each for place in range(first, last + 1)]

    def label(self, value: float) -> str:
        """A tick label with few characters.

        >>> scale = Scale(0.0, 1.0)
        >>> [scale.label(tick) for tick in (0.0, 0.5, 2000.0, 20_000.0, 1.5e6, -1e9)]
        ['0', '0.5', '2,000', '20k', '1.5M', '-1e+09']
        """
        if self.percent:
            return f"{format_number(100.0 * value)} %"
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if max(size, 1e4) <= abs(value) < 1e9:
                return f"{value / size:g}{letter}"
        return format_number(value)


def fit_scale(values: Iterable[float], log: bool = False) -> Scale:
    """A scale that covers these values with a margin."""
    finite = [value for value in values if math.isfinite(value) and (value > 0.0 or not log)] or [1.0]
    low, high = min(finite), max(finite)
    if log:
        return Scale(low / 1.3, high * 1.3, log)
    margin = 0.04 * (high / 2.0 - low / 2.0) * 2.0 or max(abs(low) * 0.1, 1e-300)
    return Scale(low - margin, high + margin)


class Chart:
    """A chart with two axes; `description` is for screen readers."""

    def __init__(
        self, x: Scale, y: Scale, *, x_label: str, y_label: str, description: str, height: float = 250.0
    ) -> None:
        self.x, self.y, self.height = x, y, height
        box, label = f"0 0 {WIDTH:.0f} {height:.0f}", escape(description)
        self._parts = [f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">']
        for tick in y.ticks(round(height / 50.0)):
            place = self._to_y(tick)
            self._parts.append(f'<path class="grid" d="M{LEFT:.1f} {place:.1f}H{WIDTH - RIGHT:.1f}"/>')
            self.text(LEFT - 8.0, place + 4.0, y.label(tick), "tick end")
        for tick in x.ticks():
            place = self._to_x(tick)
            self._parts.append(f'<path class="grid" d="M{place:.1f} {TOP:.1f}V{height - BOTTOM:.1f}"/>')
            self.text(place, height - BOTTOM + 18.0, x.label(tick), "tick middle")
        self.text((LEFT + WIDTH - RIGHT) / 2.0, height - 6.0, x_label, "axis middle")
        turned = f"translate(14 {(TOP + height - BOTTOM) / 2.0:.1f}) rotate(-90)"
        self._parts.append(f'<text class="axis middle" transform="{turned}">{escape(y_label)}</text>')

    def _to_x(self, value: float) -> float:
        return LEFT + self.x(value) * (WIDTH - RIGHT - LEFT)

    def _to_y(self, value: float) -> float:
        return self.height - BOTTOM - self.y(value) * (self.height - BOTTOM - TOP)

    def text(self, x: float, y: float, content: str, kind: str) -> None:
        """Write a text at a position in pixels."""
        self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>')

    def _mark(self, tag: str, kind: str, shape: str, tip: str = "") -> None:
        """Draw a shape, with a tooltip."""
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self._parts.append(f'<{tag} class="{kind}" {shape}>{title}</{tag}>')

    def line(self, xs: Sequence[float] | Array, ys: Sequence[float] | Array, kind: str) -> None:
        """Draw a line through points; NaN leaves a gap."""
        self._mark("path", kind, f'd="{"".join(self._path(xs, ys))}"')

    def _path(self, xs: Sequence[float] | Array, ys: Sequence[float] | Array) -> Iterable[str]:
        pen = "M"
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(y):
                yield f"{pen}{self._to_x(x):.1f} {self._to_y(y):.1f}"
                pen = "L"
            else:
                pen = "M"

    def band(self, xs: Array, low: Array, high: Array, kind: str) -> None:
        """Fill the area between two lines without gaps."""
        there = list(self._path(xs, low))
        back = [run.replace("M", "L") for run in self._path(xs[::-1], high[::-1])]
        if there:
            self._mark("path", kind, f'd="{"".join(there + back)}Z"')

    def bar(self, start: float, end: float, low: float, high: float, kind: str, tip: str = "") -> None:
        """Draw a rectangle, at least one pixel wide."""
        left, right, top, floor = self._to_x(start), self._to_x(end), self._to_y(high), self._to_y(low)
        right = max(right, left + 1.0)
        self._mark("path", kind, f'd="M{left:.1f} {floor:.1f}V{top:.1f}H{right:.1f}V{floor:.1f}Z"', tip)

    def dot(self, x: float, y: float, kind: str, radius: float = 2.4, tip: str = "") -> None:
        """Draw a point; one outside the axes is drawn at the edge."""
        across = min(max(self._to_x(x), LEFT), WIDTH - RIGHT)
        up = min(max(self._to_y(y), TOP), self.height - BOTTOM)
        self._mark("circle", kind, f'cx="{across:.1f}" cy="{up:.1f}" r="{radius:.1f}"', tip)

    def to_svg(self) -> Markup:
        """The chart, ready for a page."""
        return Markup("".join([*self._parts, "</svg>"]))  # every text in it is escaped


class ReportFigure(NamedTuple):
    """A picture with its title, its caption, and a legend of its marks by class."""

    name: str
    title: str
    caption: str
    svg: Markup
    legend: dict[str, str]


# --- a heat map ---

MAP_WIDTH, MAP_HEIGHT, LETTER, MAP_TOP, MAP_BOTTOM = 800, 18, 7, 34, 44
"""Of the map, of a column, of a letter, and of the margins, in pixels."""

DARKEST = 0.2  # stretches with at least this share of suspects are darkest
LONGEST = 28  # letters of the name of a column that are shown


def draw_heat_map(columns: Sequence[str], shares: Array, records: int, unpredicted: Sequence[str] = ()) -> str:
    """Draw the `shares` of suspects, a row for each column, a place for each stretch of the table.

    Columns that are `unpredicted` have suspects that were found by rules only, so none there means little.
    """
    names = [f"{abbreviate(name, LONGEST)}{' (rules only)' if name in unpredicted else ''}" for name in columns]
    left = 12 + LETTER * max(map(len, names))
    bottom, each = MAP_TOP + MAP_HEIGHT * len(names), MAP_WIDTH / shares.shape[1]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + MAP_WIDTH + 12}" height="{bottom + MAP_BOTTOM}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="20">Share of suspect cells, from none (grey) to {DARKEST:.0%} or more (dark red)</text>',
    ]
    for place, name in enumerate(names):
        y = MAP_TOP + MAP_HEIGHT * place
        out.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{html.escape(name)}</text>')
        out.append(f'<rect x="{left}" y="{y + 1}" width="{MAP_WIDTH}" height="{MAP_HEIGHT - 2}" fill="#f3f3f3"/>')
        for at in np.flatnonzero(shares[place]).tolist():
            share = float(shares[place, at])
            # A single suspect must be visible.
            strength = 0.25 + 0.75 * min(1.0, share / DARKEST)
            first, last = (round(end * records / shares.shape[1]) for end in (at, at + 1))
            tip = f"{html.escape(columns[place])}, rows {first + 1:,} to {last:,}: {format_percent(share)}"
            out.append(
                f'<rect x="{left + each * at:.1f}" y="{y + 1}" width="{each:.1f}" height="{MAP_HEIGHT - 2}" '
                f'fill="#b2182b" fill-opacity="{strength:.2f}"><title>{tip}</title></rect>'
            )
    for part in range(5):
        x, anchor = left + MAP_WIDTH * part / 4, "start" if part == 0 else "end" if part == 4 else "middle"
        row = max(1, round(records * part / 4))
        out.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="{anchor}">{row:,}</text>')
    out.append(f'<text x="{left + MAP_WIDTH / 2:.0f}" y="{bottom + 34}" text-anchor="middle">row</text></svg>')
    return "\n".join(out)
