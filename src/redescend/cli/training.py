"""What `fit` and `tail` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redescend.cli.exit_codes import Code

if TYPE_CHECKING:
    from redescend.streaming.run import Counts


def exit_code(counts: Counts) -> Code:
    """The exit code of a run that read all records."""
    return Code.SET_ASIDE if counts.quarantined or counts.skipped else Code.FINE
