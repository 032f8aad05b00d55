"""One visual language: what a learner looks like, and a sheet to draw on that is saved the same way twice.

A colour is a family and a dash is a member of it. What the paper compares is solid; what it leaves out is not. A
learner's look depends on its name alone, so it is the same in every picture, whoever else is in it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from redescend.errors import MissingExtraError
from redescend.experiments.problems import PAPER, YARDSTICK
from redescend.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people tell apart; their yellow is left out, as it is lost on white.
BLACK, ORANGE, SKY, GREEN, BLUE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, GREY, PALE = "#D55E00", "#CC79A7", "#8C8C8C", "#DDDDDD"

Dash = tuple[float, ...]
SOLID: Dash = ()
LONG: Dash = (6.0, 1.5)
SHORT: Dash = (2.5, 1.2)
DOTS: Dash = (1.0, 1.1)
MIXED: Dash = (5.0, 1.2, 1.0, 1.2)

PIXELS_PER_INCH = 150
WIDTH = 10.0
"""Inches; at this width the smallest letters are still read when the picture is shown 1200 pixels wide."""

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so the letters are the same everywhere
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.labelsize": 10.0,
    "legend.fontsize": 9.5,
    "legend.title_fontsize": 9.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "redescend",
}


class Picture(NamedTuple):
    """A finished picture: what it is called, what a person should look at in it, and its two files."""

    name: str
    title: str
    see: str
    png: Path
    svg: Path


class Look(NamedTuple):
    """How a learner is drawn. The dash is in widths of the line, on and off in turn; empty is solid."""

    color: str
    dash: Dash = SOLID
    width: float = 1.5

    @property
    def line(self) -> dict[str, Any]:
        """As the settings of a Matplotlib line.

        Examples
        --------
        >>> look("OGD").line
        {'color': '#000000', 'linestyle': '-', 'linewidth': 1.5}
        """
        return {"color": self.color, "linestyle": (0, self.dash) if self.dash else "-", "linewidth": self.width}


# In the order of every legend. A name that ends in … stands for every name that begins so.
_LOOKS = {
    "self-tuning, order 1": Look(VERMILION, LONG, 2.6),
    "self-tuning, order 2": Look(VERMILION, SHORT, 2.6),
    "LEARN with experts…": Look(VERMILION, MIXED, 1.8),
    "LEARN": Look(VERMILION, width=2.6),
    "OGD": Look(BLACK),
    "Top-k": Look(BLUE),
    "Uncertain Top-k": Look(SKY),
    "OGD, step/…": Look(BLACK, SHORT, 1.7),
    "OGD, 1/(m·t)": Look(BLACK, DOTS),
    "Top-k, 1/(m·t)": Look(BLUE, DOTS),
    "Pegasos": Look(ORANGE, MIXED),
    "normalised OGD": Look(GREEN, LONG),
    "median clip": Look(PURPLE, LONG),
    "Huber…": Look(ORANGE, DOTS, 1.8),
    "Cauchy…": Look(GREEN, DOTS, 1.8),
    "Welsch…": Look(PURPLE, DOTS, 1.8),
    "Tukey…": Look(SKY, DOTS, 1.8),
    YARDSTICK: Look(GREY, LONG, 2.2),
}
_STRANGERS = tuple(Look(color, MIXED) for color in (GREEN, PURPLE, SKY, BLACK, VERMILION, BLUE))


def look(learner: str) -> Look:
    """How a learner is drawn, by its name alone; one that is not in the book gets a look that its name decides.

    Examples
    --------
    >>> look("Huber, c = 1") == look("Huber, c = 2") != look("Cauchy, c = 1")
    True
    """
    entry = _entry(learner)
    return _STRANGERS[zlib.crc32(learner.encode()) % len(_STRANGERS)] if entry is None else _LOOKS[entry]


def in_order(learners: Iterable[str]) -> list[str]:
    """Learners as every legend lists them: the paper's, what it leaves out, strangers, and the yardstick last.

    Examples
    --------
    >>> in_order(["oracle", "Tukey, c = 1", "mine", "OGD", "LEARN"])
    ['LEARN', 'OGD', 'Tukey, c = 1', 'mine', 'oracle']
    """
    places = {entry: place for place, entry in enumerate(_LOOKS)}
    strangers = len(_LOOKS) - 1.5

    def place(learner: str) -> tuple[float, str]:
        entry = _entry(learner)
        return (strangers if entry is None else places[entry], learner)

    return sorted(learners, key=place)


def _entry(learner: str) -> str | None:
    if learner in _LOOKS:
        return learner
    return next((key for key in _LOOKS if key.endswith("…") and learner.startswith(key[:-1])), None)


FAR = 100.0
"""A learner whose regret is so many times that of the best of the paper's leaves the panel at the top."""


