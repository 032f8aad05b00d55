"""What every picture of a report has."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

PLACES = 128
"""A curve along the stream is drawn in at most so many places."""


class Picture(NamedTuple):
    """A picture as the page shows it.

    `see` is the one sentence that says what to see; `legend` has classes of marks and what they stand for.
    """

    name: str
    title: str
    see: str
    svg: Markup
    legend: dict[str, str]
