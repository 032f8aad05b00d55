"""Formats of numbers and dates in text: decimal commas, thousands, currencies, units, and several orders of dates.

A notation is inferred for a column if nine in ten of its values have it. Where a value is ambiguous, such as 1,234 or
01/02/2020, other values of the column decide or, for numbers, those of the file. If these are ambiguous as well,
numbers have decimal commas in a file that is separated by semicolons, thousands separators where plain numbers of
another column have decimal points, and otherwise stay text; dates are month first with slashes and day first with dots
and dashes. Names of months are English. A unit is one of those that are known, such as kg or km/h, and nine in ten
values have it: 12A and 4th are names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.numeric import Array
from redescend.sources.kinds import AGREEMENT, PATTERNS, TYPES, Kind, count_matches, find_outside_calendar

_MONEY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY|kr)"
_PERIODS = ("sec", "min", "hour", "hr", "day", "week", "month", "year", "yr")
_BEFORE, _AFTER = rf"^\s*\(?\s*[-+]?\s*(?:{_MONEY}\s*)?[-+]?\s*", rf"\s*(?:%|{_MONEY})?\s*\)?\s*$"
_UNITS = (
    *("kg", "mg", "µg", "g", "t", "lb", "oz", "km", "cm", "mm", "µm", "m", "mi", "ft", "in", "yd", "ha", "ml", "l"),
    *("km/h", "m/s", "mph", "rpm", "°C", "°F", "m²", "m³", "m2", "m3", "cm2", "cm3", "km²", "km2", "sqft", "ppm"),
    *("kWh", "MWh", "Wh", "kW", "MW", "mW", "kV", "mV", "mA", "Hz", "kHz", "MHz", "GHz", "hPa", "kPa", "Pa", "bar"),
    *("psi", "kB", "MB", "GB", "TB", "kcal", "cal", "kJ", "MJ", "hp", "dB", "ms", "s", "h", *_PERIODS),
)
_ORDERED = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_WITH_UNIT = rf"^\s*[-+]?(?:0(?:[.,]\d*)?|[1-9][\d.,'’ ]*)\s*(?P<unit>(?i:{_ORDERED}))s?\s*$"
FEWEST_WITH_UNIT = 10  # the fewest different values of a column of numbers with a unit
_WHOLE = r"^\s*[-+]?\d+\s*$"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"


@dataclass(frozen=True)
class Notation:
    """A format of values: a pattern that all of them match, and one that only this notation matches."""

    name: str
    kind: Kind
    pattern: str
    distinctive: str
    decimal: str = "."
    date: str = ""
    unit: str = ""

    def convert(self, texts: pa.Array) -> tuple[pa.Array, Array]:
        """Convert texts: the values, null where a text is missing or does not match, and a mask of the latter."""
        matches = pc.fill_null(pc.match_substring_regex(texts, self.pattern), True)
        wrong = ~matches.to_numpy(zero_copy_only=False)
        matching = pc.if_else(matches, texts, pa.scalar(None, texts.type))
        values = self._to_numbers(matching) if self.kind is Kind.NUMBER else self._to_dates(matching)
        wrong |= (values.is_null().to_numpy(zero_copy_only=False)) & matching.is_valid().to_numpy(zero_copy_only=False)
        return values, wrong

    def _to_numbers(self, texts: pa.Array) -> pa.Array:
        texts = pc.replace_substring_regex(texts, _unit_at_end(self.unit), "") if self.unit else texts
        negative = pc.match_substring_regex(texts, r"^\s*\(|^[^0-9.,]*-")
        plain = pc.replace_substring_regex(texts, r"^[^0-9.,]+|[^0-9.,]+$|[^0-9.,eE+-]|'", "")
        plain = pc.replace_substring(plain, "," if self.decimal == "." else ".", "")
        plain = pc.replace_substring(plain, ",", ".")
        numbers = pc.cast(plain, TYPES[Kind.NUMBER])
        return pc.if_else(negative, pc.negate(numbers), numbers)

    def _to_dates(self, texts: pa.Array) -> pa.Array:
        parts = pc.extract_regex(texts, self.date)
        year, month, day, time = (parts.field(name) for name in ("year", "month", "day", "time"))
        for number, name in enumerate(_MONTHS if _NAME in self.date else (), 1):
            month = pc.replace_substring_regex(month, rf"(?i)^{name}$", str(number))
        time = pc.if_else(pc.equal(time, ""), " 00:00:00", time)
        time = pc.replace_substring_regex(time, r"^[ T](\d):", r" 0\1:")
        time = pc.replace_substring_regex(time, r"^[ T]?(\d\d:\d\d)$", r" \1:00")
        padded = [pc.utf8_lpad(part, 2, padding="0") for part in (month, day)]
        iso = pc.binary_join_element_wise(pc.binary_join_element_wise(year, *padded, "-"), time, "")
        iso = pc.if_else(pc.is_valid(texts), iso, pa.scalar(None, pa.string()))
        return _cast_dates(iso)


def _cast_dates(texts: pa.Array) -> pa.Array:
    try:
        values = texts.cast(TYPES[Kind.DATE])
        return values if not len(find_outside_calendar(values)) else _cast_one_by_one(texts)
    except pa.ArrowInvalid:
        return _cast_one_by_one(texts)


def _cast_one_by_one(texts: pa.Array) -> pa.Array:
    """Convert dates that may not exist; those that do not are null."""
    dates: list[Any] = []
    for text in texts:
        try:
            dates.append(text.cast(TYPES[Kind.DATE]).as_py())
        except (pa.ArrowInvalid, OverflowError):  # the year 0 overflows
            dates.append(None)
    return pa.array(dates, TYPES[Kind.DATE])


def _unit_at_end(unit: str) -> str:
    """A pattern of the unit, also in capitals, unless these make it another one: mW and MW."""
    plural = "s?" if unit.lower() in (*_PERIODS, "lb") else ""
    flags = "" if re.fullmatch("(?i:m(?:wh?|v|a|hz|b|j))", unit) else "i"
    return rf"\s*(?{flags}:{re.escape(unit)}{plural})\s*$"


def find_units(values: pa.Array) -> list[str]:
    """The fewest units that nine in ten values have behind a number, the most frequent first; empty if there are none.

    >>> find_units(pa.array(["12.5 km/h", "8 km/h"])), find_units(pa.array(["12 kg", "8 lb", "9 kg"]))
    (['km/h'], ['kg', 'lb'])
    >>> find_units(pa.array(["12 kg", "8 KG", "9 kg"]))
    ['kg']
    """
    found = pc.struct_field(pc.extract_regex(values, _WITH_UNIT), "unit").drop_null()
    counts = dict[str, int]()
    # A unit is named as it is spelt most often.
    for one in sorted(pc.value_counts(found).to_pylist(), key=lambda one: -one["counts"]):
        unit = next((unit for unit in counts if is_same_unit(unit, one["values"])), one["values"])
        counts[unit] = counts.get(unit, 0) + one["counts"]
    have, units = 0, list[str]()
    for unit in sorted(counts, key=lambda unit: -counts[unit]):
        units.append(unit)
        have += counts[unit]
        if have >= AGREEMENT * len(values):
            return units
    return []


def is_same_unit(unit: str, other: str) -> bool:
    """Whether two spellings are one unit.

    >>> is_same_unit("kg", "KG"), is_same_unit("kg", "g"), is_same_unit("mW", "MW")
    (True, False, False)
    """
    return any(re.fullmatch(_unit_at_end(one), two) is not None for one, two in ((unit, other), (other, unit)))


def may_be_numbers(values: pa.Array) -> bool:
    """Whether enough values with a unit differ for them to be numbers: 2wd and 4wd are names."""
    return len(pc.unique(values)) >= FEWEST_WITH_UNIT


def _number_notation(name: str, thousands: str, decimal: str, unit: str = "") -> Notation:
    digits = rf"(?:\d{{1,3}}(?:{thousands}\d{{3}})+|\d+)(?:{decimal}\d*)?|{decimal}\d+"
    both = rf"\d{thousands}\d{{3}}{decimal}|\d{thousands}\d{{3}}{thousands}\d"
    clear = rf"{both}|\d{decimal}(?:\d{{1,2}}|\d{{4,}})(?:\D|$)|\d{{4,}}{decimal}|(?:^|\D)0{decimal}"
    sign = "," if "," in decimal else "."
    after = rf"(?:{_unit_at_end(unit)}|\s*$)" if unit else _AFTER
    return Notation(name, Kind.NUMBER, rf"{_BEFORE}(?:{digits}){_EXPONENT}{after}", clear, sign, unit=unit)


_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<day>0?[1-9]|[12]\d|3[01])"

_MONTHS = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?"),
    *("july?", "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
_NAME = rf"(?P<month>(?i:{'|'.join(_MONTHS)}))\.?"


def _date_notation(name: str, order: Iterable[str], separator: str, distinctive: str) -> Notation:
    date = separator.join(order)
    pattern = rf"^\s*{date}{_TIME}\s*$".replace("?P<year>", "?:").replace("?P<month>", "?:").replace("?P<day>", "?:")
    return Notation(name, Kind.DATE, pattern, distinctive, date=rf"^\s*{date}(?P<time>{_TIME})\s*$")


def _number_notations(unit: str = "") -> tuple[Notation, ...]:
    return (_number_notation("1,234.5", "[, '’]", r"\.", unit), _number_notation("1.234,5", "[. '’]", ",", unit))


NUMBER_FORMS = _number_notations()
DATE_FORMS = (
    _date_notation("month/day/year", (_MONTH, _DAY, _YEAR), "/", r"^\s*\d{1,2}/(?:1[3-9]|[23]\d)/"),
    _date_notation("day/month/year", (_DAY, _MONTH, _YEAR), "/", r"^\s*(?:1[3-9]|[23]\d)/"),
    _date_notation("day.month.year", (_DAY, _MONTH, _YEAR), r"\.", "."),
    _date_notation("day-month-year", (_DAY, _MONTH, _YEAR), "-", "."),
    _date_notation("year/month/day", (_YEAR, _MONTH, _DAY), "/", "."),
    _date_notation("day month year", (_DAY, _NAME, _YEAR), r"[ -]?", "."),
    _date_notation("month day, year", (_NAME, _DAY, _YEAR), r",? +", "."),
)


def notation_by_name(name: str, unit: str = "") -> Notation:
    """The notation of this name, for numbers with a unit if it is not empty.

    >>> notation_by_name("1.234,5", "kg").unit
    'kg'
    """
    return next(form for form in (*_number_notations(unit), *DATE_FORMS) if form.name == name)


DATE_PATTERNS = (PATTERNS[Kind.DATE], *(form.pattern for form in DATE_FORMS))  # of all notations of dates

NOTATIONS = frozenset(form.name for form in (*NUMBER_FORMS, *DATE_FORMS))  # their names


def infer_notations(
    columns: Mapping[str, pa.Array],
    decimal: str | None = None,
    likely: str | None = None,
    known: Mapping[str, Notation] = MappingProxyType({}),
) -> dict[str, Notation]:
    """Infer the notations of text columns that are not of a plain kind.

    `decimal` is the decimal mark, if known, and `likely` the one to assume if no number tells it. `known` are the
    notations of the same columns elsewhere: they decide where a column is ambiguous, or has no notation of its own, as
    where it has no values or plain numbers.

    >>> texts = {"a": ["1,5", "2,25"], "b": ["1,234"], "c": ["31.01.2020 00:00"], "d": ["€ 3"]}
    >>> notations = infer_notations({name: pa.array(column) for name, column in texts.items()})
    >>> {name: form.name for name, form in notations.items()}
    {'a': '1.234,5', 'b': '1.234,5', 'c': 'day.month.year', 'd': '1,234.5'}
    """
    known = {name: form for name, form in known.items() if form.kind is Kind.DATE or decimal in (None, form.decimal)}
    notations = {name: form for name, form in known.items() if name in columns}
    unclear, clear = dict[str, list[Notation]](), set[str]()
    for name, column in columns.items():
        present, own = column.drop_null(), known.get(name)
        mark = decimal or (own and own.decimal)
        plain = (pattern for kind, pattern in PATTERNS.items() if mark != "," or kind is not Kind.NUMBER)
        if not len(present) or (own is not None and _reads_plain(own, present)):
            continue
        if any(_is_of(present, pattern) for pattern in plain):
            notations.pop(name, None)
            continue
        dates = [form for form in DATE_FORMS if _is_of(present, form.pattern)]
        if dates:
            notations[name] = max(dates, key=lambda form: (count_matches(present, form.distinctive), form == own))
            continue
        numbers = [form for form in NUMBER_FORMS if _is_of(present, form.pattern)]
        if not numbers and len(units := find_units(present)) == 1:
            numbers = [form for form in _number_notations(units[0]) if _is_of(present, form.pattern)]
        if decimal is not None:
            numbers = [form for form in numbers if form.decimal == decimal]
        if len(numbers) > 1 and count_matches(present, r"[.,]\d"):
            counts = [count_matches(present, form.distinctive) for form in numbers]
            if counts[0] == counts[1]:
                unclear[name] = numbers
                continue
            numbers = [numbers[int(np.argmax(counts))]]
        if numbers:
            notations[name] = next((form for form in numbers if own and form.decimal == own.decimal), numbers[0])
            clear |= {name} if count_matches(present, r"[.,]\d") else set()
    marks = {decimal} if decimal else {notations[name].decimal for name in clear}
    for name, forms in unclear.items():
        others = {known[name].decimal} if name in known else {likely} if likely else _find_points(columns)
        told = marks or others
        if len(told) == 1:
            notations[name] = next(form for form in forms if form.decimal in told)
    return {name: notations[name] for name in columns if name in notations}


def _find_points(columns: Mapping[str, pa.Array]) -> set[str]:
    """The decimal point, if plain numbers of any column have one."""
    form = NUMBER_FORMS[0]
    present = (column.drop_null() for column in columns.values())
    plain = (values for values in present if len(values) and _is_of(values, PATTERNS[Kind.NUMBER]))
    return {form.decimal} if any(count_matches(values, form.distinctive) for values in plain) else set()


def _reads_plain(form: Notation, present: pa.Array) -> bool:
    """Whether values are plain numbers that a notation reads as well: 12, or 1.5 if its mark is the point."""
    plain = PATTERNS[Kind.NUMBER] if form.decimal == "." else _WHOLE
    reads = form.kind is Kind.NUMBER and count_matches(present, form.pattern) >= count_matches(present, plain)
    return reads and _is_of(present, plain)


def _is_of(present: pa.Array, pattern: str) -> bool:
    return count_matches(present, pattern) >= AGREEMENT * len(present)
