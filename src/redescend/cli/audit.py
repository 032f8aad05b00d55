"""`redescend audit`: the cells of a table that do not fit the others of their records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

TOP_HELP = "Output at most this many cells. Default: all of the list."
MAP_HELP = "Draw the shares of suspects in the columns along the table."
FDR_HELP = "The share of false alarms that the list may have, over all columns."


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

    The table is read twice. No target is needed: row, column, value and what was expected are in the list.
    """
    with exit_on_error(running.debug):
        import pyarrow as pa

        from redescend.cli.console import announce_compilation, say
        from redescend.cli.progress import ProgressLine
        from redescend.cli.scoring import write_table
        from redescend.files import replace_file
        from redescend.sources import open_source
        from redescend.streaming.audit import MOST_SUSPECTS, Cell, audit_source
        from redescend.streaming.io.collisions import check_outputs
        from redescend.streaming.io.tables import choose_writer
        from redescend.streaming.report.formatting import format_count
        from redescend.streaming.report.heat_map import draw_heat_map

        if out is not None:
            choose_writer(out)
        written = {"the output": out, "the heat map": heat_map}
        check_outputs({content: path for content, path in written.items() if path is not None}, source)
        opened = open_source(
            source[0] if len(source) == 1 else source,
            format=reading.format,
            header=not reading.no_header,
            decimal=reading.decimal,
        )
        with announce_compilation(running.quiet), ProgressLine(opened, quiet=running.quiet) as line:
            found = audit_source(opened, fdr, line.report)
        if not running.quiet:
            for name, reason in found.skipped.items():
                say(f"Not audited: {name!r}: {reason}")
            for name in found.unpredictable:
                few = f"more than {MOST_SUSPECTS:.0%} of its cells would be suspects, so only values far out are"
                say(f"Not predicted well enough: {name!r}: {few} listed")
            for sentence in found.told:
                say(sentence)
            read, listed = f"{found.records:,} records, {len(found.audited)} columns audited", len(found.cells)
            say(f"{format_count(listed, 'suspect cell')} in {read}.")
            if listed:
                say(f"About {found.false_alarms:,.0f} of these {format_count(listed, 'cell')} may be right.")
        if heat_map is not None:
            with replace_file(heat_map) as file:
                file.write(draw_heat_map(found.audited, found.shares, found.records).encode())
        cells = found.cells if top is None else found.cells[:top]
        columns = {name: [getattr(cell, name) for cell in cells] for name in Cell._fields}
        texts = {
            name: [None if value is None else str(value) for value in columns[name]] for name in ("value", "expected")
        }
        numbers = {name: pa.array(columns[name], pa.float64()) for name in Cell._fields[4:-1]}
        names = {"row": pa.array(columns["row"], pa.int64()), "column": pa.array(columns["column"], pa.string())}
        batch = pa.record_batch(
            names
            | {name: pa.array(values, pa.string()) for name, values in texts.items()}
            | numbers
            | {"kind": pa.array(columns["kind"], pa.string())}
        )
        with write_table(out, batch.schema) as write:
            write(batch)
