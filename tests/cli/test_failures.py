"""What fails outside of the records: memory, the standard streams, signals. One sentence, and a documented code."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from redescend.streaming import StreamModel
from tests.cli.commands import COMMAND, prices, refused, run, started


def test_memory_that_runs_out_keeps_the_checkpoint(in_a_folder, monkeypatch):
    prices(in_a_folder / "prices.csv", 1000)
    fit = ("fit", "prices.csv", "--target", "price", "--model", "m", "--checkpoint", "run", "--every", "200", "--quiet")
    learn, calls = StreamModel.learn, []

    def fail_later(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise MemoryError
        return learn(*arguments)

    monkeypatch.setattr(StreamModel, "learn", fail_later)
    assert "Not enough memory" in refused(*fit, code=1)
    run(*fit, "--resume", "--no-report")
    run("fit", "prices.csv", "--target", "price", "--model", "alone", "--no-report", "--quiet")
    assert (in_a_folder / "m").read_bytes() == (in_a_folder / "alone").read_bytes()


def test_what_is_not_read_in_a_folder_is_named_and_counted(in_a_folder):
    parts = in_a_folder / "parts"
    parts.mkdir()
    prices(parts / "a.csv", 300)
    fit = ("fit", "parts", "--target", "price", "--model", "m", "--no-report")
    assert "kipped" not in run(*fit).stderr
    (parts / "b.csv").symlink_to("gone.csv")
    said = run(*fit, code=3).stderr
    assert said.startswith("Skipped parts/b.csv: it is a link to nothing.\n")
    assert "Files or folders skipped: 1.\n" in said
    said = run("predict", "m", "parts", code=3).stderr
    assert said == "Skipped parts/b.csv: it is a link to nothing.\n"
    assert run("predict", "m", "parts", "--quiet", code=3).stderr == ""


def test_half_of_a_surrogate_pair_is_no_column(in_a_folder):
    Path("a.jsonl").write_text("".join(f'{{"x": {row % 7}, "\\ud800": 1, "y": {row % 3}}}\n' for row in range(200)))
    fit = ("fit", "a.jsonl", "--target", "y", "--task", "regression", "--quiet")
    run(*fit)
    assert "'\\ud800', named as a feature, is not valid Unicode" in refused(*fit, "--features", "\ud800")


def test_a_new_line_in_a_name_is_shown_in_one_line(in_a_folder):
    prices(in_a_folder / "prices.csv", 300)
    fit = ("fit", "prices.csv", "--target", "price", "--quiet", "--features")
    assert "is not a list of columns" in refused(*fit, "size\ntown")
    assert r"no column 'size\ntown'" in refused(*fit, '"size\ntown"')


@pytest.mark.parametrize(("closed", "stream"), [("<&-", "input"), (">&-", "output")])
def test_a_closed_stream_gets_a_sentence(in_a_folder, closed, stream):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "fit", "-", "--target", "price"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Standard {stream} is closed; ")
    assert done.stderr.count("\n") == 1


def test_sigterm_ends_a_process_that_compiles(in_a_folder):
    """From the first instant on the code is 143: until Python can do anything, the system ends the process."""
    prices(in_a_folder / "prices.csv", 300)
    environment = {"REDESCEND_CACHE_DIR": str(in_a_folder / "cache"), "NUMBA_CACHE_DIR": str(in_a_folder / "cache")}
    fit = ("fit", "prices.csv", "--target", "price", "--rounds", "rounds.parquet")
    process = started(*fit, environment=environment)
    while process.poll() is None and b"ompiling" not in process.stderr.readline():
        pass
    threading.Timer(0.3, process.send_signal, [signal.SIGTERM]).start()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert said.splitlines()[-1].startswith(b"Interrupted before the end.")
    assert [path.name for path in in_a_folder.iterdir() if path.name != "cache"] == ["prices.csv"]


@pytest.mark.parametrize("seconds", [0.0, pytest.param(0.3, marks=pytest.mark.soak)])
def test_sigterm_has_one_code_from_the_first_instant(in_a_folder, seconds):
    process = started("fit", "-", "--target", "price")
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode in (143, -signal.SIGTERM)  # which a shell shows as 143


@pytest.mark.parametrize("afterwards", ["time.sleep(20)", "raise RuntimeError('the compiler has no result')"])
def test_sigterm_in_a_callback_of_c_code_is_not_lost(in_a_folder, afterwards):
    """Python ignores exceptions in such callbacks, and the compiler calls some, and fails without their result."""
    code = """
import ctypes, os, signal, time
from redescend.cli.exit_codes import exit_on_error
@ctypes.CFUNCTYPE(None)
def callback():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
try:
    with exit_on_error(False):
        callback()
        AFTERWARDS
except Exception as error:
    os._exit(error.exit_code)
""".replace("AFTERWARDS", afterwards)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "Interrupted.\n")


def test_a_command_without_its_packages_says_how_to_install_them():
    program = "import sys; sys.modules['typer'] = None; from redescend.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "fit"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "The command needs Typer and Rich; install it with: pip install 'redescend[cli]'\n"
