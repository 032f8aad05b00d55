"""What `fit` and `tail` share: they learn from a stream, and keep what they learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redescend.cli.exit_codes import Code
from redescend.cli.outputs import Outputs
from redescend.cli.specs import listed, loss_named, transform_named

if TYPE_CHECKING:
    from redescend.streaming.run import Counts, Pass


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line, word by word."""

    target: str
    features: list[str] | None
    ignore: list[str] | None
    task: str
    labels: list[str] | None
    order: int
    loss: str | None
    transform: str | None

    def settings(self) -> dict[str, Any]:
        """The same for `redescend.fit_stream`."""
        return {
            "features": listed(self.features),
            "ignore": listed(self.ignore) or [],
            "task": str(self.task),
            "labels": listed(self.labels),
            "order": self.order,
            "loss": loss_named(self.loss),
            "transform": transform_named(self.transform),
        }


def begin(source: Any, wanted: Wanted, outputs: Outputs, **settings: Any) -> Pass:
    """A pass that writes its files, the model and the report among them, when it ends."""
    from redescend.streaming import fit_stream
    from redescend.streaming.io.collisions import check_apart, files_of

    model, passing = fit_stream(
        source,
        wanted.target,
        **wanted.settings(),
        rounds=outputs.rounds,
        quarantine=outputs.quarantine,
        **settings,
    )
    try:
        check_apart(outputs.written(), files_of(passing.source))
    except BaseException:
        passing.close()
        raise
    if outputs.tidy:
        passing.tidy()
    for write in _last_writes(model, passing, outputs):
        passing.at_end(write)
    return passing


def _last_writes(model: Any, passing: Pass, outputs: Outputs) -> list[Callable[[], object]]:
    from redescend.checkpoint import save
    from redescend.streaming.report import page as report

    writes: list[Callable[[], object]] = []
    if (file := outputs.model) is not None:
        writes.append(lambda: save(model, file))
    if (page := outputs.report) is not None:
        alone = model if model.schema.by is None else None
        writes.append(lambda: report.write(page, alone, passing.summary, passing.counts, source=passing.source.name))
    return writes


def code_of(counts: Counts) -> Code:
    """How a run ended that read all records."""
    return Code.SET_ASIDE if counts.quarantined or counts.skipped else Code.FINE
