"""The pictures of a report on a stream."""

from __future__ import annotations

from redescend.streaming.pictures import along, labels, predicted
from redescend.streaming.pictures.style import Picture
from redescend.streaming.summary import Summary

__all__ = ["Picture", "draw_all"]


def draw_all(summary: Summary) -> list[Picture]:
    """Every picture that the rounds are enough for, in the order of the page."""
    if not summary.learned:
        return []
    drawn: list[Picture | None] = [along.draw_weights(summary.curve), along.draw_losses(summary.curve)]
    if summary.schema.classifies:
        drawn.append(labels.draw_reliability(summary))
    else:
        drawn += [predicted.draw_points(summary), predicted.draw_groups(summary)]
    return [picture for picture in drawn if picture is not None]
