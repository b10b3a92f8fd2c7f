"""Window aggregates for tests: a kernel in a line, its model, and rows of the model as its input."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator
from hintplan.runtime.types import to_arrow
from tests.runtime.event_time.histories import moment
from tests.runtime.event_time.models import Row, WindowAggregate, Windows
from tests.runtime.event_time.times import Zone

SUMS = (
    AggregateCall(name="n", function="COUNT", type="BIGINT"),
    AggregateCall(name="s", function="SUM", argument="v", type="BIGINT"),
)
REPEATED = (*SUMS, AggregateCall(name="d", function="COUNT", argument="v", distinct=True, type="BIGINT"))
"""Calls of which a HOP or CUMULATE cannot merge slices."""
WINDOWS = [
    Window(type="tumble", size="100 ms"),
    Window(type="tumble", size="100 ms", offset="-30 ms"),
    Window(type="hop", size="200 ms", slide="50 ms"),
    Window(type="hop", size="300 ms", slide="100 ms", offset="20 ms"),
    Window(type="cumulate", size="200 ms", step="50 ms"),
    Window(type="cumulate", size="300 ms", step="60 ms", offset="-10 ms"),
]
MANY_SLICES = Window(type="hop", size="700 ms", slide="10 ms", offset="-3 ms")
"""A window of more slices than buckets."""


def operator(
    window: Window, calls=SUMS, *, keys=("k",), phases="AUTO", changelog=False, v="BIGINT", k="STRING"
) -> WindowAggregateOperator:
    time = to_arrow("TIMESTAMP(3)" if window.zone is None else "TIMESTAMP_LTZ(3)")
    return WindowAggregateOperator(
        operator="windows",
        columns=pa.schema([("k", to_arrow(k)), ("v", to_arrow(v)), ("u", pa.bool_()), ("at", time)]),
        changelog=changelog,
        keys=keys,
        calls=calls,
        types=tuple(to_arrow(call.type) for call in calls),
        window=window,
        names=("ws", "we", None),
        time="at",
        phases=phases,
    )


def model_of(window: Window, keys=("k",)) -> WindowAggregate:
    windows = Windows(window.type, window.size_ms, window.step_ms, window.offset_ms)
    return WindowAggregate(windows, Zone(window.zone), is_keyed=bool(keys))


def given(rows: list[Row], operator: WindowAggregateOperator) -> list[Any]:
    zoned = operator.window.zone is not None
    events = [
        ("+I" if row.sign > 0 else "-D", (row.key, row.value, row.value == 1, moment(row.time, zoned=zoned)))
        for row in rows
    ]
    return events if operator.changelog else [row for _, row in events]
