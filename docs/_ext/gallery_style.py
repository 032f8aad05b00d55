"""The style of all pictures of the gallery: blue is redescend, vermilion a wrong record, grey all else."""

from typing import Any

from cycler import cycler

from redescend.experiments.pictures.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, SETTINGS, VERMILION


def reset(gallery_conf: Any, path: Any) -> None:
    import matplotlib as mpl

    mpl.rcParams.update(SETTINGS)
    mpl.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, VERMILION, GREY, GREEN, ORANGE, PURPLE])
    mpl.rcParams["figure.figsize"] = (8.0, 4.2)
    mpl.rcParams["figure.dpi"] = 130
    mpl.rcParams["figure.constrained_layout.use"] = True
    mpl.rcParams["axes.titlelocation"] = "left"
