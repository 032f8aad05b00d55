"""How a command ends: a code for scripts and, where something is wrong, one sentence for a person."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from redescend.cli.printable import printable
from redescend.errors import BadRecordError, RedescendError


class Code(IntEnum):
    """What the exit code of a command says."""

    FINE = 0
    FAILED = 1
    BAD_INPUT = 2
    SET_ASIDE = 3
    STOPPED = 4
    INTERRUPTED = 130


MEANINGS = {
    Code.FINE: "all records were used",
    Code.FAILED: "an unexpected failure",
    Code.BAD_INPUT: "a mistake in the command or its input",
    Code.SET_ASIDE: "done, but some records could not be used and were set aside or skipped",
    Code.STOPPED: "stopped at a record that cannot be used (--on-bad fail)",
    Code.INTERRUPTED: "interrupted, by Ctrl-C or SIGTERM",
}

EXIT_CODES = "Exit codes:\n\n" + "".join(f"- {code}: {meaning}\n\n" for code, meaning in MEANINGS.items())


@contextmanager
def outcome(debug: bool, interrupted: str = "") -> Iterator[None]:
    """Whatever goes wrong inside becomes one sentence on standard error, and an exit code.

    Parameters
    ----------
    debug
        Whether to show where an unexpected failure happened.
    interrupted
        What to say, after "Interrupted", when Ctrl-C is pressed or SIGTERM comes.
    """
    try:
        with _terminated_like_interrupted():
            yield
    except BadRecordError as error:
        raise _ended(Code.STOPPED, str(error).replace("on_bad='quarantine'", "--on-bad quarantine")) from None
    except RedescendError as error:
        raise _ended(Code.BAD_INPUT, str(error)) from None
    except OSError as error:
        said = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
        raise _ended(Code.BAD_INPUT, said) from None
    except KeyboardInterrupt:
        raise _ended(Code.INTERRUPTED, f"Interrupted{interrupted}.") from None
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        hint = "" if debug else ", with what --debug shows"
        said = f"This should not have happened ({type(error).__name__}: {error}); please report it{hint}."
        raise _ended(Code.FAILED, said) from None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: what it was writing is tidied away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ended(code: Code, sentence: str) -> typer.Exit:
    typer.echo(printable(" ".join(sentence.split())), err=True)
    return typer.Exit(int(code))


class Reader:
    """Who reads standard output, and whether it is still there."""

    left = False


@contextmanager
def reader_may_leave() -> Iterator[Reader]:
    """Writing to standard output, which nobody may read any more: `head` has seen enough, and that is no failure."""
    reader = Reader()
    try:
        yield reader
        sys.stdout.flush()
    except BrokenPipeError:
        reader.left = True
        # Python flushes once more at its end, and would complain then.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
