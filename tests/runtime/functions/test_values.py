"""Every kind of Python value for every declared type: the same value, or a refusal.

What is expected is written by hand. A value is listed with the types that take it, and what it is in each; all other
types refuse it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from plans.declarations.tables import Column
from plans.errors import RunError
from runtime.functions.rows import returned_rows
from runtime.lookup.rows import fitted_rows, keyed_rows
from runtime.types import to_arrow

TYPES = (
    *("BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(4, 2)", "CHAR(3)", "VARCHAR(3)", "STRING"),
    *("BINARY(3)", "VARBINARY(3)", "BYTES", "DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "ARRAY<INT>"),
    *("MAP<STRING, INT>", "ROW<a INT, b INT>"),
)
INTEGERS = ("TINYINT", "INT", "BIGINT")
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL(4, 2)")
TEXTS = ("CHAR(3)", "VARCHAR(3)", "STRING")
BYTES = ("BINARY(3)", "VARBINARY(3)", "BYTES")
LTZ, NTZ = "TIMESTAMP_LTZ(3)", "TIMESTAMP(3)"
ARRAY, MAP, ROW = "ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT, b INT>"
NOON = datetime(2024, 2, 29, 12, 30, 0, 123000)
PLUS_2 = timezone(timedelta(hours=2))


def all_of(kinds: tuple[str, ...], value: Any) -> dict[str, Any]:
    return dict.fromkeys(kinds, value)


class Kelvin(float):
    """A float by another name."""


MATRIX: list[tuple[Any, dict[str, Any]]] = [
    (None, all_of(TYPES, None)),
    (True, {"BOOLEAN": True}),
    (np.False_, {"BOOLEAN": False}),
    (0, all_of(NUMBERS, 0)),
    (5, all_of(NUMBERS, 5)),
    (-128, {**all_of(NUMBERS, -128), "DECIMAL(4, 2)": ...}),
    (300, all_of(("INT", "BIGINT", "FLOAT", "DOUBLE"), 300)),
    (2**24 + 1, all_of(("INT", "BIGINT", "DOUBLE"), 16777217)),
    (2**31, all_of(("BIGINT", "FLOAT", "DOUBLE"), 2147483648)),
    (2**53 + 1, {"BIGINT": 9007199254740993}),
    (2**70 + 1, {}),
    (10**400, {}),
    (5.0, all_of((*INTEGERS, "FLOAT", "DOUBLE"), 5)),
    (-0.0, {**all_of(INTEGERS, 0), **all_of(("FLOAT", "DOUBLE"), -0.0)}),
    (0.1, {"FLOAT": 0.10000000149011612, "DOUBLE": 0.1}),
    (1.5, {"FLOAT": 1.5, "DOUBLE": 1.5}),
    (1e300, {"DOUBLE": 1e300}),
    (-1e39, {"DOUBLE": -1e39}),
    (1e-300, {"DOUBLE": 1e-300}),
    (math.inf, {"FLOAT": math.inf, "DOUBLE": math.inf}),
    (math.nan, {"FLOAT": math.nan, "DOUBLE": math.nan}),
    (Kelvin(0.5), {"FLOAT": 0.5, "DOUBLE": 0.5}),
    (np.int32(5), all_of(NUMBERS, 5)),
    (np.uint64(2**63), {"FLOAT": 2.0**63, "DOUBLE": 2.0**63}),
    (np.float32(0.5), {"FLOAT": 0.5, "DOUBLE": 0.5}),
    (np.float64(1e300), {"DOUBLE": 1e300}),
    (Decimal("5"), {**all_of(INTEGERS, 5), "DECIMAL(4, 2)": Decimal("5.00")}),
    (Decimal("1.25"), {"DECIMAL(4, 2)": Decimal("1.25")}),
    (Decimal("1.250"), {"DECIMAL(4, 2)": Decimal("1.25")}),
    (Decimal("1.255"), {}),
    (Decimal("99.99"), {"DECIMAL(4, 2)": Decimal("99.99")}),
    (Decimal("100"), all_of(INTEGERS, 100)),
    (Decimal("1E+1"), {**all_of(INTEGERS, 10), "DECIMAL(4, 2)": Decimal("10.00")}),
    (Decimal("0E-9"), {**all_of(INTEGERS, 0), "DECIMAL(4, 2)": Decimal("0.00")}),
    (Decimal("NaN"), {}),
    (Decimal("sNaN"), {}),
    (Decimal("Infinity"), {}),
    (5j, {}),
    ("", all_of(("VARCHAR(3)", "STRING"), "")),
    ("ab", all_of(("VARCHAR(3)", "STRING"), "ab")),
    ("abc", all_of(TEXTS, "abc")),
    ("日本語", all_of(TEXTS, "日本語")),
    ("🙂🙂🙂", all_of(TEXTS, "🙂🙂🙂")),
    ("ab ", all_of(TEXTS, "ab ")),
    ("Straßen", {"STRING": "Straßen"}),
    ("\ud800", {}),
    ("5", {"VARCHAR(3)": "5", "STRING": "5"}),
    (np.str_("abc"), all_of(TEXTS, "abc")),
    (b"ab", all_of(("VARBINARY(3)", "BYTES"), b"ab")),
    (b"abc", all_of(BYTES, b"abc")),
    (b"abcd", {"BYTES": b"abcd"}),
    (bytearray(b"abc"), all_of(BYTES, b"abc")),
    (memoryview(b"abc"), all_of(BYTES, b"abc")),
    (date(2024, 2, 29), {"DATE": date(2024, 2, 29)}),
    (datetime(2024, 2, 29), {NTZ: datetime(2024, 2, 29)}),
    (NOON, {NTZ: NOON}),
    (NOON.replace(microsecond=123456), {}),
    (NOON.replace(tzinfo=UTC), {LTZ: NOON.replace(tzinfo=UTC)}),
    (NOON.replace(tzinfo=PLUS_2), {LTZ: datetime(2024, 2, 29, 10, 30, 0, 123000, tzinfo=UTC)}),
    (NOON.replace(microsecond=1, tzinfo=UTC), {}),
    (time(12, 30), {}),
    (timedelta(days=1), {}),
    (np.datetime64("2024-02-29"), {}),
    (np.datetime64("2024-02-29T12:30"), {}),
    ([], {ARRAY: [], MAP: []}),
    ([1, 2], {ARRAY: [1, 2], ROW: {"a": 1, "b": 2}}),
    ((1, None), {ARRAY: [1, None], ROW: {"a": 1, "b": None}}),
    ([1, 2, 3], {ARRAY: [1, 2, 3]}),
    ([1, True], {}),
    ([1, 2.5], {}),
    (["a", 1], {}),
    ([2**40, 1], {}),
    (np.array([1, 2]), {ARRAY: [1, 2]}),
    (np.array([1, 2.5]), {}),
    (np.array([[1]]), {}),
    ([("a", 1)], {MAP: [("a", 1)]}),
    ({"a": 1}, {MAP: [("a", 1)]}),
    ({"b": 2, "a": 1}, {MAP: [("b", 2), ("a", 1)], ROW: {"a": 1, "b": 2}}),
    ({"a": 1, "c": None}, {MAP: [("a", 1), ("c", None)]}),
    ({"a": 1.5}, {}),
    ({1: 1}, {}),
    ({None: 1}, {}),
    ({1, 2}, {}),
    (range(2), {}),
    (iter, {}),
    (UUID(int=1), {}),
    (object(), {}),
    (int, {}),
    (NotImplemented, {}),
]


def taken(declared: str, value: Any) -> Any:
    """What a value that a function returned in a column is in the engine."""
    found = returned_rows(f"ROW<v {declared}>", "table", ("v",)).arrow([[(None,), (value,)]], str)
    return found.table["v"].to_pylist()[1]


def looked_up(declared: str, value: Any) -> Any:
    """What a value that a lookup class returned in a column is in the engine."""
    rows = fitted_rows({(0,): [(None,), (value,)]}, (Column(name="v", type=declared),), where="lookup_t")
    found = keyed_rows(list(rows.values()), pa.schema([("v", to_arrow(declared))]), where="lookup_t")
    return found.table["v"].to_pylist()[1]


@pytest.mark.parametrize("declared", TYPES)
@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (taken, "0 returned the row ("),
        (looked_up, "lookup_t: the source returned for the key (0,) the row ("),
    ],
    ids=["function", "lookup"],
)
def test_a_value_is_taken_as_it_is_or_refused_with_the_call_the_row_and_the_type(
    engine: Callable[[str, Any], Any], said: str, declared: str
) -> None:
    wrong = []
    for value, takers in MATRIX:
        expected = takers.get(declared, ...)
        try:
            found = engine(declared, value)
        except RunError as error:
            message = str(error)
            named = message.startswith(said) and f"'v' is no {declared}" in message
            if expected is not ... or not named:
                wrong.append((value, message))
            continue
        if expected is ... or repr(found) != repr(of_column(declared, expected)):
            wrong.append((value, found))
    assert wrong == []


def of_column(declared: str, expected: Any) -> Any:
    """What is expected as columns of the type have it."""
    if expected is None or isinstance(expected, bool):
        return expected
    if declared in ("FLOAT", "DOUBLE"):
        return float(expected)
    if declared == LTZ:
        return expected.replace(tzinfo=ZoneInfo("UTC"))
    return Decimal(expected).quantize(Decimal("0.01")) if declared.startswith("DECIMAL") else expected


@pytest.mark.parametrize(
    ("declared", "value", "why"),
    [
        ("INT", True, "True is no number"),
        ("INT", 1.5, "1.5 is no whole number"),
        ("FLOAT", 1e300, "1e+300 is too large"),
        ("FLOAT", 1e-300, "1e-300 is too small, and would be 0"),
        ("DOUBLE", 2**53 + 1, "9007199254740993 has more digits than it can hold"),
        ("DOUBLE", Decimal("0.1"), "Decimal('0.1') would be rounded: use float(...)"),
        ("DECIMAL(4, 2)", 0.1, "0.1 is not exact: use Decimal('...')"),
        ("DECIMAL(4, 2)", Decimal("1.255"), "it has 3 digits behind the point, not 2"),
        ("DECIMAL(4, 2)", 300, "it has 3 digits before the point, not 2"),
        ("VARCHAR(3)", "Straßen", "it has 7 characters, not 3"),
        ("CHAR(3)", "ab", "it has 2 characters, not 3"),
        ("STRING", b"abc", "b'abc' is no str"),
        ("DATE", datetime(2024, 2, 29), "has a time: use .date()"),
        ("TIMESTAMP(0)", datetime(2024, 2, 29, 1, 2, 3, 4), "has more than 0 digits of a second"),
        ("TIMESTAMP(3)", datetime(2024, 2, 29, tzinfo=UTC), "has a zone: use .replace(tzinfo=None)"),
        ("TIMESTAMP_LTZ(3)", datetime(2024, 2, 29), "has no zone: use .replace(tzinfo=...)"),
        ("ARRAY<INT NOT NULL>", [1, None], "NULL is no INT NOT NULL"),
        ("MAP<STRING, INT>", {None: 1}, "a key is None"),
        ("ROW<a INT NOT NULL>", (None,), "NULL is no INT NOT NULL"),
        ("ARRAY<ROW<d DATE>>", [{"d": NOON}], "has a time: use .date()"),
    ],
)
def test_a_refusal_says_why(declared: str, value: Any, why: str) -> None:
    with pytest.raises(RunError) as caught:
        taken(declared, value)
    assert why in str(caught.value)


def test_a_row_of_a_lookup_has_a_value_for_each_column_and_null_only_where_it_may_be() -> None:
    columns = (Column(name="id", type="BIGINT NOT NULL"), Column(name="name", type="VARCHAR(3)"))

    def refused(row: Any) -> str:
        with pytest.raises(RunError) as caught:
            fitted_rows({(7,): [(1, "one"), row]}, columns, where="operator lookup_n (lookup in table names)")
        return str(caught.value)

    where = "operator lookup_n (lookup in table names): the source returned for the key (7,) the row"
    assert refused((1,)) == f"{where} (1,), which is no tuple with a value for each of id, name"
    assert refused("ab") == f"{where} 'ab', which is no tuple with a value for each of id, name"
    assert refused((None, "a")) == f"{where} (None, 'a'), whose 'id' is no BIGINT NOT NULL: None is no number"
    assert refused((1, "four")) == f"{where} (1, 'four'), whose 'name' is no VARCHAR(3): it has 4 characters, not 3"
    assert fitted_rows({(7,): iter([[1, None]]), (8,): ()}, columns, where="") == {(7,): [(1, None)], (8,): []}


def test_one_value_among_many_that_does_not_fit_is_found() -> None:
    rows = [(number,) for number in range(1000)]
    rows[600] = (True,)
    with pytest.raises(RunError, match=r"^1 returned the row \(True,\), whose 'v' is no INT: True is no number"):
        returned_rows("ROW<v INT>", "table", ("v",)).arrow([rows[:500], rows[500:]], str)
