"""Functions in windows: the results of a group aggregate over the rows of each window."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import delta, events_of
from tests.runtime.event_time.histories import cuts, in_order, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.window_aggregates import WINDOWS, given, model_of, operator


def call(function: str, kind: str = "BIGINT", argument: str | None = "v", **options: Any) -> AggregateCall:
    name = " ".join([function, *(f"{key}={value}" for key, value in options.items())])
    return AggregateCall(name=name, function=function, argument=argument, type=kind, **options)


EACH = (
    call("COUNT"),
    call("SUM", filter="u"),
    call("AVG"),
    call("MIN"),
    call("MAX", filter="u"),
    call("FIRST_VALUE"),
    call("LAST_VALUE"),
    call("LISTAGG", "STRING", "k", separator="-"),
    call("ARRAY_AGG", "ARRAY<BIGINT>"),
    call("COLLECT", "MULTISET<BIGINT>"),
    call("VAR_POP", "DOUBLE"),
)
OF_DISTINCT = (
    call("COUNT", distinct=True),
    call("SUM", distinct=True, filter="u"),
    call("COLLECT", "MULTISET<BIGINT>", distinct=True),
    call("LISTAGG", "STRING", "k", separator="-", distinct=True),
    call("ARRAY_AGG", "ARRAY<BIGINT>", distinct=True),
)


def results(made: WindowAggregateOperator, rows: list[Row], *, changes: bool = False) -> Counter:
    """The groups of each window, as the group aggregate has them for all rows of the window at once."""
    windows = model_of(made.window).windows
    plain = AggregateOperator(
        columns=made.columns,
        changelog=changes,
        keys=("k",),
        calls=made.calls,
        types=made.types,
        ttl=0,
        kinds=("+I",),
        phases="ONE_PHASE",
    )
    ends = {span for row in rows for span in windows.of(row.time)}
    found: Counter = Counter()
    for start, end in ends:
        inside = [row for row in rows if (start, end) in windows.of(row.time)]
        events = given(inside, replace(made, changelog=True))
        result = plain.process((delta(plain.inputs[0], events),), None, MemoryStore(), 0)
        found.update(rounded((*row, moment(start), moment(end))) for _, row in events_of(result.output))
    return found


def rounded(row: tuple) -> tuple:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("changes", [False, True], ids=["inserts", "changes"])
@pytest.mark.parametrize("calls", [EACH, (*EACH, *OF_DISTINCT)], ids=["merged", "repeated"])
@pytest.mark.parametrize("window", WINDOWS[::2], ids=lambda window: window.over("at"))
def test_functions_have_the_results_of_a_group_aggregate_over_the_rows_of_a_window(window, calls, changes) -> None:
    rng = random.Random(f"{window} {len(calls)} {changes}")
    rows = in_order(rng, size=14, span=(0, 400))
    rows = [row._replace(value=rng.choice([None, 1, 2, 3, 50])) for row in rows]
    made = operator(window, calls, changelog=changes, phases=rng.choice(["AUTO", "TWO_PHASE"]))
    if changes:  # a row goes after it came, and the row after it has its time
        rows = [each for row in rows for each in ((row, row._replace(sign=-1)) if rng.random() < 0.3 else (row,))]
    expected = results(made, rows, changes=changes)
    for cut in [*cuts(rng, rows)][1:3]:
        run = KernelRun(made, rng.choice([1, 2]))
        found = [rounded(row) for batch, after in cut for row in run.batch([given(batch, made)], after)]
        assert Counter(found) == expected
        assert run.segments == 0


class Spread:
    """The calls of a user's function whose result is the highest value less the lowest."""

    type = pa.list_(pa.int64())
    merges = True

    def folded(self, rows: Any, old: pa.Array, live: Any) -> pa.Array:
        values = [list(value or []) if is_live else [] for value, is_live in zip(old.to_pylist(), live, strict=True)]
        for group, (value,), used in zip(rows.groups.tolist(), rows.tuples(), rows.used.tolist(), strict=True):
            if used:
                values[group].append(value)
        return pa.array(values, self.type)

    def merged(self, groups: Any, parts: pa.Array, old: pa.Array, live: Any) -> pa.Array:
        values = [list(value or []) if is_live else [] for value, is_live in zip(old.to_pylist(), live, strict=True)]
        for group, part in zip(groups.tolist(), parts.to_pylist(), strict=True):
            values[group] += part
        return pa.array(values, self.type)

    def values(self, accumulators: pa.Array, wanted: Any) -> pa.Array:
        return pa.array(
            [max(values) - min(values) if values else None for values in accumulators.to_pylist()], pa.int64()
        )


@pytest.mark.parametrize("window", WINDOWS[::2], ids=lambda window: window.over("at"))
@pytest.mark.parametrize("distinct", [False, True])
def test_a_users_function_is_merged_or_gets_the_rows_of_each_window(window, distinct) -> None:
    rng = random.Random(f"{window} {distinct}")
    spread = AggregateCall(name="x", function="spread", arguments=("v",), distinct=distinct, type="BIGINT")
    made = replace(operator(window, (spread,), phases="TWO_PHASE"), users={"spread": Spread()})
    rows = in_order(rng, size=12)
    windows = model_of(window).windows
    spans = {(row.key, span) for row in rows for span in windows.of(row.time)}
    expected: Counter = Counter()
    for key, span in spans:
        values = [row.value for row in rows if row.key == key and span in windows.of(row.time)]
        expected[key, max(values) - min(values), *map(moment, span)] += 1
    for cut in cuts(rng, rows):
        run = KernelRun(made, 2)
        assert Counter(row for batch, after in cut for row in run.batch([given(batch, made)], after)) == expected
