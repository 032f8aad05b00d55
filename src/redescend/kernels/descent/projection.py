"""Projections, compiled once for all the loops that call them: they take longer to compile than a loop."""

from __future__ import annotations

from redescend import domains
from redescend.kernels.compiler import compiled
from redescend.numeric import Array


@compiled
def project(theta: Array, code: Array) -> Array:
    """The nearest point of the domain with this code."""
    return domains.project(theta, code)
