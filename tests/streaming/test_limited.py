"""Runs with too little disk or memory, and mutated columnar files: nothing is lost, and nothing ends without a word."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from redescend.errors import RedescendError
from redescend.streaming import fit_stream
from tests.cli.commands import COMMAND
from tests.sources.written import as_arrow
from tests.streaming.fuzzing.verdicts import check_rows

ROOT = Path(__file__).parents[2]
ROWS, GROUP = 900, 100


@pytest.mark.parametrize("kills", [3, pytest.param(250, marks=pytest.mark.soak)])
def test_a_run_that_follows_a_file_can_be_killed(kills, record_property):
    command = [sys.executable, "-W", "error", "-m", "tests.streaming.crash_tail", str(kills)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record_property("tried", {"kills of a run that follows a rotated file": kills})
    record_property("lost", "no record")


def write_columns(form: str) -> bytes:
    random = np.random.default_rng(1)
    x = random.normal(size=ROWS)
    town = np.array(["Oslo", "Rome", "Lima"])[random.integers(3, size=ROWS)]
    table = pa.table({"x": x, "town": town, "y": 2.0 * x + random.normal(size=ROWS)})
    if form != "parquet":
        return as_arrow(table, stream=form == "stream", group=GROUP)
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=GROUP, write_page_checksum=True)
    return out.getvalue()


@pytest.mark.parametrize("count", [20, pytest.param(700, marks=pytest.mark.soak)])
@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_mutated_columns(form, count, record_property):
    """Every row that the file declares is learned from or counted as lost, or the file is refused in a sentence."""
    random, whole, refused = np.random.default_rng(2), write_columns(form), 0
    for _ in range(count):
        data = bytearray(whole)
        for place in random.integers(len(data), size=random.integers(1, 5)):
            data[place] = random.integers(256)
        try:
            _, rounds = fit_stream(io.BytesIO(data), "y", task="regression", format=form.replace("stream", "arrow"))
            rows = np.concatenate([np.empty(0, np.int64), *(batch.rows for batch in rounds.batches())])
        except (RedescendError, MemoryError):
            refused += 1
            continue
        records, learned, quarantined, skipped = rounds.counts
        assert records == learned + quarantined + skipped
        check_rows(rows, rounds.bad, records)
        if form == "parquet":
            footer = pq.ParquetFile(io.BytesIO(data)).metadata
            groups = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            assert records == max(footer.num_rows, sum(max(group, 0) for group in groups))
    record_property("tried", {"mutated Parquet and Arrow files": count, "refused in a sentence": refused})
    record_property("lost", "no row uncounted")


@pytest.fixture
def source(tmp_path):
    random = np.random.default_rng(3)
    path = tmp_path / "a.csv"
    X, towns = random.normal(size=60_000), random.integers(9, size=60_000)
    lines = (f"{x},{town},{3 * x}\n" for x, town in zip(X, towns, strict=True))
    path.write_text("x,t,y\n" + "".join(lines))
    return path


def fit(source, folder, *more, limit=None):
    names = ("--model", folder / "m", "--rounds", folder / "r", "--checkpoint", folder / "run", "--every", "10000")
    command = [*COMMAND, "fit", source, "--target", "y", "--no-report", "--quiet", *names, *more]
    before = None if limit is None else lambda: resource.setrlimit(*limit)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, preexec_fn=before)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.soak
@pytest.mark.parametrize("what", ["disk", "memory"])
def test_runs_with_limits_end_with_a_sentence_and_can_be_resumed(source, tmp_path, what, record_property):
    """The files of the resumed run are those of one without limits, byte for byte."""
    alone = tmp_path / "alone"
    alone.mkdir()
    assert fit(source, alone).returncode == 0
    kind = resource.RLIMIT_FSIZE if what == "disk" else resource.RLIMIT_AS
    sizes = np.geomspace(2_000, 6_000_000, 15) if what == "disk" else np.geomspace(500e6, 3e9, 15)
    failed = 0
    for number, size in enumerate(sizes.astype(int).tolist()):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = fit(source, folder, limit=(kind, (size, size)))
        if done.returncode:
            failed += 1
            # Libraries may abort the process if they get no memory; the C library exits with 127 then.
            aborted = what == "memory" and (done.returncode < 0 or done.returncode == 127)
            assert done.returncode in (1, 2) or aborted, done.stderr
            assert fit(source, folder, "--resume").returncode == 0
        for name in ("m", "r"):
            assert (folder / name).read_bytes() == (alone / name).read_bytes()
        assert not [path for path in folder.iterdir() if path.suffix == ".part"]
    record_property(
        "tried", {f"runs with little {what}": len(sizes), "failed with a sentence and were resumed": failed}
    )
    record_property("lost", "no byte of the model and the rounds")
    assert failed
