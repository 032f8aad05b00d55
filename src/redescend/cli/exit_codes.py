"""Exit codes of commands, and one sentence on standard error if something is wrong."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer

from redescend.cli.console import log
from redescend.errors import BadRecordError, ParameterError, RedescendError


class Code(IntEnum):
    """The exit codes."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    REJECTED = 3
    STOPPED = 4
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Code.DONE: "all records were used",
    Code.FAILED: "unexpected error, or not enough memory",
    Code.INVALID: "invalid command or input, or a file that cannot be read or written",
    Code.REJECTED: "finished, but some records or files could not be used (quarantined or skipped)",
    Code.STOPPED: "stopped at a record that cannot be used (--on-bad fail)",
    Code.INTERRUPTED: "interrupted by Ctrl-C",
    Code.TERMINATED: "ended by SIGTERM",
}

EXIT_CODES = "Exit codes:\n\n" + "".join(f"- {code}: {meaning}\n\n" for code, meaning in MEANINGS.items())

OWNERS = ("fit_stream", "open_source", "StreamModel", "ModelStore")
"""Functions and classes whose parameters are options of the same name."""

OPTIONS = (
    "by",
    "cluster",
    "decimal",
    "encoding",
    "fdr",
    "format",
    "jobs",
    "labels",
    "lag_columns",
    "lags",
    "passes",
    "shuffle",
)
"""Parameters that errors name without their owner."""

PLAIN = {
    r"The 'level' parameter of predict_interval ": "--interval ",
    r"\(--trees, linear=False, features='auto'\)": "(--trees)",
    r"must be a float in \((\S+), (\S+)\)": r"must be a number between \1 and \2",
    r"must be a float in \[(\S+), (\S+)\]": r"must be a number from \1 to \2",
    r"('[^']*'), ('[^']*') or None\b": r"\1 or \2",
    r", or a LinearLoss for (\w+)\. Got (\w+)\(.*\) instead": r" for \1. Got \2 instead",
}
"""What errors say to users of Python, and what they say to those of the command."""

PATIENCE = 0.7  # seconds after which SIGTERM ends a process that is busy in compiled code


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


@contextmanager
def exit_on_error(debug: bool, interrupted: str = "") -> Iterator[None]:
    """Turn every error into one sentence on standard error and an exit code.

    `debug` shows the traceback of an unexpected error; `interrupted` follows the word "Interrupted" on Ctrl-C or
    SIGTERM.
    """
    try:
        with _interrupt_on_sigterm(f"Interrupted{interrupted}."):
            yield
    except BadRecordError as error:
        raise _exit(Code.STOPPED, str(error).replace("on_bad='quarantine'", "--on-bad quarantine")) from None
    except ParameterError as error:
        raise _exit(Code.INVALID, name_options(str(error))) from None
    except RedescendError as error:
        raise _exit(Code.INVALID, str(error)) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
        raise _exit(Code.INVALID, message) from None
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        raise _exit(Code.FAILED, f"Not enough memory{what}; files that were written before are unchanged.") from None
    except KeyboardInterrupt as error:
        code = Code.TERMINATED if isinstance(error, Terminated) else Code.INTERRUPTED
        raise _exit(code, f"Interrupted{interrupted}.") from None
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        hint = "" if debug else " with the output of --debug"
        message = f"Unexpected error ({type(error).__name__}: {error}). This is a bug; please report it{hint}."
        raise _exit(Code.FAILED, message) from None


def name_options(message: str) -> str:
    """Name parameters of Python functions as options of the command.

    >>> name_options("The 'lag_columns' parameter of fit_stream must be a list of columns. Got 7 instead.")
    '--lag-columns must be a list of columns. Got 7 instead.'
    >>> name_options("'lag_columns' needs 'lags': the numbers of records to look back.")
    '--lag-columns needs --lags: the numbers of records to look back.'
    >>> name_options("The 'level' parameter of predict_interval must be a float in (0, 1). Got 1.0 instead.")
    '--interval must be a number between 0 and 1. Got 1.0 instead.'
    """
    for pattern, plain in PLAIN.items():
        message = re.sub(pattern, plain, message)
    owned = rf"The '(\w+)' parameter of (?:{'|'.join(OWNERS)})(?= )"
    anything = rf"{owned}|'({'|'.join(OPTIONS)})'"
    return re.sub(anything, lambda found: "--" + (found[1] or found[2]).replace("_", "-"), message)


@contextmanager
def _interrupt_on_sigterm(sentence: str) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that incomplete files are removed.

    Python calls its handlers between two instructions, and compiling takes seconds. So a thread that is notified of the
    signal ends the process if the handler was not called in time. Python ignores exceptions in callbacks of C code,
    such as those of the compiler; the signal is then sent again.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    noticed, timers = threading.Event(), list[threading.Timer]()

    def interrupt(number: int, _: object) -> None:
        noticed.set()
        raise Terminated

    def send_again(lost: Any) -> None:
        if isinstance(lost.exc_value, Terminated):
            noticed.clear()
            timers.append(threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGTERM)))
            timers[-1].start()
        else:
            hook(lost)

    hook, sys.unraisablehook = sys.unraisablehook, send_again
    read, write = os.pipe()
    os.set_blocking(write, False)
    threading.Thread(target=_end_if_busy, args=(read, interrupt, noticed, sentence), daemon=True).start()
    handler, descriptor = signal.signal(signal.SIGTERM, interrupt), signal.set_wakeup_fd(write)
    try:
        yield
    except Exception:
        if timers:  # what the signal interrupted may fail before it is sent again
            raise Terminated from None
        raise
    finally:
        for timer in timers:
            timer.cancel()
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGTERM, handler)
        sys.unraisablehook = hook
        os.close(write)


def _end_if_busy(read: int, interrupt: Any, noticed: threading.Event, sentence: str) -> None:
    """End the process after SIGTERM, unless its handler was called. A command may have a handler of its own."""
    with open(read, "rb", buffering=0) as pipe:
        while number := pipe.read(1):
            is_ours = number[0] == signal.SIGTERM and signal.getsignal(signal.SIGTERM) is interrupt
            if is_ours and not noticed.wait(PATIENCE):
                from redescend.files import remove_active

                log(" ".join(sentence.split()))
                remove_active()
                os._exit(int(Code.TERMINATED))


def _exit(code: Code, sentence: str) -> typer.Exit:
    log(" ".join(sentence.split()))
    return typer.Exit(int(code))
