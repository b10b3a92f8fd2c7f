"""All aggregate functions over sessions, also DISTINCT, FILTER and functions of users, against lists of rows."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.runtime.kernels.accumulators import GivenRows
from hintplan.runtime.operators.session import SessionOperator
from tests.runtime.event_time.histories import history, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.times import NEVER
from tests.runtime.operators.test_session_operator import GAP, operator

Values = list[Any]


class Joined:
    """A user's function that keeps its arguments in a list, and returns them in order, as a text."""

    type = pa.list_(pa.string())
    merges = True

    def folded(self, rows: GivenRows, old: pa.Array, live: np.ndarray) -> pa.Array:
        held = self._held(old, live)
        for group, values, used in zip(rows.groups, rows.tuples(), rows.used, strict=True):
            if used:
                held[group].append(str(values))
        return pa.array(held, self.type)

    def merged(self, groups: np.ndarray, parts: pa.Array, old: pa.Array, live: np.ndarray) -> pa.Array:
        held = self._held(old, live)
        for group, part in zip(groups, parts.to_pylist(), strict=True):
            held[group] += part
        return pa.array(held, self.type)

    def values(self, accumulators: pa.Array, wanted: np.ndarray) -> pa.Array:
        return pa.array([" ".join(sorted(each)) for each in accumulators.to_pylist()])

    def _held(self, old: pa.Array, live: np.ndarray) -> list[list[str]]:
        return [list(each or []) if there else [] for each, there in zip(old.to_pylist(), live, strict=True)]


def call(function: str, kind: str, argument: str | None = "v", **options: Any) -> AggregateCall:
    return AggregateCall(name="r", function=function, argument=argument, type=kind, **options)


def valid(values: Values) -> Values:
    return [value for value in values if value is not None]


def or_null(of: Callable[[Values], Any]) -> Callable[[Values], Any]:
    return lambda values: of(valid(values)) if valid(values) else None


def joined(values: Values) -> str:
    return " ".join(sorted(str((value,)) for value in values))


CASES: dict[str, tuple[AggregateCall, Callable[[Values], Any]]] = {
    "count": (call("COUNT", "BIGINT"), lambda values: len(valid(values))),
    "sum": (call("SUM", "BIGINT"), or_null(sum)),
    "average": (call("AVG", "BIGINT"), or_null(lambda values: sum(values) // len(values))),
    "minimum": (call("MIN", "BIGINT"), or_null(min)),
    "maximum": (call("MAX", "BIGINT"), or_null(max)),
    "deviation": (call("STDDEV_POP", "DOUBLE"), or_null(lambda values: round(statistics.pstdev(values), 6))),
    "collection": (call("COLLECT", "MULTISET<BIGINT>"), lambda values: frozenset(Counter(valid(values)).items())),
    "array": (call("ARRAY_AGG", "ARRAY<BIGINT>"), lambda values: tuple(sorted(values, key=str)) or None),
    "user": (call("joined", "STRING", None, arguments=("v",)), joined),
}


def model(rows: list[Row], open_: dict[Any, list], before: int, after: int, of: Callable[[Values], Any]) -> Counter:
    """The sessions that close: key, result over the values of its rows, start and end."""
    added: dict[Any, list] = {}
    for row in rows:
        added.setdefault(row.key, []).append((row.time, row.time + GAP, [row.value]))
    for key, intervals in added.items():
        merged: list = []
        for start, end, values in sorted([*open_.get(key, []), *intervals], key=lambda each: each[:2]):
            if merged and start <= merged[-1][1]:
                first, last, known = merged[-1]
                merged[-1] = (first, max(last, end), known + values)
            else:
                merged.append((start, end, values))
        open_[key] = [each for each in merged if each[1] - 1 > before]
    closed: Counter = Counter()
    for key, sessions in open_.items():
        for start, end, values in sessions:
            if end - 1 <= after:
                closed[key, of(values), start, end] += 1
        open_[key] = [each for each in sessions if each[1] - 1 > after]
    return closed


def result(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return tuple(sorted(value, key=str)) if isinstance(value, tuple) else value


def kernel(aggregate: AggregateCall, phases: str) -> SessionOperator:
    return operator((aggregate,), phases=phases, users={"joined": Joined()} if aggregate.is_users else {})


@pytest.mark.parametrize("phases", ["ONE_PHASE", "TWO_PHASE"])
@pytest.mark.parametrize("variant", ["all", "distinct", "filter", "distinct filter"])
@pytest.mark.parametrize("name", CASES)
def test_a_function_has_the_result_of_all_rows_of_its_session(name, variant, phases) -> None:
    aggregate, of = CASES[name]
    aggregate = replace(aggregate, distinct="distinct" in variant, filter="u" if "filter" in variant else None)

    def expected(values: Values) -> Any:
        if aggregate.filter is not None:
            values = [value for value in values if value is not None and value % 2 == 0]
        return of(list(dict.fromkeys(values)) if aggregate.distinct else values)

    rng = random.Random(f"{name} {variant}")
    run, open_ = KernelRun(kernel(aggregate, phases), 2, tasks=2), dict[Any, list]()
    for rows, after in history(rng, size=20, span=(0, 600)):
        rows = [row._replace(value=rng.choice([None, row.value])) for row in rows]
        given = [(row.key, row.value, row.value is not None and row.value % 2 == 0, moment(row.time)) for row in rows]
        wanted = model(rows, open_, run.before, max(after, run.before), expected)
        got = Counter(
            (key, result(value), millis(start), millis(end)) for key, value, start, end in run.batch([given], after)
        )
        assert got == wanted


@pytest.mark.parametrize(("function", "expected"), [("FIRST_VALUE", "c"), ("LAST_VALUE", "a"), ("LISTAGG", "c,b,a")])
def test_functions_of_the_order_go_by_arrival(function, expected) -> None:
    separator = "," if function == "LISTAGG" else None
    of_keys = call(function, "STRING", "k", separator=separator)
    run = KernelRun(operator((of_keys,), keys=()))
    for key, time in (("c", 30), ("b", 10), ("a", 20)):
        assert run.batch([[(key, 1, True, moment(time))]], NEVER) == []
    assert [row[0] for row in run.batch([[]], 1000)] == [expected]


def test_a_bridge_joins_sessions_in_the_order_of_their_starts() -> None:
    run = KernelRun(operator((call("LISTAGG", "STRING", "k", separator=","),), keys=()))
    for key, time in (("late", 200), ("early", 100), ("bridge", 150)):
        run.batch([[(key, 1, True, moment(time))]], NEVER)
    assert run.state_rows == 1
    ((text, start, end),) = run.batch([[]], 1000)
    assert (text, millis(start), millis(end)) == ("early,late,bridge", 100, 250)


def test_sums_of_decimals_keep_their_digits() -> None:
    total = call("SUM", "DECIMAL(38, 2)")
    run = KernelRun(operator((total,), v="DECIMAL(20, 2)"), 2)
    for value in (Decimal("0.10"), Decimal("123456789012345678.25"), None):
        run.batch([[("a", value, True, moment(0))]], NEVER)
    ((_, value, *_),) = run.batch([[]], 1000)
    assert value == Decimal("123456789012345678.35")
