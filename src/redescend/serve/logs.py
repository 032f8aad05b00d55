"""Logs for people or for programs: one line per event on standard error."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum

LOGGER = logging.getLogger("redescend.serve")

FIELDS = "fields"
"""The attribute of a log record that has more about the event: ``LOGGER.info(text, extra={"fields": {...}})``."""


class LogFormat(StrEnum):
    """How a line of the log looks."""

    TEXT = "text"
    JSON = "json"


class TextFormatter(logging.Formatter):
    """A sentence; warnings and errors begin with their level."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno < logging.WARNING else f"{record.levelname.capitalize()}: {text}"


class JsonFormatter(logging.Formatter):
    """An object with the time, the level, the message and what the event is about.

    >>> values = {"msg": "Open: %s.", "args": ("a",), "created": 0.0, "levelname": "INFO", "fields": {"model": "a"}}
    >>> print(JsonFormatter().format(logging.makeLogRecord(values)))
    {"time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "Open: a.", "model": "a"}
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = record.levelname.lower()
        line = {"time": time, "level": level, "message": record.getMessage(), **getattr(record, FIELDS, {})}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class StandardError(logging.Handler):
    """Writes lines to standard error; that it is closed does not stop a server."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError, AttributeError):
            print(self.format(record), file=sys.stderr, flush=True)


def configure_logs(format: LogFormat, *, quiet: bool) -> None:
    """Log the events of the server, and with `quiet` errors alone, to standard error."""
    handler = StandardError()
    handler.setFormatter(JsonFormatter() if format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    LOGGER.setLevel(logging.ERROR if quiet else logging.INFO)
