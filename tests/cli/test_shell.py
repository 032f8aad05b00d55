"""The command as a shell sees it: pipes, signals, exit codes, completion, and no waiting for help."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import redescend as rd
from redescend.kernels import compiler
from redescend.kernels.compiler import on_compile
from redescend.streaming import StreamModel, fit
from tests.cli.commands import BAD, prices, run, started


def test_a_pipe_in_and_a_pipe_out(in_a_folder):
    text = prices(in_a_folder / "prices.csv", bad=BAD).read_bytes()
    process = started("fit", "-", "--target", "price", "--model", "piped")
    out, said = process.communicate(text, timeout=300)
    assert process.returncode == 3
    inside = run("fit", "-", "--target", "price", "--model", "m", "--no-report", code=3, input=text)
    assert out.decode() == inside.stdout
    assert Path("piped").read_bytes() == Path("m").read_bytes()
    assert b"\x1b" not in said
    assert b"Traceback" not in said


def test_a_reader_that_has_seen_enough_ends_it_quietly(in_a_folder):
    prices(in_a_folder / "prices.csv")
    run("fit", "prices.csv", "--target", "price", "--model", "m", "--no-report", "--quiet")
    with open("many.csv", "w") as many:
        many.write("size,town\n" + "1.5,Rome\n" * 300_000)
    process = started("predict", "m", "many.csv", "--quiet")
    assert process.stdout.readline() == b"row,prediction\n"
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    process.stdin.close()


def test_an_interrupted_run_tidies_up_after_itself(in_a_folder):
    text = prices(in_a_folder / "prices.csv").read_bytes()
    process = started("fit", "-", "--target", "price", "--rounds", "rounds.parquet")
    process.stdin.write(text[:-100])
    process.stdin.flush()
    while process.poll() is None and not process.stderr.readline().startswith(b"Columns"):
        pass
    assert len(list(in_a_folder.glob(".*.part"))) == 1
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert said.splitlines()[-1] == b"Interrupted before the end. With --checkpoint FOLDER, a run can be resumed."
    assert [path.name for path in in_a_folder.iterdir()] == ["prices.csv"]


def test_ctrl_c_keeps_the_checkpoint_and_says_how_to_go_on(in_a_folder):
    text = prices(in_a_folder / "prices.csv").read_bytes()
    fit = ("fit", "-", "--target", "price", "--checkpoint", "run", "--every", "300", "--model", "m", "--no-report")
    process = started(*fit)
    process.stdin.write(text[: 3 * len(text) // 4])
    process.stdin.flush()
    checkpoint = Path("run", "checkpoint.safetensors")
    while process.poll() is None and (not checkpoint.exists() or rd.load(checkpoint)["counts"][0] < 900):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b""), said
    assert said.splitlines()[-1] == (
        b"Interrupted; run the same command with --resume to continue from the checkpoint in 'run'."
    )
    assert not Path("m").exists()
    resumed = run(*fit, "--resume", input=text)
    assert "Resumed after row" in resumed.stderr
    run("fit", "-", "--target", "price", "--model", "alone", "--no-report", "--quiet", input=text)
    assert Path("m").read_bytes() == Path("alone").read_bytes()


def test_compiling_is_announced_once_and_at_once(in_a_folder, monkeypatch):
    prices(in_a_folder / "prices.csv", 300)
    start_run = fit.start_run
    monkeypatch.setattr(compiler, "on_compile", on_compile)

    def compile_and_start(*arguments, **settings):
        compiler._announce()
        compiler._announce()
        return start_run(*arguments, **settings)

    monkeypatch.setattr(fit, "start_run", compile_and_start)
    said = run("fit", "prices.csv", "--target", "price", "--model", "m", "--no-report").stderr
    assert said.startswith(compiler.COMPILING + "\n")
    assert said.count("ompiling") == 1
    assert run("fit", "prices.csv", "--target", "price", "--quiet").stderr == ""
    review = StreamModel.review
    monkeypatch.setattr(StreamModel, "review", lambda *given, **how: compiler._announce() or review(*given, **how))
    assert run("predict", "m", "prices.csv").stderr == compiler.COMPILING + "\n"
    assert run("score", "m", "prices.csv", "--quiet").stderr == ""


@pytest.mark.soak
def test_on_a_new_machine_the_first_line_says_that_it_compiles(in_a_folder):
    prices(in_a_folder / "prices.csv", 300)
    process = started(*("fit", "prices.csv", "--target", "price"), environment={"NUMBA_CACHE_DIR": str(in_a_folder)})
    said = process.stderr.readline().decode()
    assert said == compiler.COMPILING + "\n"
    _, rest = process.communicate(timeout=300)
    assert process.returncode == 0
    assert b"ompiling" not in rest


def test_help_is_there_without_what_only_the_commands_need():
    heavy = ("numba", "numpy", "pyarrow", "matplotlib", "joblib", "dask", "jinja2", "pandas")
    check = (
        "import sys\nfrom redescend.cli import app\n"
        "try:\n    app(['--help'], prog_name='redescend')\nexcept SystemExit as end:\n    assert not end.code\n"
        f"found = [name for name in {heavy} if name in sys.modules]\nassert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Exit codes" in done.stdout


@pytest.mark.parametrize("command", ["fit", "predict", "score", "inspect", "tail", "reproduce"])
def test_every_command_explains_itself(command):
    said = run(command, "--help").stdout
    assert f"Usage: redescend {command}" in said
    if command != "reproduce":
        assert f"redescend {command}" in said.partition("Examples:")[2]
        assert "Running" in said


def test_shells_complete_the_commands():
    environment = {"_REDESCEND_COMPLETE": "complete_bash", "COMP_WORDS": "redescend t", "COMP_CWORD": "1"}
    out, _ = started(environment=environment).communicate(timeout=60)
    assert out.split() == [b"tail"]
    script, said = started(
        "--show-completion", "bash", environment={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ).communicate(timeout=60)
    assert b"complete -o default -F _redescend_completion redescend" in script, said


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"{rd.__version__}\n"
