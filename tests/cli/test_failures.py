"""What fails outside of the records: memory, the standard streams, signals. One sentence, and a documented code."""

from __future__ import annotations

from redescend.streaming import StreamModel
from tests.cli.commands import prices, refused, run


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
    assert "not enough memory" in refused(*fit, code=1)
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
