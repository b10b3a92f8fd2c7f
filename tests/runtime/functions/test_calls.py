"""Calls of single functions: what they may return, what errors say, and functions that do not behave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.functions import (
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
)
from hintplan.runtime.functions.call import row_list
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.rows import argument_rows, returned_rows
from hintplan.runtime.functions.task import function_tables
from hintplan.runtime.functions.worker import OpenFunction
from tests.connectors.lookup.simulation import VirtualClock, VirtualEventLoop
from tests.runtime.functions.simulation import function_spec


def called(function: Any, *, left: bool = False, **policy: Any) -> list[tuple[int, Any]]:
    """What ``function`` returns for the ids 1, 2 and NULL."""
    event_loop = VirtualEventLoop(VirtualClock())
    opened = OpenFunction(function_spec(function, left=left, **policy), function, event_loop)
    table = pa.table({"id": pa.array([1, 2, None], pa.int64())})
    try:
        found = list(function_tables([table], opened, FunctionCounters()))
    finally:
        opened.close()
        event_loop.close()
    return [(row["id"], row["n"]) for part in found for row in part.to_pylist()]


def table_function(body: Any, result: str = "BIGINT") -> TableFunction:
    kind = type("Some", (TableFunction,), {"arguments": ("BIGINT",), "result": result, "eval": staticmethod(body)})
    return kind()  # type: ignore[no-any-return]


def async_function(body: Any) -> AsyncTableFunction:
    kind = type(
        "Some", (AsyncTableFunction,), {"arguments": ("BIGINT",), "result": "BIGINT", "eval": staticmethod(body)}
    )
    return kind()  # type: ignore[no-any-return]


class Upto(TableFunction):
    """The numbers below its argument; a context and an order of calls that tests look at."""

    arguments = ("BIGINT",)
    result = "BIGINT"

    def __init__(self) -> None:
        self.told: list[Any] = []

    def open(self, context: FunctionContext) -> None:
        self.told.append(context)

    def eval(self, number: int | None) -> Iterator[int]:
        self.told.append(number)
        yield from range(number or 0)

    def close(self) -> None:
        self.told.append("closed")


def test_a_synchronous_function_yields_rows_and_gets_none_for_null() -> None:
    function = Upto()
    assert called(function) == [(1, 0), (2, 0), (2, 1)]
    assert function.told == [FunctionContext(function="f", operator="correlate_f"), 1, 2, None, "closed"]


def test_a_left_join_keeps_a_row_whose_function_returned_nothing() -> None:
    assert called(Upto(), left=True) == [(1, 0), (2, 0), (2, 1), (None, None)]
    assert called(table_function(lambda number: None), left=True) == [(1, None), (2, None), (None, None)]


def test_a_scalar_function_returns_one_value_for_each_row() -> None:
    class Twice(ScalarFunction):
        arguments = ("BIGINT",)
        result = "BIGINT"

        def eval(self, number: int | None) -> int | None:
            return None if number is None else 2 * number

    class TwiceLater(AsyncScalarFunction):
        arguments = ("BIGINT",)
        result = "BIGINT"

        async def eval(self, number: int | None) -> int | None:
            return None if number is None else 2 * number

    assert called(Twice()) == called(TwiceLater(), capacity=2) == [(1, 2), (2, 4), (None, None)]


def test_an_asynchronous_generator_yields_rows() -> None:
    class Later(AsyncTableFunction):
        arguments = ("BIGINT",)
        result = "BIGINT"

        async def eval(self, number: int | None) -> Any:
            for each in range(number or 0):
                await asyncio.sleep(0.01)
                yield each

    assert called(Later(), capacity=2) == [(1, 0), (2, 0), (2, 1)]


def test_an_exception_of_a_synchronous_function_names_the_call() -> None:
    def broken(number: int | None) -> Iterator[int]:
        yield 1
        if number == 2:
            raise KeyError("gone")

    with pytest.raises(RunError, match=r"operator correlate_f: f\(2\) failed: KeyError: 'gone'"):
        called(table_function(broken))


def test_what_cannot_be_opened_fails_with_the_function() -> None:
    class Closed(Upto):
        def open(self, context: FunctionContext) -> None:
            raise ConnectionError("no such host")

    with pytest.raises(
        RunError, match=r"operator correlate_f: opening function f failed: ConnectionError: no such host"
    ):
        called(Closed())


def test_an_exception_that_is_not_to_be_retried_fails_at_once() -> None:
    calls = []

    async def wrong(number: int | None) -> list[int]:
        calls.append(number)
        raise ValueError("no such thing")

    function = async_function(wrong)
    type(function).retry_on = (ConnectionError,)
    with pytest.raises(RunError, match=r"f\(1\) failed: ValueError: no such thing"):
        called(function, capacity=1, retries=5)
    assert calls == [1]


def test_a_function_that_exits_or_cancels_itself_fails_the_query_and_not_the_worker() -> None:
    async def leaves(number: int | None) -> list[int]:
        sys.exit(3)

    async def cancels(number: int | None) -> list[int]:
        raise asyncio.CancelledError

    class LeavesEarly(AsyncTableFunction):
        arguments = ("BIGINT",)
        result = "BIGINT"

        async def open(self, context: FunctionContext) -> None:
            sys.exit(4)

        async def eval(self, number: int | None) -> list[int]:
            return []

    with pytest.raises(RunError, match=r"opening function f failed: SystemExit: 4"):
        called(LeavesEarly(), capacity=1)
    with pytest.raises(RunError, match=r"f\(1\) failed: SystemExit: 3"):
        called(async_function(leaves), capacity=1)
    with pytest.raises(RunError, match=r"f\(1\) was cancelled, but not by the engine"):
        called(async_function(cancels), capacity=1)


def test_a_function_that_takes_no_notice_of_its_timeout_fails_all_the_same() -> None:
    async def stubborn(number: int | None) -> list[int]:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return [7]

    with pytest.raises(RunError, match=r"f\(1\) timed out after 50 ms, 50 ms are allowed"):
        called(async_function(stubborn), capacity=1, timeout=50)


def test_an_asynchronous_function_must_be_one() -> None:
    with pytest.raises(RunError, match=r"(?s)f\(1\) did not return an awaitable.*hint: write async def eval"):
        called(async_function(lambda number: [1]), capacity=1)


def test_functions_that_answer_without_waiting_keep_their_order() -> None:
    async def at_once(number: int) -> list[int]:
        return [number]

    event_loop = VirtualEventLoop(VirtualClock())
    function = async_function(at_once)
    opened = OpenFunction(function_spec(function, capacity=3), function, event_loop)
    tables = [pa.table({"id": pa.array(range(start, start + 5000), pa.int64())}) for start in (0, 5000)]
    counters = FunctionCounters()
    found = pa.concat_tables(function_tables(tables, opened, counters))
    assert found["n"].to_pylist() == list(range(10_000))
    assert (counters.calls, counters.rowsOut) == (10_000, 10_000)
    event_loop.close()


def test_long_arguments_are_shortened_in_messages() -> None:
    function = table_function(lambda text: 1 / 0)
    type(function).arguments = ("STRING",)
    event_loop = VirtualEventLoop(VirtualClock())
    opened = OpenFunction(function_spec(function), function, event_loop)
    with pytest.raises(RunError) as caught:
        list(function_tables([pa.table({"id": ["x" * 5000]})], opened, FunctionCounters()))
    assert len(str(caught.value)) < 200
    assert "ZeroDivisionError" in str(caught.value)
    event_loop.close()


@pytest.mark.parametrize("found", ["text", b"bytes", {"a": 1}])
def test_one_value_is_not_taken_for_rows(found: Any) -> None:
    with pytest.raises(RunError, match=r"(?s)f\(1\) returned .* which is one value.*yield each row"):
        row_list(found, lambda: "f(1)")
    with pytest.raises(RunError, match=r"f\(1\) returned 5, which is no rows"):
        row_list(5, lambda: "f(1)")


ROW = "ROW<a INT, b STRING NOT NULL>"


def arrow(result: str, *rows: Any) -> list[dict[str, Any]]:
    """Rows of two calls, f(0) without any and f(1) with ``rows``, as the engine takes them."""
    declared = returned_rows(result, "table", ("x", "y") if result.startswith("ROW") else ("x",))
    found = declared.arrow([[], list(rows)], lambda place: f"f({place})")
    assert found.count.tolist() == [0, len(rows)]
    return found.table.to_pylist()  # type: ignore[no-any-return]


def test_a_row_is_a_tuple_a_list_or_a_dict() -> None:
    expected = [{"x": 1, "y": "one"}, {"x": None, "y": "two"}, {"x": 3, "y": "three"}]
    assert arrow(ROW, (1, "one"), [None, "two"], {"b": "three", "a": 3}) == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1,), "returned the row (1,), which is no ROW<a INT, b STRING NOT NULL>: it has 1 value, not 2"),
        ([1, "b", 2], "which is no ROW<a INT, b STRING NOT NULL>: it has 3 values, not 2"),
        ({"a": 1, "c": 2}, "it lacks 'b', 'c' is no field"),
        ("text", "returned the row 'text', which is no ROW<a INT, b STRING NOT NULL>: it is neither a tuple"),
        ((1.5, "b"), "returned the row (1.5, 'b'), whose 'a' is no INT: "),
        ((2**40, "b"), "whose 'a' is no INT: "),
        (("1", "b"), "whose 'a' is no INT: "),
        ((1, 2), "returned the row (1, 2), whose 'b' is no STRING NOT NULL: "),
        ((1, None), "returned the row (1, None), whose 'b' is no STRING NOT NULL"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_the_call_the_row_and_the_type(row: Any, message: str) -> None:
    with pytest.raises(RunError) as caught:
        arrow(ROW, (1, "good"), row)
    assert str(caught.value).startswith("f(1) returned the row ")
    assert message in str(caught.value)


def test_a_single_column_takes_bare_values() -> None:
    assert arrow("STRING", "a", None) == [{"x": "a"}, {"x": None}]
    assert arrow("ARRAY<INT>", [1, 2], (3,)) == [{"x": [1, 2]}, {"x": [3]}]
    with pytest.raises(RunError, match=r"f\(1\) returned \('a',\), which is no STRING: "):
        arrow("STRING", ("a",))


def test_a_row_with_one_field_is_still_a_row() -> None:
    declared = returned_rows("ROW<s STRING>", "table", ("s",))
    assert declared.arrow([[("a",), {"s": "b"}]], str).table.to_pylist() == [{"s": "a"}, {"s": "b"}]
    with pytest.raises(RunError, match="it is neither a tuple, nor a list, nor a dict"):
        declared.arrow([["a"]], str)


def test_a_scalar_function_may_return_a_row() -> None:
    declared = returned_rows("ROW<a INT, b STRING>", "scalar", ("v",))
    found = declared.arrow([[{"a": 1, "b": "x"}], [(2, "y")], [None]], str)
    assert found.table.to_pylist() == [{"v": {"a": 1, "b": "x"}}, {"v": {"a": 2, "b": "y"}}, {"v": None}]


@pytest.mark.parametrize(
    ("result", "value", "message"),
    [
        ("ARRAY<INT>", [1, 2.5], "which is no ARRAY<INT>: 2.5 is no whole number"),
        ("MAP<STRING, INT>", {"a": 2.5}, "which is no MAP<STRING, INT>: 2.5 is no whole number"),
        ("ARRAY<ROW<a INT>>", [{}], "which is no ARRAY<ROW<a INT>>: it lacks 'a'"),
        ("ARRAY<ROW<a INT>>", [{"a": 1, "b": 2}], "which is no ARRAY<ROW<a INT>>: 'b' is no field"),
        ("BIGINT", float("nan"), "which is no BIGINT: nan is no whole number"),
    ],
)
def test_nothing_is_cut_or_left_out_inside_a_value(result: str, value: Any, message: str) -> None:
    with pytest.raises(RunError) as caught:
        arrow(result, value)
    assert message in str(caught.value)


VALUES = {
    "BOOLEAN": True,
    "TINYINT": -1,
    "BIGINT": 2**40,
    "DOUBLE": 0.5,
    "DECIMAL(10, 2)": Decimal("1.25"),
    "STRING": "Straße",
    "BYTES": b"\x00",
    "DATE": date(2024, 2, 29),
    "TIMESTAMP(6)": datetime(2024, 2, 29, 12, 30, 0, 123456),
    "TIMESTAMP_LTZ(6)": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
    "ARRAY<INT>": [1, None],
    "MAP<STRING, INT>": {"a": 1},
    "ROW<x INT, y STRING>": {"x": 1, "y": "b"},
}


@pytest.mark.parametrize("declared", VALUES)
def test_an_argument_comes_back_as_it_was(declared: str) -> None:
    value = VALUES[declared]
    returned = returned_rows(f"ROW<v {declared}>", "table", ("v",)).arrow([[(value,)], [(None,)]], str)
    assert argument_rows(returned.table, ["v", "v"]) == [(value, value), (None, None)]


def test_a_function_may_have_no_arguments() -> None:
    assert argument_rows(pa.table({"id": [1, 2]}), []) == [(), ()]
