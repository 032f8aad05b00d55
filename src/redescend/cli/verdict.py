"""The final verdict of a run: the suspects among all records, with their q-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from redescend.cli.console import say
from redescend.cli.scoring import decode_target, write_table
from redescend.errors import DataError
from redescend.streaming.io.round_log import read_rounds

if TYPE_CHECKING:
    from redescend.streaming.run import Run


def print_verdict(run: Run, share: float, quiet: bool) -> None:
    """Write the largest list with at most this share of false alarms to standard output, the worst first."""
    path, schema = run.config.outputs.rounds, run.model.schema
    if path is None or not path.exists():
        raise DataError(f"The final verdict needs the rounds of the run, but there is no file '{path}'.")
    rounds = read_rounds(path, schema)
    verdict = run.model.give_verdict(rounds)
    found = verdict.suspects(share)
    listed, q_value = rounds[found], verdict.q_value[found]
    columns = {
        "row": listed.rows,
        "clean_probability": verdict.clean_probability[found],
        "q_value": q_value,
        "target": decode_target(schema, listed.targets),
        "prediction": decode_target(schema, listed.predictions),
    }
    if not schema.classifies:
        columns |= {"low": listed.low, "high": listed.high, "stuck": verdict.stuck[found]}
    if not quiet:
        false = round(float(verdict.clean_probability[found].sum()))
        say(f"Suspects: {len(found):,} of {len(rounds):,} records. About {false:,} of them may be right.")
    batch = pa.record_batch(columns)
    with write_table(None, batch.schema) as write:
        write(batch)
