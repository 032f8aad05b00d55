"""`redescend audit`: the cells of a table that do not fit the others of their records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import Code, exit_on_error
from redescend.errors import ParameterError

if TYPE_CHECKING:
    from redescend.streaming.audit import Audit
    from redescend.streaming.audit.cells import Cell

MAX_CELLS = 20  # cells that a terminal shows, unless another number is requested

TOP_HELP = f"Output at most this many cells. Default: all, or {MAX_CELLS} on a terminal."
OUT_HELP = "Write a .csv, .jsonl or .parquet file. Default: a table on a terminal, otherwise CSV on standard output."
MAP_HELP = "Draw a heat map of the suspect cells: columns against rows."
FDR_HELP = "Largest expected share of false alarms in the list, over all columns."


@options.flatten
def audit(
    source: options.Sources,
    *,
    out: Annotated[Path | None, options.optional(options.OUTPUT, "FILE", OUT_HELP)] = None,
    top: Annotated[int | None, options.optional(options.OUTPUT, "N", TOP_HELP, min=0)] = None,
    fdr: Annotated[float, options.option(options.OUTPUT, FDR_HELP, metavar="SHARE", min=0.0, max=1.0)] = 0.1,
    heat_map: Annotated[Path | None, options.optional(options.OUTPUT, "FILE.svg", MAP_HELP)] = None,
    reading: options.FormatOptions,
    running: options.RunOptions,
) -> None:
    """Predict every column from all the others, and list the cells that do not fit, the most surprising first.

    No target is needed. The list has the row, the column, the value and the expected value of each cell. The table is
    read twice.
    """
    with exit_on_error(running.debug):
        from redescend.cli.console import announce_compilation, announce_start, print_cells

        announce_start(running.quiet)
        from redescend.cli.progress import ProgressLine
        from redescend.cli.scoring import write_table
        from redescend.files import replace_file
        from redescend.streaming.audit import audit_source
        from redescend.streaming.io.collisions import check_outputs
        from redescend.streaming.io.tables import choose_writer
        from redescend.streaming.report.charts import draw_heat_map

        if out is not None:
            choose_writer(out)
        if heat_map is not None and heat_map.suffix.lower() != ".svg":
            raise ParameterError(f"'{heat_map}' cannot be written: a heat map is an SVG file, so name it FILE.svg.")
        check_outputs({"output": out, "heat map": heat_map}, source)
        opened = reading.open(source)
        with announce_compilation(running.quiet), ProgressLine(opened, quiet=running.quiet) as line:
            result = audit_source(opened, fdr, line.report)
        if not running.quiet:
            _log_audit(result)
        if heat_map is not None:
            picture = draw_heat_map(result.audited, result.shares, result.records, result.unpredictable)
            with replace_file(heat_map) as file:
                file.write(picture.encode())
        cells = result.cells if top is None else result.cells[:top]
        if out is None and sys.stdout.isatty():
            print_cells(cells, MAX_CELLS if top is None else top)
        else:
            batch = _tabulate(cells)
            with write_table(out, batch.schema) as write:
                write(batch)
        raise typer.Exit(Code.REJECTED if result.unreadable or opened.unread else Code.DONE)


def _log_audit(result: Audit) -> None:
    """Print what an audit found, apart from its list."""
    from redescend.cli.console import log
    from redescend.sources.batch import count_bad
    from redescend.streaming.report.formatting import format_count

    for name, reason in result.skipped.items():
        log(f"Not audited: {name!r}: {reason}")
    if result.unpredictable:
        names = ", ".join(map(repr, result.unpredictable))
        log(f"Not predicted well enough by the others to list wrong values: {names}")
    for sentence in result.notes:
        log(sentence)
    if result.unreadable:
        log(f"Not audited: {format_count(count_bad(result.unreadable))} that cannot be read, see the end of the list")
    listed = len(result.cells) - len(result.unreadable)
    columns = format_count(len(result.audited), "column")
    log(f"{format_count(listed, 'suspect cell')} in {format_count(result.records)}, {columns} audited.")
    if listed:
        judged = sum(cell.clean_probability is not None for cell in result.cells)
        of = f" of {format_count(judged, 'cell')}; the others were found by rules" if judged < listed else ""
        alarms = f"Expected false alarms: about {result.false_alarms:,.0f}{of}."
        log(alarms if judged else "All were found by rules, so the number of false alarms is not known.")


def _tabulate(cells: Sequence[Cell]) -> Any:
    """The cells as a record batch; values of all columns are texts."""
    import pyarrow as pa

    from redescend.streaming.audit.cells import Cell

    types = {"row": pa.int64(), **dict.fromkeys(("column", "value", "expected", "kind"), pa.string())}
    columns = {}
    for name in Cell._fields:
        values, type_ = [getattr(cell, name) for cell in cells], types.get(name, pa.float64())
        if type_ == pa.string():
            values = [None if value is None else str(value) for value in values]
        columns[name] = pa.array(values, type_)
    return pa.record_batch(columns)
