"""The pictures of a report on a stream."""

from __future__ import annotations

from redescend.streaming.report.pictures import along, predictions, reliability
from redescend.streaming.report.pictures.picture import Picture
from redescend.streaming.summary.summary import Summary

__all__ = ["Picture", "draw_all"]


def draw_all(summary: Summary) -> list[Picture]:
    """Every picture that the rounds are enough for, in the order of the page."""
    if not summary.learned:
        return []
    drawn: list[Picture | None] = [along.draw_weights(summary.curve), along.draw_losses(summary.curve)]
    if summary.schema.classifies:
        drawn.append(reliability.draw_reliability(summary))
    else:
        drawn += [predictions.draw_points(summary), predictions.draw_groups(summary)]
    return [picture for picture in drawn if picture is not None]