def reach(peaks: dict[str, float]) -> float:
    """The highest regret that a panel must show, from that of each learner; a divergence must not flatten the rest.

    Examples
    --------
    >>> reach({"LEARN": 5.0, "OGD": 80.0, "Top-k": 1e9, "oracle": 1.0})
    80.0
    """
    best = min(peaks[learner] for learner in [name for name in PAPER if name in peaks] or peaks)
    return max(peak for peak in peaks.values() if peak <= FAR * best)


@contextmanager
def sheet(folder: Path, name: str, title: str, height: float) -> Iterator[Figure]:
    """A figure to draw on; when the block ends well it is saved as folder/name.png and folder/name.svg."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "Pictures need Matplotlib; install it with: pip install 'redescend[experiments]'"
        ) from None
    # A person's own Matplotlib settings must not change the picture.
    with style.context(SETTINGS, after_reset=True):
        figure = Figure(figsize=(WIDTH, height), dpi=PIXELS_PER_INCH)
        figure.text(0.12 / WIDTH, 1.0 - 0.12 / height, title, va="top", fontsize=13.0)
        yield figure
        png, svg = files(folder, name)
        _save(figure, png, {"Software": None})
        _save(figure, svg, {"Date": None, "Creator": None})


def files(folder: Path, name: str) -> tuple[Path, Path]:
    """Where a picture is: its PNG and its SVG."""
    return folder / f"{name}.png", folder / f"{name}.svg"


def _save(figure: Figure, path: Path, without: dict[str, None]) -> None:
    """Write beside the target and rename, so that a picture is there in full or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        figure.savefig(part, format=path.suffix[1:], metadata=without)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def panels(
    figure: Figure, titles: list[str], *, right: float = 0.3, bottom: float = 1.0, gap: float = 0.35, head: float = 0.5
) -> list[Axes]:
    """Two panels a row under their titles; the space on the right, below, between and above them is in inches.

    The places are fixed, not found: that is twice as fast, and lets pictures of one kind be laid over one another.
    """
    left, top, rows = 0.85, 0.15 + head, (len(titles) + 1) // 2
    wide, high = figure.get_size_inches()
    each = ((wide - left - right - gap) / 2.0, (high - top - bottom - head * (rows - 1)) / rows)
    drawn = []
    for place, title in enumerate(titles):
        row, column = divmod(place, 2)
        x, y = left + column * (each[0] + gap), high - top - row * (each[1] + head) - each[1]
        axes = figure.add_axes((x / wide, y / high, each[0] / wide, each[1] / high))
        axes.set_title(title, loc="left")
        drawn.append(axes)
    return drawn


def share_axes(drawn: list[Axes], across: str, up: str) -> None:
    """One pair of axes for all panels, named and numbered on the outside only."""
    for place, axes in enumerate(drawn):
        lowest = place + 2 >= len(drawn)
        axes.tick_params(labelbottom=lowest, labelleft=place % 2 == 0)
        axes.set(xlabel=across if lowest else "", ylabel=up if place % 2 == 0 else "")


def log_axis(axis: Axis) -> None:
    """A log axis with plain numbers, and more of them where it spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if low > 0.0:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 50.0 * low else (1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, handles: dict[str, Any], columns: int, markers: float = 1.0) -> None:
    """One legend for all panels, under them; markers says how many times larger than in the panels they are."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.0), "columnspacing": 1.6}
    figure.legend(handles.values(), handles.keys(), ncols=columns, markerscale=markers, **place)


def titles_of(rows: Results) -> dict[str, str]:
    """What the panel of each outlier count is called, in the order of the counts."""
    return {count: _title(count, int(rows.select(count=count).column("k")[0])) for count in rows.unique("count")}


def _title(count: str, k: int) -> str:
    if k == 0:
        return "k = 0: no outliers"
    name = count.replace("T^⅔", r"$\mathregular{T^{2/3}}$")
    return f"k = {name} = {k:,} outliers"


def number(value: float) -> str:
    """A number as a person reads it: three digits that count, and no more.

    Examples
    --------
    >>> number(12345.6), number(0.01234), number(2.5e9), number(18.0)
    ('12,346', '0.0123', '2.5e+09', '18')
    """
    return f"{value:,.0f}" if 100.0 <= abs(value) < 1e7 else f"{value:.3g}"
