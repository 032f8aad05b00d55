"""`redescend export`: a model for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error


def export(
    model: options.ModelToRead,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX graph to write.", show_default=False)],
    debug: options.Debug = False,
) -> None:
    """Export a model as an ONNX graph with the same predictions.

    The model must be linear and without keys, and its columns must be numbers, booleans or texts. The inputs of the
    graph are the columns; its outputs are the prediction, or the label and the probabilities, in double precision.
    """
    with exit_on_error(debug):
        from redescend.checkpoint import load
        from redescend.cli.scoring import check_model_exists
        from redescend.errors import DataError
        from redescend.exports.onnx import to_onnx

        check_model_exists(model)
        if onnx.exists() and onnx.samefile(model):
            raise DataError(f"--onnx {onnx} would overwrite the model; name another file.")
        made = to_onnx(load(model), onnx)
        names = ", ".join(one.name for one in made.graph.output)
        typer.echo(f"ONNX graph: {onnx} ({len(made.graph.input)} inputs; outputs: {names})", err=True)
