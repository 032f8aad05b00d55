"""The final look: a second reading with what was learned, against the same by hand."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from redescend.belief import LabelBelief, ResidualBelief, Verdict
from redescend.errors import DataError, ParameterError
from redescend.sources import open_source
from redescend.streaming import StreamModel, fit_stream
from redescend.streaming.config import FitConfig, Outputs
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.fit import start_run
from redescend.streaming.record_order import order_by_content
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.records import StuckRun, StuckRuns


def make_table(target: str, rows: int = 1500) -> pa.Table:
    random = np.random.default_rng(3)
    x = random.normal(size=(rows, 2))
    y = x @ [2.0, -1.0] + 0.3 * random.normal(size=rows)
    label = np.where(y > 0, "up", "down")
    wrong = np.arange(10, rows, 50)
    y[wrong] += 9.0
    label[wrong] = np.where(label[wrong] == "up", "down", "up")
    return pa.table({"a": x[:, 0], "b": x[:, 1], "y": y if target == "number" else label})


def check_written(run, first, rounds, verdict, schema):
    written = pq.read_table(run.config.outputs.rounds)
    np.testing.assert_array_equal(written["clean_probability"].to_numpy(), first.clean_probability)
    np.testing.assert_array_equal(written["final_probability"].to_numpy(), verdict.clean_probability)
    assert written["final_prediction"].to_pylist() == [one.prediction for one in rounds.records(schema)]
    count = run.final.listed
    found = verdict.suspects(0.1)
    assert sorted(run.final.rounds.rows[:count]) == sorted(rounds.rows[found])
    np.testing.assert_array_equal(np.sort(run.final.q_value[:count]), np.sort(verdict.q_value[found]))
    assert run.summary.suspect_count == count > 0


@pytest.mark.parametrize("target", ["number", "label"])
def test_records_in_time_are_judged_by_a_model_around_their_time(target, tmp_path):
    table = make_table(target)
    model, run = fit_stream(table, "y", linear=True, final_look=True, rounds=tmp_path / "r.parquet")
    run.run()
    source = open_source(table)
    other = StreamModel(Schema.infer(source.sample, source.kinds, "y"))
    [batch] = source.batches(other.schema.columns)
    first = other.learn(batch).rounds
    learned = other.begin_reading()
    rounds = other.learn(batch).rounds
    other.return_to(learned)
    if target == "number":
        [chunk] = other.encode(batch.table)
        rounds = other.learn_belief_again(chunk.X, rounds)
    assert model.records == other.records == 1500
    np.testing.assert_array_equal(model.clean_probability(table), other.clean_probability(table))
    check_written(run, first, rounds, other.give_verdict(rounds), other.schema)


@pytest.mark.parametrize("target", ["number", "label"])
@pytest.mark.parametrize("passes", [2, 3])
def test_records_of_a_table_are_judged_by_the_final_model_as_score_does(target, passes, tmp_path):
    table = make_table(target)
    model, run = fit_stream(table, "y", linear=True, passes=passes, final_look=True, rounds=tmp_path / "r.parquet")
    run.run()
    source = open_source(table)
    other = StreamModel(Schema.infer(source.sample, source.kinds, "y"))
    [batch] = source.batches(other.schema.columns)
    first = other.learn(batch).rounds
    [chunk] = other.encode(batch.table)
    order = order_by_content(chunk.X, chunk.targets)
    [mixed] = open_source(table.take(pa.array(order))).batches(other.schema.columns)
    other = StreamModel(other.schema)
    other.learn(mixed)
    for _ in range(passes - 1):
        other.begin_reading()
        other.learn(mixed)
    scores = other.engine.predict_unseen(chunk.X[order], chunk.targets[None, order], np.ones(len(order)))
    belief = LabelBelief(2) if target == "label" else ResidualBelief(chunk.X.shape[1])
    if target == "label":
        belief.learn_table(scores.T.copy(), chunk.targets[order].astype(int))
    else:
        belief.learn_table(scores[0], chunk.targets[order], X=chunk.X[order])
    rounds = other.adopt(other.engine, np.zeros(len(other.schema.indicators)), belief).review(batch, target=True).rounds
    assert model.records == passes * 1500
    np.testing.assert_array_equal(model.clean_probability(table), rounds.clean_probability)
    verdict = Verdict(rounds.judged.clean_log_odds, np.zeros(1500))
    check_written(run, first, rounds, verdict, other.schema)


def test_neither_the_model_nor_the_list_depends_on_the_order_of_a_table():
    table = make_table("number")
    lists, predictions = [], []
    for order in (np.arange(1500), np.random.default_rng(0).permutation(1500), np.argsort(table["y"].to_numpy())):
        model, run = fit_stream(table.take(pa.array(order)), "y", passes=None, shuffle=None, final_look=True)
        run.run()
        predictions.append(model.predict(table).tolist())
        lists.append(set(order[run.final.rounds.rows[: run.final.listed] - 1].tolist()))
    assert predictions[0] == predictions[1] == predictions[2]
    assert lists[0] == lists[1] == lists[2]
    assert len(lists[0]) > 20


def look(columns, **options):
    model, run = fit_stream(pa.table(columns), "y", final_look=True, **{"passes": 2} | options)
    run.run()
    return model, run


def drift(rows: int = 1500) -> dict[str, np.ndarray]:
    """The effect of x changes along the records, which have an error in 50."""
    random, time = np.random.default_rng(0), np.linspace(0.0, 6.0, rows)
    x = random.normal(size=rows)
    y = x * np.sin(2.0 * time) + 2.0 * np.cos(time) + 0.05 * random.normal(size=rows)
    y[20::50] += 3.0
    return {"x": x, "y": y}


def test_the_order_of_a_table_is_followed_if_no_column_explains_it():
    assert look(drift())[1].follows == "order"
    assert look(drift(), shuffle=True)[1].follows == ""
    x = np.linspace(0.0, 6.0, 1500)
    y = np.sin(3.0 * x) + 0.05 * np.random.default_rng(0).normal(size=1500)
    assert look({"x": x, "y": y})[1].follows == ""
    mixed = np.random.default_rng(1).permutation(1500)
    assert look({name: values[mixed] for name, values in drift().items()})[1].follows == ""


@pytest.mark.parametrize(("numbers", "linear"), [(False, True), (True, True), (False, None)])
def test_the_time_of_a_table_is_followed_in_any_order(numbers, linear):
    """Trees may learn from a date what a linear model has to follow; they do so less exactly."""
    columns = drift()
    days = (np.datetime64("2020-01-01") + np.arange(1500)).astype("datetime64[us]")
    times = {"day": days}
    if numbers:
        months = days.astype("datetime64[M]")
        times = {"Year": months.astype("datetime64[Y]").astype(int) + 1970.0, "month": months.astype(int) % 12 + 1.0}
        times["day"] = (days - months).astype("timedelta64[D]").astype(float) + 1.0
    columns = times | columns
    lists, predictions = [], []
    for order in (np.arange(1500), np.random.default_rng(0).permutation(1500), np.argsort(columns["y"])):
        model, run = look({name: values[order] for name, values in columns.items()}, linear=linear)
        assert run.follows == "time" or linear is None
        lists.append(set(order[run.final.rounds.rows[: run.final.listed] - 1].tolist()))
        predictions.append(model.predict(pa.table(columns)).tolist())
    assert lists[0] == lists[1] == lists[2]
    assert predictions[0] == predictions[1] == predictions[2]
    assert len(lists[0] & set(range(20, 1500, 50))) >= (27 if linear else 20)
    assert len(lists[0]) <= 33
    assert look(columns, shuffle=True)[1].follows == ""


def test_the_order_by_content_is_that_of_the_contents():
    random = np.random.default_rng(5)
    X, y = np.round(random.normal(size=(300, 3)), 1), random.normal(size=300)
    X[random.random(X.shape) < 0.1] = np.nan
    mixed = random.permutation(300)
    one, other = order_by_content(X, y), order_by_content(X[mixed], y[mixed])
    np.testing.assert_array_equal(mixed[other], one)
    assert abs(np.corrcoef(one, np.arange(300))[0, 1]) < 0.2
    assert abs(np.corrcoef(y[one][1:], y[one][:-1])[0, 1]) < 0.2


def test_a_large_table_is_judged_in_its_order(monkeypatch):
    monkeypatch.setattr("redescend.streaming.final_look.MOST_CELLS", 4000)
    _, run = fit_stream(make_table("number"), "y", passes=2, final_look=True)
    run.run()
    assert run.final.listed > 20


def test_a_pipe_is_judged_by_the_rounds_of_its_only_reading():
    table = make_table("number")
    text = io.BytesIO()
    pa.csv.write_csv(table, text)
    model, run = fit_stream(io.BytesIO(text.getvalue()), "y", passes=None, final_look=True)
    run.run()
    other, rounds = fit_stream(io.BytesIO(text.getvalue()), "y")
    played = Rounds.concatenate(rounds.batches())
    verdict = other.give_verdict(played)
    assert model.records == 1500
    count = run.final.listed
    assert sorted(run.final.rounds.rows[:count]) == sorted(played.rows[verdict.suspects(0.1)])
    assert run.summary.least[0].values["a"] is not None
    with pytest.raises(ParameterError, match="can only be read once"):
        fit_stream(io.BytesIO(text.getvalue()), "y", passes=2)


def test_the_second_look_finds_what_the_first_could_not_know():
    """An error among the first records, when nothing was known."""
    table = make_table("number")
    y = table["y"].to_numpy().copy()
    y[2] += 9.0
    table = table.set_column(2, "y", pa.array(y))
    _, run = fit_stream(table, "y", final_look=True)
    [rounds] = run.batches()
    assert rounds.clean_probability[2] > 0.5
    assert 3 in run.final.rounds.rows[: run.final.listed]


def test_a_run_that_is_resumed_takes_the_same_look(tmp_path):
    table, options = make_table("number"), {"passes": 2, "final_look": True, "every": 400}
    _, whole = fit_stream(table, "y", **options, rounds=tmp_path / "a", checkpoint=tmp_path / "one")
    whole.run()
    with fit_stream(table, "y", **options, rounds=tmp_path / "b", checkpoint=tmp_path / "two")[1] as run:
        for _ in zip(range(2), run.batches(), strict=False):
            pass
    _, again = fit_stream(table, "y", **options, rounds=tmp_path / "b", checkpoint=tmp_path / "two", resume=True)
    again.run()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(again.final.clean_probability, whole.final.clean_probability)
    _, finished = fit_stream(table, "y", **options, rounds=tmp_path / "b", checkpoint=tmp_path / "two", resume=True)
    assert finished.run().summary.least == whole.summary.least
    assert finished.summary.suspect_count == whole.final.listed


@pytest.mark.parametrize("by", [None, "sensor"])
def test_stuck_sensors_have_their_rows(by):
    table = make_table("number")
    y, sensor = table["y"].to_numpy().copy(), np.where(np.arange(1500) % 2, "b", "a")
    y[701:1400:2] = 0.25
    y[700:1400:2] = 0.25 if by is None else y[700:1400:2]
    table = table.set_column(2, "y", pa.array(y)).append_column("sensor", pa.array(sensor))
    run = fit_stream(table, "y", by=by, final_look=True)[1].run()
    expected = (702, 1400, 699, 0.25, None) if by is None else (704, 1400, 349, 0.25, "b")
    assert run.final.runs == [expected]
    assert run.summary.final.stuck == run.final.runs
    assert run.summary.histograms.limits.suspect == 0.5  # there is a belief, with keys, too


def test_nothing_is_stuck_in_a_random_order(monkeypatch):
    """Whatever was found there: its first and last row would mean nothing."""
    monkeypatch.setattr(StuckRuns, "longest", lambda self, most: [StuckRun(9, 4, 3, 0.25)])
    for shuffle in (False, True):
        run = fit_stream(make_table("number", 300), "y", shuffle=shuffle, final_look=True)[1].run()
        assert len(run.final.runs) == (not shuffle)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("passes", [1, 2])
def test_of_a_file_that_grows_the_records_of_the_first_reading_are_judged(tmp_path, passes, shuffled):
    table, outcomes = make_table("number"), []
    for name, more in (("same", b""), ("grown", b"1.0,1.0,1.0\nbad,1.0,1.0\n" * 20)):
        file = tmp_path / f"{name}.csv"
        pa.csv.write_csv(table, file)
        options = {"passes": passes, "final_look": True, "shuffle": shuffled, "linear": True}
        options["rounds"] = tmp_path / f"{name}.parquet"
        model, run = fit_stream(file, "y", **options)
        for _ in run:
            if run.counts.records == len(table) and more:
                with file.open("ab") as end:
                    end.write(more)
                more = b""
        outcomes.append((model, run))
    (model, run), (other, grown) = outcomes
    assert (tmp_path / "grown.csv").stat().st_size > (tmp_path / "same.csv").stat().st_size
    assert grown.counts == run.counts
    assert grown.summary.learned == run.summary.learned == len(table)
    assert (tmp_path / "grown.parquet").read_bytes() == (tmp_path / "same.parquet").read_bytes()
    np.testing.assert_array_equal(other.clean_probability(table), model.clean_probability(table))


@pytest.mark.parametrize("spoil", [lambda line: b"", lambda line: b"no number" + line], ids=["shorter", "bad"])
def test_a_file_that_changes_is_refused_before_anything_is_written(tmp_path, spoil):
    file, folder = tmp_path / "a.csv", tmp_path / "out"
    pa.csv.write_csv(make_table("number"), file)
    folder.mkdir()
    outputs = {"rounds": folder / "r.parquet", "quarantine": folder / "bad.jsonl"}
    _, run = fit_stream(file, "y", final_look=True, **outputs)
    lines = file.read_bytes().splitlines(keepends=True)
    next(run)
    file.write_bytes(b"".join(lines[:-1]) + spoil(lines[-1]))
    with pytest.raises(DataError, match=r"a\.csv changed while it was read: at first, 1,500 of 1,500 .* copy"):
        run.run()
    assert not run.finished
    assert list(folder.iterdir()) == []


def test_an_explanation_of_another_prediction_is_left_out(tmp_path):
    """The report explains by the model as it is in the end, which has followed the stream."""
    random, rows = np.random.default_rng(6), 3000
    x = random.normal(size=rows)
    y = np.where(np.arange(rows) < 1500, 5.0, -5.0) * x + 0.1 * random.normal(size=rows)
    y[[700, 2900]] += 30.0
    x[[700, 2900]] = 1.0
    config = FitConfig(target="y", final_look=True, outputs=Outputs(report=tmp_path / "r.html"))
    with start_run(pa.table({"x": x, "y": y}), config) as run:
        run.run()
    why = {one.round.row: one.why for one in run.summary.least}
    assert why[701] == {"outdated": True}
    assert why[2901]["prediction"] == pytest.approx(-5.0, abs=1.0)
    page = (tmp_path / "r.html").read_text()
    assert "The model has changed since" in page
    assert "judged again after all were read" in page  # by the model of their time, not by the final one
    cards = page.count('<section class="card">\n    <p class="ticket">')
    assert 0 < page.count("<li><code>") == min(10, run.summary.suspect_count) - cards


def test_a_batch_in_which_no_record_can_be_used_is_no_obstacle(tmp_path):
    path, table = tmp_path / "a.parquet", make_table("number", 300)
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="none")
    start = pq.ParquetFile(path).metadata.row_group(2).column(2).data_page_offset
    data = path.read_bytes()
    path.write_bytes(data[:start] + bytes(40) + data[start + 40 :])
    _, run = fit_stream(path, "y", final_look=True, passes=2)
    run.run()
    assert run.summary.learned == 200
