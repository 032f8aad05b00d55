"""The report: the table's numbers, a page that is whole, and a browser that has nothing to say against it."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import scipy.stats

from redescend.experiments import claims, report
from redescend.experiments.pictures import Picture
from redescend.experiments.results import COUNTS, Results, join_blocks
from tests.pages import Page, open_in_browser

HOSTILE = '<script>alert("x")</script>&'
COLOURS = {
    "ridge-regret": (255, 0, 255),
    "svm-regret": (0, 255, 255),
    "boundaries": (255, 255, 0),
    "losses": (0, 0, 255),
}


def results(counts=COUNTS, runs=5, names=("LEARN", "OGD", "Top-k", HOSTILE, "oracle")):
    """Two problems in which the hostile learner is the best of those not told, and OGD equals Top-k."""
    random = np.random.default_rng(3)
    levels = {"LEARN": 700.0, "OGD": 500.0, "Top-k": 500.0, HOSTILE: 300.0, "oracle": 10.0}
    blocks = []
    for problem in ("ridge", "svm"):
        for count in counts:
            shared = random.normal(0.0, 5.0, runs)
            noise = {name: shared + random.normal(0.0, 3.0, runs) for name in names}
            noise["Top-k"] = noise["OGD"]
            here = {"experiment": problem, "problem": problem, "run": np.arange(runs), "rounds": 1000, "count": count}
            own = {"k": 5, "round": 1000, "measure": "regret"}
            blocks += [{**here, **own, "learner": name, "value": levels[name] + noise[name]} for name in names]
    return Results(join_blocks(blocks))


def png(path: Path, color) -> Path:
    """A PNG of one color, 40 × 30, byte by byte."""
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", 40, 30, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress((b"\0" + bytes(color) * 40) * 30),
        b"IEND": b"",
    }
    framed = ((struct.pack(">I", len(data)), kind + data) for kind, data in parts.items())
    chunks = (length + body + struct.pack(">I", zlib.crc32(body)) for length, body in framed)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return path


def pictures(folder):
    def picture(name, color):
        drawn = png(folder / f"{name}.png", color)
        return Picture(name, f"Title of {name} <b>", f'See "{name}" & more', drawn, drawn.with_suffix(".svg"))

    return [picture(name, color) for name, color in COLOURS.items()]


def written(folder, found=None, **changes):
    settings = {"options": {"experiment": "all", "runs": 5}, "command": "redescend reproduce <all>", "notes": []}
    settings |= {"seconds": {"ridge": 1.25}, **changes}
    path = report.write_report(results() if found is None else found, pictures(folder), folder / "out", **settings)
    return path, path.read_text(encoding="utf-8")


def test_the_page_is_whole(tmp_path):
    path, text = written(tmp_path)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert [item.name for item in path.parent.iterdir()] == ["report.html"]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert links
    assert all(link[1:] in ids and link[0] == "#" for link in links)
    images = page.all("img")
    assert len(images) == len(COLOURS)
    assert all(image["src"].startswith("data:image/png;base64,") and image["alt"] for image in images)
    assert {(image["width"], image["height"]) for image in images} == {("40", "30")}
    assert {f"picture-{name}" for name in COLOURS} | {f"claim-{claim.name}" for claim in claims.CLAIMS} <= set(ids)
    assert not page.all("script")


def test_the_page_asks_for_nothing_outside(tmp_path):
    _, text = written(tmp_path)
    assert "://" not in text
    assert not re.search(r"@import|url\(", text)
    attributes = [pair for _, own in Page(text).tags for pair in own.items()]
    addresses = [value for name, value in attributes if name in ("src", "href")]
    assert all(address.startswith(("data:", "#")) for address in addresses)


def test_the_page_says_what_it_is_made_of(tmp_path):
    _, text = written(tmp_path)
    words = Page(text).words
    for claim in claims.CLAIMS:
        assert claim.statement in words
        assert claim.rule in words
    cell = report.summarize_regret(results(), "ridge")[0].text
    made = ("redescend reproduce <all>", "1.2 s", "numba", "Python", "a = 10,", cell, HOSTILE, 'See "losses" & more')
    for expected in made:
        assert expected in words, expected
    order = [words.index(part) for part in ("claim of the paper", cell, "What to look for.", "Rule:", "numba")]
    assert order == sorted(order)
    assert "not complete" in words  # boundaries and sweep were asked for


def test_hostile_names_stay_text(tmp_path):
    _, text = written(tmp_path, options={HOSTILE: HOSTILE}, command=HOSTILE, notes=[HOSTILE], seconds={HOSTILE: 1.0})
    assert HOSTILE not in text
    assert "".join(Page(text).text).count(HOSTILE) >= 6


@pytest.mark.parametrize(
    ("experiment", "runs", "sentences"),
    [
        ("all", 9, ["ridge: 5 of 9 runs", "svm: 5 of 9 runs", "boundaries: no results", "sweep: no results"]),
        ("ridge", 9, ["ridge: 5 of 9 runs"]),
        (["svm", "sweep"], 5, ["sweep: no results"]),
        ("svm", 5, []),
    ],
)
def test_what_is_missing_is_said(tmp_path, experiment, runs, sentences):
    _, text = written(tmp_path, options={"experiment": experiment, "runs": runs})
    words = "".join(Page(text).text)
    assert [line for line in sentences if line in words] == sentences
    assert len(re.findall(r"\d of \d+ runs|no results yet", words)) == len(sentences)
    assert ("not complete" in words) == bool(sentences)


def test_a_length_that_is_not_the_papers_is_said(tmp_path):
    _, text = written(tmp_path)
    assert "Online support vector machine has T = 1,000 here and 10,000 in the paper" in "".join(Page(text).text)
    _, text = written(tmp_path, Results(join_blocks([])))
    assert "in the paper: verdicts" not in "".join(Page(text).text)


def test_an_empty_result_still_gives_a_report(tmp_path):
    _, text = written(tmp_path, Results(join_blocks([])), notes=["Interrupted by Ctrl-C."])
    words = "".join(Page(text).text)
    assert "cannot test any claim of the paper" in words
    assert "Interrupted by Ctrl-C." in words
    assert words.count("not run") >= len(claims.CLAIMS)


def test_a_picture_that_is_not_there_is_named_and_not_linked(tmp_path):
    shown = pictures(tmp_path)
    shown[0].png.unlink()
    shown[1].png.write_bytes(b"not a picture")
    path = report.write_report(results(), shown, tmp_path, options={}, command="", seconds={}, notes=[])
    page = Page(path.read_text(encoding="utf-8"))
    assert len(page.all("img")) == len(COLOURS) - 2
    assert "The picture ridge-regret could not be read." in "".join(page.text)
    assert "#picture-svm-regret" not in {link["href"] for link in page.all("a")}


def test_a_failed_write_leaves_the_old_report(tmp_path, monkeypatch):
    path, _ = written(tmp_path)
    path.write_text("old")

    def full(handle):
        raise OSError("disk full")

    monkeypatch.setattr("redescend.files.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        written(tmp_path)
    assert path.read_bytes() == b"old"
    assert not list(tmp_path.glob(".*.part"))


def test_the_table_marks_the_best_and_tests_it():
    rows = {(row.learner, row.count): row for row in report.summarize_regret(results(), "svm")}
    assert len(rows) == 5 * 4
    last = results().select(problem="svm", count="√T", measure="regret")
    last = last.select(round=last.column("round").max())
    finals = {name: last.select(learner=name).column("value") for name in (HOSTILE, "OGD")}
    best = rows[HOSTILE, "√T"]
    assert (best.best, best.runner_up, best.runs, best.k) == (True, "OGD", 5, 5)
    assert best.p == pytest.approx(scipy.stats.ttest_rel(finals[HOSTILE], finals["OGD"]).pvalue, rel=1e-9)
    assert best.mean == pytest.approx(np.mean(finals[HOSTILE]), rel=1e-12)
    assert best.error == pytest.approx(scipy.stats.sem(finals[HOSTILE]), rel=1e-12)
    assert "clearly below OGD" in best.lead
    assert not any(row.best for (name, _), row in rows.items() if name != HOSTILE)


def test_equal_learners_are_both_best():
    rows = report.summarize_regret(results(names=("LEARN", "OGD", "Top-k")), "ridge")
    assert {row.learner for row in rows if row.best} == {"OGD", "Top-k"}
    assert {row.runner_up for row in rows if row.best} == {"LEARN"}


def test_one_run_and_diverged_runs_are_said_so():
    (row,) = report.summarize_regret(results(counts=("0",), runs=1, names=("OGD", "oracle")), "svm")[:1]
    assert row.best
    assert row.lead == "no other learner to compare with"
    here = {"experiment": "svm", "problem": "svm", "run": np.arange(2), "rounds": 9, "count": "0", "k": 0, "round": 3}
    lost = {**here, "learner": "OGD", "measure": "diverged", "value": np.ones(2)}
    (row,) = report.summarize_regret(Results(join_blocks([lost])), "svm")
    assert row.text == "diverged"
    assert "not tested" in report.summarize_regret(results(runs=1), "svm")[3].lead


def test_noise_is_not_a_lead():
    here = {"experiment": "svm", "problem": "svm", "rounds": 9, "count": "0", "k": 0, "round": 9, "measure": "regret"}
    values = {"OGD": [1.0, 3.0, 2.0], "LEARN": [2.0, 1.0, 3.3]}
    blocks = [{**here, "learner": name, "run": np.arange(3), "value": np.array(row)} for name, row in values.items()]
    row = report.summarize_regret(Results(join_blocks(blocks)), "svm")[0]
    assert row.best
    assert "not clearly below LEARN" in row.lead


# --- in a browser ---


def browse(page: Path, folder: Path):
    """The colours of the page as Chromium draws it, and what it logs."""
    shot = folder / "shot.png"
    _, logged = open_in_browser(page, folder, "--hide-scrollbars", "--window-size=1200,6000", f"--screenshot={shot}")
    drawn = (matplotlib.image.imread(shot)[..., :3] * 255).round().astype(int) @ [1 << 16, 1 << 8, 1]
    shown = {name for name, (red, green, blue) in COLOURS.items() if (drawn == (red << 16) + (green << 8) + blue).any()}
    return shown, logged


def test_a_browser_shows_every_picture_and_logs_nothing(tmp_path):
    path, _ = written(tmp_path)
    assert browse(path, tmp_path) == (set(COLOURS), [])


@pytest.mark.soak
def test_the_browser_would_have_noticed(tmp_path):
    path, text = written(tmp_path)
    first = text.index("data:image/png;base64,") + len("data:image/png;base64,")
    path.write_text(
        text[:first] + "AAAA" + text[first:].replace("</body>", '<img alt="" src="https://127.0.0.1/x.png"></body>')
    )
    shown, logged = browse(path, tmp_path)
    assert shown == set(COLOURS) - {"ridge-regret"}
    assert logged
