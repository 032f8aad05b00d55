"""How a command ends: an exit code for scripts and, if something is wrong, one sentence on standard error."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from redescend.cli.console import say
from redescend.errors import BadRecordError, RedescendError


class Code(IntEnum):
    """The exit codes."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    REJECTED = 3
    STOPPED = 4
    INTERRUPTED = 130


MEANINGS = {
    Code.DONE: "all records were used",
    Code.FAILED: "unexpected error, or not enough memory",
    Code.INVALID: "invalid command or input, or a file that cannot be read or written",
    Code.REJECTED: "finished, but some records or files could not be used (quarantined or skipped)",
    Code.STOPPED: "stopped at a record that cannot be used (--on-bad fail)",
    Code.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}

EXIT_CODES = "Exit codes:\n\n" + "".join(f"- {code}: {meaning}\n\n" for code, meaning in MEANINGS.items())


@contextmanager
def exit_on_error(debug: bool, interrupted: str = "") -> Iterator[None]:
    """Turn every error into one sentence on standard error and an exit code.

    `debug` shows the traceback of an unexpected error; `interrupted` follows the word "Interrupted" on Ctrl-C or
    SIGTERM.
    """
    try:
        with _interrupt_on_sigterm():
            yield
    except BadRecordError as error:
        raise _exit(Code.STOPPED, str(error).replace("on_bad='quarantine'", "--on-bad quarantine")) from None
    except RedescendError as error:
        raise _exit(Code.INVALID, str(error)) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
        raise _exit(Code.INVALID, message) from None
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        raise _exit(Code.FAILED, f"There is not enough memory{what}; what was finished before is unchanged.") from None
    except KeyboardInterrupt:
        raise _exit(Code.INTERRUPTED, f"Interrupted{interrupted}.") from None
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        hint = "" if debug else " with the output of --debug"
        message = f"Unexpected error ({type(error).__name__}: {error}). This is a bug; please report it{hint}."
        raise _exit(Code.FAILED, message) from None


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that incomplete files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(code: Code, sentence: str) -> typer.Exit:
    say(" ".join(sentence.split()))
    return typer.Exit(int(code))
