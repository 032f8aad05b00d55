"""The report on a stream: whole, the same bytes twice, true to the counts, and safe whatever the records hold."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend.errors import MissingExtraError
from redescend.sources import Bad
from redescend.streaming import fit_stream
from redescend.streaming.report import page as report
from redescend.streaming.report.charts import Chart, Scale, fit_scale
from redescend.streaming.summary import Summary
from tests.pages import Page, open_in_browser

HOSTILE = "<script>alert('x')</script>&\""


def numbers(count=1200, unit=1.0):
    """A line with one target in twenty far off, a text, a truth and gaps."""
    random = np.random.default_rng(8)
    x, y = random.normal(size=(2, count))
    target = unit * (3.0 * x - y + 0.1 * random.normal(size=count))
    target[::20] = 50.0 * unit
    shop = random.choice(["Rome", "Oslo"], count)
    columns = {"x": x, "y": pa.array(y, mask=random.random(count) < 0.1), "shop": shop, "open": x > 0.0}
    return pa.table({**columns, "price": target})


def labels(count=1200):
    random = np.random.default_rng(9)
    X = random.normal(size=(count, 2))
    kind = np.array(["ant", "bee", "cat"])[(X @ [[2.0, -1.0, 0.0], [0.0, 1.0, -2.0]]).argmax(axis=1)]
    kind[::25] = "cat"
    return pa.table({"size": X[:, 0], "age": X[:, 1], "kind": kind})


def played(table, target, **settings):
    model, rounds = fit_stream(table, target, **settings)
    return model, rounds.run()


def written(folder, table, target, name="report.html", source="here", **settings):
    model, rounds = played(table, target, **settings)
    path = report.write(folder / name, model, rounds.summary, rounds.counts, source=source)
    return rounds, path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("table", "target"), [(numbers(), "price"), (labels(), "kind")], ids=["numbers", "labels"])
def test_the_page_is_whole_and_asks_for_nothing(table, target, tmp_path):
    rounds, text = written(tmp_path, table, target)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert len(links) >= 4
    assert all(link[0] == "#" and link[1:] in ids for link in links)
    assert "://" not in text
    assert not re.search(r"@import|url\(|<script|nan|\binf\b", text)
    drawn = page.all("svg")
    assert len(drawn) == (5 if rounds.summary.schema.classifies else 7)  # two partial dependences
    assert all(attributes["aria-label"] for attributes in drawn)


def test_the_page_says_what_was_found(tmp_path):
    table = numbers()
    rounds, text = written(tmp_path, table, "price")
    words, found = Page(text).words, rounds.summary
    assert f"Learned from 1,200 of 1,200 records. {found.suspect_count:,} suspects (" in words
    assert "No rejected records." in words
    rows = [int(row) - 1 for row in re.findall(r'<tr><th scope="row">([\d,]+)</th>', text.replace(",", ""))]
    assert rows == [one.round.row - 1 for one in found.least]
    assert all(row % 20 == 0 for row in rows)  # those that are far off
    assert all(f"{one.round.row:,}" in words and one.values["shop"] in words for one in found.least)
    parts = (
        'class="result"',
        *(f'id="{name}"' for name in ("suspects", "along", "predictions", "importance", "model")),
    )
    order = [text.index(part) for part in parts]
    assert order == sorted(order)
    assert re.search(r'<dl class="importance">\s*<dt>x</dt>', text)


def test_the_final_list_says_how_much_of_it_may_be_right_and_what_is_stuck(tmp_path):
    table = numbers(3000)
    price = table["price"].to_numpy().copy()
    price[2001:2100] = price[2001]
    table = table.set_column(table.column_names.index("price"), "price", pa.array(price))
    run, text = written(tmp_path, table, "price", final_look=True)
    words, final = Page(text).words, run.final
    clean = final.clean_probability[: final.listed].sum()
    assert clean == pytest.approx(final.q_value[final.listed - 1] * final.listed)
    about = f"about {clean:.0f}" if clean >= 0.5 else "less than 1"
    assert f"Expected false alarms: {about} of {final.listed} suspects. The table shows the first 10." in words
    assert "from row 2,003 to row 2,100 (98 records)." in words
    assert words.count("is stuck at") == 1
    cells = re.findall(r'class="chip">[^<]+</span></td><td>([^<]+)</td>', text)
    assert cells == ["&lt; 0.001" if q < 0.001 else f"{q:.3f}" for q in final.q_value[:10]]
    _, text = written(tmp_path, numbers(), "price")
    assert "q-value" not in text


@pytest.mark.parametrize(("wrong", "words"), [(0, "None of them is a suspect."), (1, "The first is a suspect.")])
def test_records_that_are_no_suspects_are_not_called_suspects(wrong, words, tmp_path):
    random = np.random.default_rng(10)
    x = random.normal(size=600)
    target = 3.0 * x + random.normal(size=600)
    target[:wrong] = 1000.0
    run, text = written(tmp_path, pa.table({"x": x, "price": target}), "price", final_look=True, passes=None)
    assert run.final.listed == wrong
    assert "The 10 records that are least likely clean" in Page(text).words
    assert words in Page(text).words
    assert "Top" not in Page(text).words
    assert text.count('class="chip"') == wrong
    assert text.count('class="chip calm"') == 10 - wrong


def test_the_intervals_are_drawn_and_compared_with_the_records(tmp_path):
    _, text = written(tmp_path, numbers(5000), "price")
    picture = text[text.index('id="coverage"') :]
    clean, every = (float(share) for share in re.findall(r"([\d.]+)\xa0%", picture)[:2])
    assert every < clean  # one record in twenty is wrong
    assert abs(clean - 90.0) < 3.0
    assert text.count('<path class="edge"') == 2
    _, text = written(tmp_path, numbers(), "price", transform=rd.transforms.Huber(1.0))
    assert "coverage" not in text
    assert '<path class="edge"' not in text


@pytest.mark.parametrize("look", [False, True])
def test_errors_are_shown_beside_naive_ones_of_the_first_reading(look, tmp_path):
    table = numbers()
    run, text = written(tmp_path, table, "price", final_look=look)
    _, once = played(table, "price")
    rows = Page(text).words
    for score, first in zip(run.summary.metrics.scores(), once.summary.metrics.scores(), strict=True):
        assert repr(score) == repr(first)
        errors = (f"{score.values[name][0]:.3g}" for name in ("mean absolute error", "root mean squared error"))
        assert f"{score.name} {' '.join(errors)}" in rows
    model, *naive = (score.values["mean absolute error"] for score in run.summary.metrics.scores())
    assert all(model[side] < other[side] for other in naive for side in (0, 1))


def test_labels_that_are_wrong_show(tmp_path):
    rounds, text = written(tmp_path, labels(), "kind")
    table = text[text.index('id="labels"') :]
    cells = re.findall(r'scope="row" class="text">(\w+)</th><td>([\d,]+)</td><td>([\d.]+) %</td><td>([\d.<]+)', table)
    truth = np.asarray(labels()["kind"])
    assert {name: int(count) for name, count, _, _ in cells} == {name: (truth == name).sum() for name in set(truth)}
    assert max(cells, key=lambda cell: float(cell[3]))[0] == "cat"
    taken = re.findall(r'<td class="text">(\w+)</td></tr>', table)
    for (name, *_), other in zip(cells, taken, strict=True):
        counts = rounds.summary.confusion[rounds.summary.schema.labels.index(name)].sum(axis=1)
        wrong = {said: count for said, count in zip(("ant", "bee", "cat"), counts, strict=True) if said != name}
        assert other == max(wrong, key=wrong.get)
    assert rounds.summary.least[0].round.target == "cat"


def test_the_same_stream_gives_the_same_bytes(tmp_path):
    """In one pass, and in one that was stopped and resumed."""
    table = numbers(5000)
    csv = tmp_path / "s.csv"
    table.to_pandas().to_csv(csv, index=False)
    bytes_of = {}
    for name in ("whole", "again", "stopped"):
        settings = {"checkpoint": tmp_path / name, "every": 700}
        model, rounds = fit_stream(csv, "price", **settings)
        if name == "stopped":
            for _ in range(2000):
                next(rounds)
            rounds.close()
            model, rounds = fit_stream(csv, "price", resume=True, **settings)
        rounds.run()
        path = report.write(tmp_path / f"{name}.html", model, rounds.summary, rounds.counts, source="s")
        bytes_of[name] = path.read_bytes()
    assert bytes_of["whole"] == bytes_of["again"] == bytes_of["stopped"]


def test_hostile_records_stay_text(tmp_path):
    table = pa.table(
        {
            HOSTILE: [f"{HOSTILE}{place % 3}" for place in range(300)],
            "x" + HOSTILE: np.arange(300.0) % 7,
            "kind": [HOSTILE if place % 2 else "other" for place in range(300)],
        }
    )
    model, rounds = played(table, "kind", features=[HOSTILE, "x" + HOSTILE])
    rounds.summary.add_rejected([Bad(301, HOSTILE, f"{HOSTILE} is odd", HOSTILE.encode())])
    counts = rounds.counts._replace(records=301, quarantined=1)
    path = report.write(tmp_path / "r.html", model, rounds.summary, counts, source=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "alert('x')" not in text
    page = Page(text)
    assert "".join(page.text).count(HOSTILE) >= 20
    _, text = written(tmp_path, table.rename_columns([HOSTILE, "kind", "y" + HOSTILE]), "kind", source=HOSTILE)
    assert "<script" not in text
    assert "".join(Page(text).text).count(HOSTILE) >= 10


@pytest.mark.parametrize(
    "targets",
    [[1.0, 2.0, 3.0], np.full(300, 7.0), np.where(np.arange(300) % 2, 1e100, -1e100), np.linspace(0, 1e-90, 300)],
    ids=["three", "constant", "huge", "tiny"],
)
def test_streams_with_little_to_show_are_shown(targets, tmp_path):
    x = np.arange(len(targets)) % 5.0
    _, text = written(tmp_path, pa.table({"x": x, "y": targets}), "y", task="regression")
    assert not re.search(r"\bnan\b|\binf\b", text)
    assert len(Page(text).all("svg")) >= 3


def test_a_stream_without_a_record_that_could_be_used_says_so(tmp_path):
    model, rounds = played(numbers(100), "price")
    found = Summary(model.schema)
    found.add_rejected([Bad(row, "f", f"{row} values where the header has 5", b"1") for row in (1, 2)])
    counts = rounds.counts._replace(records=2, learned=0, quarantined=0, skipped=2)
    text = report.write(tmp_path / "r.html", model, found, counts).read_text(encoding="utf-8")
    words = Page(text).words
    assert "Learned from 0 of 2 records. 2 records rejected and skipped." in words
    assert "… values where the header has …" in words
    assert not Page(text).all("svg")


def test_a_report_on_many_models_shows_the_keys(tmp_path):
    table = numbers(300)
    model, rounds = played(table, "price")
    schema = dataclasses.replace(model.schema, features=model.schema.features[:2], by="shop")
    found = Summary(schema)
    batch = SimpleNamespace(table=table.combine_chunks().to_batches()[0], files="f")
    found.add(rounds.summary.sample.rounds, batch, np.arange(300))
    assert found.least[0].values.keys() == {"x", "y", "shop"}
    words = Page(report.write(tmp_path / "r.html", None, found, rounds.counts).read_text(encoding="utf-8")).words
    assert "one model per value of 'shop'" in words
    assert "columns row clean probability observed predicted error (in typical errors) shop x y" in words
    assert "Feature importance" not in words


def test_much_doubt_is_questioned(tmp_path):
    random = np.random.default_rng(3)
    target = random.standard_t(1.0, 2000)
    table, gate = pa.table({"x": random.normal(size=2000), "y": target}), rd.transforms.Welsch(0.5)
    _, text = written(tmp_path, table, "y", transform=gate)
    assert "If that is more than can be wrong, most of them are correct" in Page(text).words
    _, text = written(tmp_path, numbers(), "price")
    assert "more than can be wrong" not in text


def test_a_gate_that_believes_little_says_how_much(tmp_path):
    _, text = written(tmp_path, numbers(), "price", transform=rd.transforms.Learn(1.0, 10.0))
    assert "with this gate, the largest possible is 0.091" in Page(text).words


def test_without_jinja_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "redescend.streaming.report.page")
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'redescend[cli]'")):
        importlib.import_module("redescend.streaming.report.page")


def test_a_browser_has_nothing_to_say_against_it(tmp_path):
    written(tmp_path, numbers(), "price")
    drawn, logged = open_in_browser(tmp_path / "report.html", tmp_path, "--dump-dom")
    assert drawn.count("<svg") == 7
    assert logged == []


def test_hostile_texts_of_a_chart_stay_text():
    chart = Chart(Scale(0.0, 1.0), Scale(0.0, 1.0), x_label=HOSTILE, y_label=HOSTILE, description=HOSTILE)
    chart.text(0.0, 0.0, HOSTILE, "tick")
    chart.bar(0.0, 1.0, 0.0, 1.0, "bad", HOSTILE)
    chart.dot(0.5, 0.5, "dot", tip=HOSTILE)
    drawn = chart.to_svg()
    assert "<script" not in drawn
    page = Page(drawn)
    assert "".join(page.text).count(HOSTILE) == 5
    assert page.all("svg")[0]["aria-label"] == HOSTILE


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100), st.booleans())
@settings(deadline=None, derandomize=True, max_examples=300)
def test_every_scale_has_ticks_where_it_reaches(one, other, log):
    if log:
        one, other = abs(one) + 1e-100, abs(other) + 1e-100
    scale = fit_scale([one, other], log=log)
    assert 0.0 <= scale(min(one, other)) <= scale(max(one, other)) <= 1.0
    ticks = scale.ticks()
    assert len(ticks) <= 7 + log
    assert all(-1e-6 <= scale(tick) <= 1.0 + 1e-6 for tick in ticks)
    assert len(ticks) >= 1 + (not log)


def test_a_scale_has_round_ticks():
    assert Scale(-3.0, 21.0).ticks() == [0.0, 5.0, 10.0, 15.0, 20.0]
    assert Scale(0.0, 0.07).ticks() == pytest.approx([0.0, 0.02, 0.04, 0.06])
    assert Scale(2.0, 7.0, log=True).ticks() == [2.0, 4.0, 6.0]
    assert Scale(0.96, 1.02, percent=True).ticks()[-1] == 1.0
