"""The canvas of every picture: line styles of the learners, and a sheet that is saved as PNG and SVG.

A color is a family of learners and a dash is a member of it; the paper's learners are solid. A learner's style depends
only on its name, so it is the same in every picture. Equal results give equal bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from redescend.errors import needs_extra
from redescend.experiments.problems import ORACLE, PAPER
from redescend.experiments.results import Results
from redescend.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # for the annotations of the other modules, too
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# The colors of Okabe and Ito, which are safe for color-blind readers; their yellow is too faint on white.
BLACK, ORANGE, SKY, GREEN, BLUE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, GREY, PALE = "#D55E00", "#CC79A7", "#8C8C8C", "#DDDDDD"

Dash = tuple[float, ...]
SOLID: Dash = ()
LONG: Dash = (6.0, 1.5)
SHORT: Dash = (2.5, 1.2)
DOTS: Dash = (1.0, 1.1)
MIXED: Dash = (5.0, 1.2, 1.0, 1.2)

PIXELS_PER_INCH = 150
WIDTH = 10.0  # inches; the smallest letters are legible when the picture is shown 1200 pixels wide

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with Matplotlib
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
    """A finished picture: its name, title and caption, and its two files."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path


class LineStyle(NamedTuple):
    """The line style of a learner. The dash lists lengths on and off in units of the line width; empty is solid."""

    color: str
    dash: Dash = SOLID
    width: float = 1.5

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of a Matplotlib line."""
        return {"color": self.color, "linestyle": (0, self.dash) if self.dash else "-", "linewidth": self.width}


# In the order of every legend. A name that ends in … is a prefix.
_STYLES = {
    "self-tuning, order 1": LineStyle(VERMILION, LONG, 2.6),
    "self-tuning, order 2": LineStyle(VERMILION, SHORT, 2.6),
    "LEARN with experts…": LineStyle(VERMILION, MIXED, 1.8),
    "LEARN": LineStyle(VERMILION, width=2.6),
    "OGD": LineStyle(BLACK),
    "Top-k": LineStyle(BLUE),
    "Uncertain Top-k": LineStyle(SKY),
    "OGD, step/…": LineStyle(BLACK, SHORT, 1.7),
    "OGD, 1/(m·t)": LineStyle(BLACK, DOTS),
    "Top-k, 1/(m·t)": LineStyle(BLUE, DOTS),
    "Pegasos": LineStyle(ORANGE, MIXED),
    "normalised OGD": LineStyle(GREEN, LONG),
    "median clip": LineStyle(PURPLE, LONG),
    "Huber…": LineStyle(ORANGE, DOTS, 1.8),
    "Cauchy…": LineStyle(GREEN, DOTS, 1.8),
    "Welsch…": LineStyle(PURPLE, DOTS, 1.8),
    "Tukey…": LineStyle(SKY, DOTS, 1.8),
    ORACLE: LineStyle(GREY, LONG, 2.2),
}
_OTHERS = tuple(LineStyle(color, MIXED) for color in (GREEN, PURPLE, SKY, BLACK, VERMILION, BLUE))


def line_style(learner: str) -> LineStyle:
    """The style of a learner; one that is not in the table gets a style by the hash of its name."""
    entry = _find_entry(learner)
    return _OTHERS[zlib.crc32(learner.encode()) % len(_OTHERS)] if entry is None else _STYLES[entry]


def sort_learners(learners: Iterable[str]) -> list[str]:
    """Learners in the order of every legend: those of the table, then others, and the oracle last."""
    places = {entry: float(place) for place, entry in enumerate(_STYLES)}
    others = len(_STYLES) - 1.5
    return sorted(learners, key=lambda learner: (places.get(_find_entry(learner) or "", others), learner))


def _find_entry(learner: str) -> str | None:
    if learner in _STYLES:
        return learner
    return next((key for key in _STYLES if key.endswith("…") and learner.startswith(key[:-1])), None)


FAR = 100.0  # a learner with this many times the regret of the paper's best leaves the panel at the top


def find_panel_top(peaks: dict[str, float]) -> float:
    """The highest regret that a panel shows, from the peak of each learner; one that diverges must not flatten it.

    >>> find_panel_top({"LEARN": 5.0, "OGD": 80.0, "Top-k": 1e9, "oracle": 1.0})
    80.0
    """
    best = min(peaks[learner] for learner in [name for name in PAPER if name in peaks] or peaks)
    return max(peak for peak in peaks.values() if peak <= FAR * best)


class Sheet:
    """A titled figure to draw on. Set `caption` before the end, and take the `picture`."""

    def __init__(self, figure: Figure, folder: Path, name: str, title: str) -> None:
        self.figure, self.name, self.title, self.caption = figure, name, title, ""
        self.png, self.svg = folder / f"{name}.png", folder / f"{name}.svg"

    @property
    def picture(self) -> Picture:
        return Picture(self.name, self.title, self.caption, self.png, self.svg)

    def add_panels(
        self, titles: list[str], *, right: float = 0.3, bottom: float = 1.0, gap: float = 0.35, head: float = 0.5
    ) -> list[Axes]:
        """Two panels per row with titles; the margins on the right, below, between and above are in inches.

        Fixed places are twice as fast as a layout engine, and pictures of one kind can be compared by overlaying them.
        """
        left, top, rows = 0.85, 0.15 + head, (len(titles) + 1) // 2
        wide, high = self.figure.get_size_inches()
        each = ((wide - left - right - gap) / 2.0, (high - top - bottom - head * (rows - 1)) / rows)
        panels = []
        for place, title in enumerate(titles):
            row, column = divmod(place, 2)
            x, y = left + column * (each[0] + gap), high - top - row * (each[1] + head) - each[1]
            axes = self.figure.add_axes((x / wide, y / high, each[0] / wide, each[1] / high))
            axes.set_title(title, loc="left")
            panels.append(axes)
        return panels

    def add_legend_below(self, handles: dict[str, Any], columns: int, markers: float = 1.0) -> None:
        """One legend for all panels below them, with markers this many times larger than in the panels."""
        place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.0), "columnspacing": 1.6}
        self.figure.legend(handles.values(), handles.keys(), ncols=columns, markerscale=markers, **place)


@contextmanager
def open_sheet(folder: Path, name: str, title: str, height: float) -> Iterator[Sheet]:
    """A sheet to draw on; it is saved as folder/name.png and folder/name.svg when the block ends without error."""
    with needs_extra("Pictures need Matplotlib", "experiments"):
        from matplotlib import style
        from matplotlib.figure import Figure
    # The user's own Matplotlib settings must not change the picture.
    with style.context(SETTINGS, after_reset=True):
        figure = Figure(figsize=(WIDTH, height), dpi=PIXELS_PER_INCH)
        figure.text(0.12 / WIDTH, 1.0 - 0.12 / height, title, va="top", fontsize=13.0)
        sheet = Sheet(figure, folder, name, title)
        yield sheet
        _save_figure(figure, sheet.png, {"Software": None})
        _save_figure(figure, sheet.svg, {"Date": None, "Creator": None})


def _save_figure(figure: Figure, path: Path, metadata: dict[str, None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        figure.savefig(file, format=path.suffix[1:], metadata=metadata)


def label_outer(panels: list[Axes], x: str, y: str) -> None:
    """Label and number the axes of a grid of panels on the outside only."""
    for place, axes in enumerate(panels):
        lowest = place + 2 >= len(panels)
        axes.tick_params(labelbottom=lowest, labelleft=place % 2 == 0)
        axes.set(xlabel=x if lowest else "", ylabel=y if place % 2 == 0 else "")


def format_log_axis(axis: Axis) -> None:
    """Plain numbers on a log axis, and more of them if its range is small."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if low > 0.0:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 50.0 * low else (1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def typeset_outlier_count(formula: str) -> str:
    """An outlier count for a title or a legend, with the exponent of T^⅔ raised."""
    return formula.replace("T^⅔", r"$\mathregular{T^{2/3}}$")


def count_titles(rows: Results) -> dict[str, str]:
    """The panel title of each outlier count, in the order of the results."""
    ks = {count: int(rows.select(count=count).column("k")[0]) for count in rows.unique("count")}
    return {
        count: f"k = {typeset_outlier_count(count)} = {k:,} outliers" if k else "k = 0: no outliers"
        for count, k in ks.items()
    }
