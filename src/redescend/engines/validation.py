"""Old names, until branches that use them are merged."""

from redescend.engines.engine import read_shape as check_room
from redescend.numeric import Array

__all__ = ["check_room", "whole"]


def whole(numbers: Array, low: float, high: float) -> bool:
    return bool(((numbers >= low) & (numbers < high) & (numbers % 1.0 == 0.0)).all())
