"""`redescend audit`: the cells of a table that do not fit the others of their records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

TOP_HELP = "Output at most this many cells. Default: all."
MAP_HELP = "Draw a heat map of the suspect cells: columns against rows."
FDR_HELP = "Largest expected share of false alarms in the list, over all columns."


@options.flatten
def audit(
    source: options.Sources,
    *,
    out: Annotated[Path | None, options.optional(options.OUTPUT, "FILE", options.OUT_HELP)] = None,
    top: Annotated[int | None, options.optional(options.OUTPUT, "N", TOP_HELP, min=0)] = None,
    fdr: Annotated[float, options.option(options.OUTPUT, FDR_HELP, metavar="SHARE", min=0.0, max=1.0)] = 0.1,
    heat_map: Annotated[Path | None, options.optional(options.OUTPUT, "FILE.svg", MAP_HELP)] = None,
    reading: options.InputOptions,
    running: options.RunOptions,
) -> None:
    """Predict every column from all the others, and list the cells that do not fit, the most surprising first.

    No target is needed. The list has the row, the column, the value and the expected value of each cell. The table is
    read twice.
    """
    with exit_on_error(running.debug):
        import pyarrow as pa

        from redescend.cli.console import announce_compilation, log
        from redescend.cli.progress import ProgressLine
        from redescend.cli.scoring import write_table
        from redescend.files import replace_file
        from redescend.streaming.audit import MOST_SUSPECTS, Cell, audit_source
        from redescend.streaming.io.collisions import check_outputs
        from redescend.streaming.io.tables import choose_writer
        from redescend.streaming.report.formatting import format_count
        from redescend.streaming.report.heat_map import draw_heat_map

        if out is not None:
            choose_writer(out)
        check_outputs({"the output": out, "the heat map": heat_map}, source)
        opened = reading.open(source)
        with announce_compilation(running.quiet), ProgressLine(opened, quiet=running.quiet) as line:
            result = audit_source(opened, fdr, line.report)
        if not running.quiet:
            for name, reason in result.skipped.items():
                log(f"Not audited: {name!r}: {reason}")
            for name in result.unpredictable:
                many = f"more than {MOST_SUSPECTS:.0%} of its cells would be suspects"
                log(f"Hard to predict: {name!r}: {many}, so only extreme values are listed")
            for sentence in result.told:
                log(sentence)
            read, listed = f"{result.records:,} records, {len(result.audited)} columns audited", len(result.cells)
            log(f"{format_count(listed, 'suspect cell')} in {read}.")
            if listed:
                log(f"Expected false alarms: about {result.false_alarms:,.0f}.")
        if heat_map is not None:
            with replace_file(heat_map) as file:
                file.write(draw_heat_map(result.audited, result.shares, result.records).encode())
        cells = result.cells if top is None else result.cells[:top]
        types = {"row": pa.int64(), **dict.fromkeys(("column", "value", "expected", "kind"), pa.string())}
        columns = {}
        for name in Cell._fields:
            values, type_ = [getattr(cell, name) for cell in cells], types.get(name, pa.float64())
            if type_ == pa.string():
                values = [None if value is None else str(value) for value in values]
            columns[name] = pa.array(values, type_)
        batch = pa.record_batch(columns)
        with write_table(out, batch.schema) as write:
            write(batch)
