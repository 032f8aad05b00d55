"""Pictures, in one visual language: colours that colour-blind people tell apart, and lines that print in grey."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from redescend.errors import MissingExtraError
from redescend.experiments.problems import YARDSTICK
from redescend.experiments.runner import Curves, Key

# Okabe and Ito's palette; what the paper compares is solid, what it leaves out is not.
_STYLES = (
    {"color": "#D55E00", "linewidth": 2.4},
    {"color": "#000000"},
    {"color": "#0072B2"},
    {"color": "#56B4E9"},
    {"color": "#D55E00", "linestyle": (0, (2, 1.2))},
    {"color": "#009E73", "linestyle": (0, (6, 1.5))},
    {"color": "#CC79A7", "linestyle": (0, (6, 1.5))},
    {"color": "#E69F00", "linestyle": (0, (1, 1))},
    {"color": "#009E73", "linestyle": (0, (1, 1))},
    {"color": "#CC79A7", "linestyle": (0, (1, 1))},
    {"color": "#0072B2", "linestyle": (0, (1, 1))},
)
_YARDSTICK_STYLE = {"color": "#999999", "linestyle": (0, (4, 2)), "linewidth": 2.0}


def regret_panels(results: dict[Key, Curves], title: str, path: Path) -> list[Path]:
    """One panel for each outlier count: mean clean regret of every learner, with a band of one standard error."""
    pyplot = _pyplot()
    counts = list(dict.fromkeys(count for count, _ in results))
    names = list(dict.fromkeys(name for _, name in results))
    others = [name for name in names if name != YARDSTICK]
    styles: dict[str, dict[str, Any]] = {name: dict(_STYLES[i % len(_STYLES)]) for i, name in enumerate(others)}
    styles[YARDSTICK] = dict(_YARDSTICK_STYLE)
    figure, axes = pyplot.subplots(1, len(counts), figsize=(3.4 * len(counts), 4.6), sharey=True, layout="constrained")
    for count, panel in zip(counts, np.atleast_1d(axes), strict=True):
        for name in names:
            curves = results[count, name]
            panel.plot(curves.at, curves.mean, label=name, **styles[name])
            low = np.maximum(curves.mean - curves.error, 1e-3)
            panel.fill_between(
                curves.at, low, curves.mean + curves.error, color=styles[name]["color"], alpha=0.18, lw=0
            )
        panel.set(title=f"k = {count}", xlabel="round", yscale="log", xscale="log")
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylim(bottom=1.0)
    np.atleast_1d(axes)[0].set_ylabel("clean dynamic regret")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(title)
    saved = [_save(figure, path.with_suffix(suffix)) for suffix in (".png", ".svg")]
    pyplot.close(figure)
    return saved


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(
            "Figures need Matplotlib; install it with: pip install 'redescend[experiments]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, path: Path) -> Path:
    """Write beside the target and rename, so that a figure is there in full or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    figure.savefig(part, format=path.suffix[1:], dpi=130)
    os.replace(part, path)
    return path
