"""How many rounds and features: what every generator checks first."""

from __future__ import annotations

from redescend.parameters import AT_LEAST_ONE, check


def sizes(owner: str, rounds: int, dim: int) -> tuple[int, int]:
    """Both as plain whole numbers of at least 1."""
    return check(owner, "rounds", rounds, AT_LEAST_ONE), check(owner, "dim", dim, AT_LEAST_ONE)
