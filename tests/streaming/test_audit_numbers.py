"""Sentinel values and wrong signs are found by a rule; frequent values are not stuck; labels must be predictable."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from redescend.sources import open_source
from redescend.streaming.audit import audit_source
from redescend.streaming.audit.kinds import find_odd_numbers, find_unit_stretches

ROWS = 1000


def column(*changes: float, low: float = 5.0) -> np.ndarray:
    values = np.random.default_rng(0).uniform(low, 900.0, ROWS)
    values[: len(changes)] = changes
    return values


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([-999.0], {0: "sentinel value"}),
        ([-99.0, -99.0], {0: "sentinel value", 1: "sentinel value"}),  # the only negative numbers
        ([9999.0], {0: "sentinel value"}),
        ([999.0], {}),  # near the others
        ([99.0], {}),  # among the others
        ([-450.0], {0: "negative, unlike the others"}),
        ([-1.0], {}),  # nearly 0
        ([-5000.0], {}),  # no ordinary number without its sign
        ([-450.0 - number for number in range(20)], {}),  # too many
        ([-450.0] * 20, dict.fromkeys(range(20), "sentinel value")),  # the only negative number
        ([-9.0] * 3, dict.fromkeys(range(3), "sentinel value")),
        ([-9.0] * 2, {}),
        ([9999.0] * 400, {}),  # too many
        ([np.nan, 7.0], {}),
    ],
)
def test_odd_numbers(changes, found):
    assert find_odd_numbers(column(*changes)) == found


@pytest.mark.parametrize("code", [-9.0, -1.0])
def test_a_code_for_a_missing_age_has_a_kind(code):
    random = np.random.default_rng(0)
    age = random.integers(18, 91, ROWS).astype(float)
    pension = 20.0 * age + random.normal(0.0, 30.0, ROWS)
    age[::150] = code
    cells = audit_source(open_source(pa.table({"age": age, "pension": pension}))).cells
    assert {(cell.row, cell.kind) for cell in cells if cell.column == "age"} == {
        (row, "sentinel value") for row in range(1, ROWS + 1, 150)
    }


def test_steps_below_zero_are_no_codes():
    random = np.random.default_rng(0)
    for values in ([-1.0, 0.0, 1.0], [-10.0, 0.0, 10.0, 20.0], np.append(-1.0, np.arange(80.0))):
        assert find_odd_numbers(random.permutation(np.append(random.choice(values[1:], ROWS), values[:1] * 5))) == {}


def test_nothing_is_odd_in_a_short_or_signed_column():
    assert find_odd_numbers(column(-999.0)[:90]) == {}
    assert find_odd_numbers(column(-450.0, low=-900.0)) == {}
    assert find_odd_numbers(np.empty(0)) == {}


def make_table() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    x = random.normal(size=ROWS)
    return {"x": x, "skewed": random.lognormal(3.0, 1.5, ROWS), "y": 2.0 * x + random.normal(size=ROWS)}


def test_a_sentinel_in_a_column_that_is_hard_to_predict_is_listed():
    columns = make_table()
    columns["skewed"][70] = -999.0
    cells = audit_source(open_source(pa.table(columns))).cells
    assert [(cell.row, cell.column, cell.value, cell.kind) for cell in cells if cell.kind] == [
        (71, "skewed", -999.0, "sentinel value")
    ]


def test_a_run_of_a_frequent_value_is_not_stuck():
    columns = make_table()
    random = np.random.default_rng(2)
    columns["rare"] = np.where(random.random(ROWS) < 0.04, random.normal(5.0, 1.0, ROWS), 0.0)
    columns["rare"][300:400] = 0.0
    assert audit_source(open_source(pa.table(columns))).notes == []
    columns["y"][300:400] = 1.5
    assert audit_source(open_source(pa.table(columns))).notes == ["'y' is stuck at 1.5 from row 302 to row 400."]


def test_labels_that_are_often_predicted_wrongly_are_not_listed():
    columns = make_table()
    random = np.random.default_rng(3)
    columns["unclear"] = np.where(columns["x"] + random.normal(size=ROWS) > 0.0, "up", "down")
    columns["clear"] = np.where(columns["x"] > 0.0, "left", "right")
    far = np.flatnonzero(np.abs(columns["x"]) > 1.0)[:3]
    columns["clear"][far] = np.where(columns["x"][far] > 0.0, "right", "left")
    found = audit_source(open_source(pa.table(columns)))
    assert "unclear" in found.unpredictable
    assert {cell.row - 1 for cell in found.cells if cell.column == "clear"} >= set(far.tolist())
    assert not [cell for cell in found.cells if cell.column == "unclear"]


def test_large_values_where_small_ones_are_expected_are_in_no_other_unit():
    random = np.random.default_rng(4)
    expected = 0.5 + 0.01 * random.normal(size=500)
    values = expected + random.normal(size=500)
    values[200:300] = random.uniform(400.0, 900.0, 100)  # a busy time, not a thousand times as much
    assert find_unit_stretches(np.arange(1, 501), values, expected) == []


def test_frequent_values_of_a_column_of_few_are_codes_and_no_errors():
    random = np.random.default_rng(3)
    a, share = random.normal(size=3000), random.random(3000)
    columns = {
        "a": a,
        "b": 2.0 * a + random.normal(size=3000),
        "limited": np.where(share < 0.84, 0.0, np.where(share < 0.96, 1.0, 0.144)),
        "clerical": random.permutation(np.where(share < 0.9, 0.0, np.where(share < 0.97, 0.03, 1.0))),
    }
    assert audit_source(open_source(pa.table(columns))).cells == []
    columns["clerical"][:60] = 999.0
    found = audit_source(open_source(pa.table(columns))).cells
    assert sorted(cell.row for cell in found) == list(range(1, 61))
    assert {(cell.column, cell.kind) for cell in found} == {("clerical", "sentinel value")}


def test_a_unit_is_named_only_if_several_values_are_in_it():
    random = np.random.default_rng(4)
    size = random.uniform(50.0, 150.0, 2000)
    width = 3.0 * size + random.normal(size=2000)
    for rows in ([500], [500, 900, 1300]):
        wrong = width.copy()
        wrong[rows] *= 2.54
        cells = audit_source(open_source(pa.table({"size": size, "width": wrong}))).cells
        kinds = {cell.row - 1: cell.kind for cell in cells if cell.column == "width"}
        named = "2.54 times (inches as cm) the expected value" if len(rows) > 1 else ""
        assert [kinds[row] for row in rows] == [named] * len(rows)


def test_a_dry_spell_among_others_is_not_stuck_and_a_much_longer_one_is():
    random = np.random.default_rng(5)
    rain, heat = np.zeros(12_000), random.normal(size=12_000)
    row = 0
    while row < len(rain):
        wet, dry = int(random.integers(1, 9)), int(60.0 * random.pareto(1.5)) + 1
        rain[row : row + wet] = np.exp(random.normal(size=len(rain[row : row + wet])))
        row += wet + min(dry, 400)
    columns = {"rain": rain, "heat": heat, "dew": heat + 0.3 * random.normal(size=len(rain)) - 0.2 * (rain > 0.0)}
    assert not [line for line in audit_source(open_source(pa.table(columns))).notes if "stuck" in line]
    columns["rain"][4000:5600] = 0.0
    [line] = [line for line in audit_source(open_source(pa.table(columns))).notes if "stuck" in line]
    assert line.startswith("'rain' is stuck at 0 from row ")


def test_a_digit_too_many_is_no_sentinel_value_if_the_same_number_has_it_twice():
    random = np.random.default_rng(6)
    size = np.round(random.uniform(50.0, 150.0, 2000))
    size[[300, 800]] = 100.0
    width = 3.0 * size + np.round(random.normal(size=2000))
    width[[300, 800]], width[[500, 900, 1300]] = 3000.0, 8888.0
    cells = audit_source(open_source(pa.table({"size": size, "width": width}))).cells
    kinds = {cell.row - 1: cell.kind for cell in cells}
    assert kinds == {
        **dict.fromkeys((300, 800), "10 times the expected value"),
        **dict.fromkeys((500, 900, 1300), "sentinel value"),
    }
