"""`redescend serve`: models that learn over HTTP."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redescend.cli import options
from redescend.cli.console import announce_compilation
from redescend.cli.exit_codes import exit_on_error
from redescend.errors import DataError

if TYPE_CHECKING:
    from redescend.serve.folder import ModelFolder

SERVING, DURABILITY = "Serving", "Durability"
TOKEN = "REDESCEND_TOKEN"

MODELS_HELP = (
    "Model files, or JSON files with settings such as {'target': 'price'}, to create models from, unless they exist. A "
    "model is named after its file."
)
DATA_HELP = "Folder of the models and their journals; created if it does not exist."
TOKEN_HELP = f"Token that clients must send; better set the variable {TOKEN}. Required unless the host is loopback."
FSYNC_HELP = (
    "When records are synchronized to the disk: always (before they are acknowledged), interval (each second), never."
)
LOG_HELP = "Format of the log on standard error: text, or json with one object per line."
KEEP_HELP = "Keep the whole journal, so that redescend fit can read it from the first record."

Models = Annotated[
    list[Path] | None, typer.Argument(metavar="[MODEL_OR_CONFIG]...", show_default=False, help=MODELS_HELP)
]


def serve(
    models: Models = None,
    *,
    data: Annotated[Path, options.option(SERVING, DATA_HELP, metavar="FOLDER", show_default=False)],
    host: Annotated[str, options.option(SERVING, "Address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, options.option(SERVING, "Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8080,
    token: Annotated[str | None, options.optional(SERVING, "TOKEN", TOKEN_HELP)] = None,
    max_body: Annotated[int, options.option(SERVING, "Most MiB of a request.", min=1, metavar="MIB")] = 16,
    timeout: Annotated[
        float, options.option(SERVING, "Seconds for the head or the body of a request.", min=0.1, metavar="SECONDS")
    ] = 30.0,
    fsync: Annotated[str, options.option(DURABILITY, FSYNC_HELP, metavar="WHEN")] = "always",
    every: Annotated[int, options.option(DURABILITY, "Records between snapshots.", min=1, metavar="N")] = 100_000,
    keep_journal: Annotated[bool, options.option(DURABILITY, KEEP_HELP, "--keep-journal")] = False,
    log_format: Annotated[str, options.option(options.RUNNING, LOG_HELP, metavar="FORMAT")] = "text",
    quiet: Annotated[bool, options.option(options.RUNNING, "Show errors only.", "--quiet", "-q")] = False,
    debug: options.Debug = False,
) -> None:
    """Serve models that predict and learn over HTTP, and lose no record that they have acknowledged.

    Predictions follow the Open Inference Protocol, V2; /openapi.json describes all paths. Ctrl-C or SIGTERM stops it.
    """
    with exit_on_error(debug), ExitStack() as stack:
        from redescend.serve.folder import ModelFolder, about
        from redescend.serve.journal import Fsync
        from redescend.serve.logs import LOGGER, LogFormat, configure_logs
        from redescend.serve.server import check_host, run_server
        from redescend.serve.settings import Limits
        from redescend.streaming.report.formatting import format_count

        token = token or os.environ.get(TOKEN) or None
        check_host(host, token)
        if fsync not in list(Fsync):
            raise DataError(f"--fsync must be one of {', '.join(Fsync)}. Got {fsync!r}.")
        if log_format not in list(LogFormat):
            raise DataError(f"--log-format must be one of {', '.join(LogFormat)}. Got {log_format!r}.")
        configure_logs(LogFormat(log_format), quiet=quiet)
        stack.enter_context(announce_compilation(quiet, LOGGER.info))
        limits = Limits(body=max_body << 20, seconds=timeout)
        folder = ModelFolder(data, limits, Fsync(fsync), every=every, keep=keep_journal)
        folder.open_all()
        for path in models or []:
            _create(folder, path)
        for name, writer in folder.writers.items():
            extra = about(writer.model)
            earlier = writer.model.earlier
            before = f", after the {format_count(earlier)} of its model file" if earlier else ""
            LOGGER.info("Model '%s': %s%s.", name, format_count(extra["fields"]["records"]), before, extra=extra)
        run_server(folder, host, port, token)


def _create(folder: ModelFolder, path: Path) -> None:
    """Create the model of a file, unless it exists."""
    name = path.stem
    if name in folder.writers or name in folder.broken:
        return
    if not path.exists():
        raise DataError(f"There is no file {path}; name a model file, or a .json file with settings.")
    content = path.read_bytes()
    try:
        if path.suffix.lower() == ".json":
            folder.create(name, json.loads(content))
        else:
            folder.create(name, start=content)
    except DataError as error:
        raise DataError(f"'{path}': {error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' is not JSON: {error}.") from None
