"""The command that reproduces the paper: complete, repeatable, interruptible, and clear about what it cannot do."""

from __future__ import annotations

import io
import runpy
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

from redescend.cli import app
from redescend.experiments import paper, runner
from redescend.experiments.pictures import canvas
from redescend.experiments.results import Options
from redescend.experiments.runner import Store

ROOT = Path(__file__).parents[1]
PIXELS = 30
"""Small pictures: what is drawn does not depend on their size."""

COMMAND = "from redescend.cli import app\n{}\napp(prog_name='redescend')"
PROGRAM = COMMAND.format(f"from redescend.experiments.pictures import canvas\ncanvas.PIXELS_PER_INCH = {PIXELS}")
UNDRAWN = COMMAND.format("from redescend.experiments import reproduce\nreproduce._draw_pictures = lambda *parts: []")
"""Without pictures, which take most of the time of a small result, for tests that do not look at them."""

OPTIONS = ["--runs", "2", "--rounds", "400", "--jobs", "1"]
SMALL = ["svm", *OPTIONS]


@pytest.fixture(autouse=True, scope="module")
def _small_pictures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "PIXELS_PER_INCH", PIXELS)
        yield


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr("redescend.experiments.reproduce._draw_pictures", lambda *arguments: [])


def reproduce(*arguments: str, folder: Path, code: int = 0):
    """Run the command in this process."""
    command = ["reproduce", *arguments, "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["redescend", *command])
        done = CliRunner().invoke(app, command)
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small result that the real command has computed, in a process of its own."""
    folder = tmp_path_factory.mktemp("svm")
    command = [sys.executable, "-c", PROGRAM, "reproduce", *SMALL, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder / 'report.html'}\n"
    assert "LEARN" in done.stderr
    return folder


def test_everything_is_there(finished):
    page = (finished / "report.html").read_text()
    for word in ("LEARN", "Pegasos", "Top-k", "--runs 2"):
        assert word in page
    for name in ("svm-regret", "svm-weights"):
        assert (finished / "figures" / f"{name}.png").stat().st_size > 3_000
        assert (finished / "figures" / f"{name}.svg").stat().st_size > 10_000
    assert (finished / "results.csv").read_text().startswith('"experiment","problem","run"')


def test_a_second_time_nothing_is_computed_and_nothing_differs(finished, undrawn):
    stamps = {path: path.stat().st_mtime_ns for path in (finished / "tasks").iterdir()}
    before = (finished / "results.parquet").read_bytes()
    reproduce(*SMALL, folder=finished)
    assert {path: path.stat().st_mtime_ns for path in (finished / "tasks").iterdir()} == stamps
    assert (finished / "results.parquet").read_bytes() == before


def test_any_number_of_jobs_gives_the_same_bits(finished, tmp_path):
    tasks = list(paper.EXPERIMENTS["svm"].tasks(Options(runs=2, rounds=400)))
    store = Store(tmp_path)
    runner.run(tasks, store, paper.compute, jobs=2)
    assert store.export(tasks)[0].read_bytes() == (finished / "results.parquet").read_bytes()


def test_the_comparison_of_losses_needs_no_game(tmp_path):
    reproduce("losses", "--jobs", "1", folder=tmp_path)
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == ["losses.png", "losses.svg"]


def test_an_interrupted_run_reports_what_it_has_and_continues(tmp_path, undrawn):
    arguments = ["svm", "--runs", "12", "--rounds", "1500", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", UNDRAWN, "reproduce", *arguments, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with Ctrl-C ignored, and the tests may be one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and len(list(tmp_path.glob("tasks/*.parquet"))) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "run the same command to continue" in errors
    assert (tmp_path / "report.html").exists()
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.glob("tasks/*.parquet")}
    assert 3 <= len(stored) < 12
    reproduce(*arguments, folder=tmp_path)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stored.items())
    assert len(list(tmp_path.glob("tasks/*.parquet"))) == 12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["astrology"], "astrology"),
        (["svm", "--runs", "0"], "runs"),
        (["svm", "--rounds", "3"], "rounds"),
        (["svm", "--jobs", "0"], "jobs"),
        (["svm", "--seed", "-1"], "seed"),
        (["svm", "--runs", "1", "--rounds", "100", "--cluster", "tcp://127.0.0.1:9"], "127.0.0.1:9"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_arguments_get_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.setattr("redescend.resources.CONNECT_SECONDS", 0.3)
    message = reproduce(*arguments, folder=tmp_path, code=2).stderr.strip()
    assert words in message
    assert "\n" not in message


def test_a_part_joins_what_the_folder_has(finished, tmp_path, undrawn):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    reproduce("boundaries", *OPTIONS, folder=tmp_path)
    assert "Pegasos" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "results.parquet").stat().st_size > (finished / "results.parquet").stat().st_size


def test_an_output_that_is_a_file_gets_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("mine")
    assert "taken" in reproduce("losses", folder=tmp_path / "taken", code=2).stderr
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("name", sorted(paper.EXPERIMENTS))
def test_a_task_is_the_same_every_time_and_another_with_another_seed(name):
    options = Options(runs=1, rounds=100, seed=5, quick=True)
    tasks = [next(iter(paper.EXPERIMENTS[name].tasks(replace(options, seed=seed)))) for seed in (5, 5, 6)]
    first, again, other = (paper.compute(task) for task in tasks)
    assert tasks[0].key == tasks[1].key != tasks[2].key
    assert first.equals(again)
    assert not first["value"].equals(other["value"])


def test_kernels_are_compiled_in_this_process_before_workers_start(tmp_path, monkeypatch, undrawn):
    computed, before = [], []
    monkeypatch.setattr(paper, "compute", computed.append)
    monkeypatch.setattr(runner, "run", lambda *arguments, **options: before.append(len(computed)))
    reproduce("all", "--runs", "2", "--jobs", "2", folder=tmp_path)
    assert before == [4]
    assert [task.experiment for task in computed] == ["sweep", "boundaries", "svm", "ridge"]
    assert {dict(task.settings)["rounds"] for task in computed} == {100}
    reproduce("svm", "--runs", "2", "--jobs", "1", folder=tmp_path)
    assert before == [4, 4]


ON_RESULTS = ("final_regret.py", "recovery.py", "weights.py", "who_wins.py")
DRAWING = {
    "frechet_mean.py": (["1", "30"], [], "frechet.png"),
    "nox_stream.py": ([], [], "nox.png"),
    "river_stream.py": ([], [], "river.png"),
    "scikit_learn.py": ([], ["1"], "scikit-learn.png"),
}


def run_example(script: str, *arguments: str) -> str:
    """Run an example in this process, which has imported most of what they all need."""
    path, written = ROOT / "examples" / script, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, matplotlib.rc_context({"backend": "Agg"}), redirect_stdout(written):
        patch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
    pyplot.close("all")
    assert written.getvalue()
    return written.getvalue()


@pytest.mark.parametrize("script", ON_RESULTS)
def test_the_examples_run_on_the_results(script, finished):
    run_example(script, str(finished))


@pytest.mark.parametrize("script", DRAWING)
def test_the_examples_with_streams_of_their_own_draw(script, tmp_path):
    before, after, picture = DRAWING[script]
    assert picture in run_example(script, *before, str(tmp_path), *after)
    assert (tmp_path / picture).stat().st_size > 10_000


def test_rare_features_are_found():
    found = run_example("rare_features.py", "1").splitlines()[1:]
    assert len(found) == 8
    assert all(line.split()[-2:] == ["1", "1"] for line in found)


def test_every_example_is_run():
    here = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert here - {*ON_RESULTS, *DRAWING, "rare_features.py"} == {"digits_flipped_labels.py"}, "needs PyTorch"
