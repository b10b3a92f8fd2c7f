"""Calcs in Arrow: which are done there, and that rows are what SQL says."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow

COLUMNS = (
    Column(name="a", type="BIGINT"),
    Column(name="b c", type="STRING"),
    Column(name="d", type="DOUBLE"),
    Column(name="e", type="INT"),
)
ROWS = pa.table(
    {
        "a": [1, 2, None, 4],
        "b c": ["x", None, "y", "x"],
        "d": [0.5, 1.5, 2.5, None],
        "e": pa.array([1, 2, 3, 4], pa.int32()),
        "__kind": pa.array([0, 1, 2, 3], pa.int8()),
    }
)


def calc(*select: SelectItem, filter: str | None = None) -> Calc:
    return Calc(id="calc_t", inputs=("scan_t",), select=select, filter=filter)


def test_columns_are_chosen_and_named_and_kinds_stay_with_them() -> None:
    made = calc_in_arrow(
        calc(SelectItem(name="e"), SelectItem(name="text", type="STRING", expression="`b c`")), COLUMNS, ("__kind",)
    )
    assert made is not None
    found = pickle.loads(pickle.dumps(made))(ROWS)
    assert found.column_names == ["e", "text", "__kind"]
    assert found.to_pylist()[1] == {"e": 2, "text": None, "__kind": 1}


def test_comparisons_are_true_false_or_null() -> None:
    made = calc_in_arrow(
        calc(
            SelectItem(name="x", type="BOOLEAN", expression="a >= 2 AND a < 4"),
            SelectItem(name="y", type="BOOLEAN", expression="a = 1 OR `b c` = 'y'"),
            SelectItem(name="z", type="BOOLEAN", expression="d IS NULL"),
        ),
        COLUMNS,
        (),
    )
    assert made is not None
    found = pickle.loads(pickle.dumps(made))(ROWS)
    assert found["x"].to_pylist() == [False, True, None, False]
    assert found["y"].to_pylist() == [True, None, True, False]
    assert found["z"].to_pylist() == [False, False, False, True]


def test_the_day_of_a_timestamp_is_text() -> None:
    times = [
        dt.datetime(1, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        None,
        dt.datetime(2024, 2, 29, 12),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ]
    day = SelectItem(name="day", type="STRING", expression="date_format(t, 'yyyy-MM-dd')")
    made = calc_in_arrow(calc(day), (Column(name="t", type="TIMESTAMP(3)"),), ())
    assert made is not None
    found = made(pa.table({"t": pa.array(times, pa.timestamp("us"))}))
    assert found["day"].to_pylist() == ["0001-01-01", "1969-12-31", None, "2024-02-29", "9999-12-31"]
    # That of an instant depends on the session's time zone.
    assert calc_in_arrow(calc(day), (Column(name="t", type="TIMESTAMP_LTZ(3)"),), ()) is None
    month = replace(day, expression="date_format(t, 'yyyy-MM')")
    assert calc_in_arrow(calc(month), (Column(name="t", type="TIMESTAMP(3)"),), ()) is None


FILTERS = [
    ("a <> 2", [1, 4]),
    ("a > 1 OR `b c` = 'x'", [1, 2, 4]),
    ("NOT a > 1", [1]),
    ("a IS NULL", [3]),
    ("a BETWEEN 2 AND 4", [2, 4]),
    ("`b c` IN ('y', 'z')", [3]),
    ("NOT (`b c` <=> 'x')", [2, 3]),
    ("a = e", [1, 2, 4]),
    ("a > 9", []),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS)
def test_rows_are_kept_for_which_the_filter_is_true(filter: str, expected: list[int]) -> None:
    made = calc_in_arrow(calc(SelectItem(name="e"), filter=filter), COLUMNS, ())
    assert made is not None
    assert made(ROWS)["e"].to_pylist() == expected


@pytest.mark.parametrize(
    "operator",
    [
        calc(SelectItem(name="a", type="INT", expression="a")),
        calc(SelectItem(name="a"), filter="upper(`b c`) = 'X'"),
        calc(SelectItem(name="a"), filter="a div e = 1"),
        calc(SelectItem(name="a"), filter="a / 2 = 1"),
        calc(SelectItem(name="a"), filter="a = '1'"),
    ],
    ids=str,
)
def test_what_can_fail_or_has_no_kernel_is_left_to_spark(operator: Calc) -> None:
    assert calc_in_arrow(operator, COLUMNS, ()) is None


@pytest.mark.parametrize(
    "operator",
    [
        calc(SelectItem(name="x", type="STRING", expression="reflect('java.lang.System', 'exit', 1)")),
        calc(SelectItem(name="a"), filter="a > 1 AND java_method('java.lang.System', 'exit', 1) = 'x'"),
        calc(SelectItem(name="a"), filter="missing = 1"),
    ],
    ids=str,
)
def test_what_may_not_run_is_refused_here_too(operator: Calc) -> None:
    with pytest.raises(RunError, match="calc_t"):
        calc_in_arrow(operator, COLUMNS, ())
