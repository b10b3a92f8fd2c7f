"""Aggregates for tests: built in a line, and fed batch by batch."""

from __future__ import annotations

import pyarrow as pa

from hintplan.plans.operators import AggregateCall
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, delta, events_of, stable_hash

__all__ = ["COLUMNS", "Run", "aggregate", "call", "inserts"]

COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64())])


def call(function: str, argument: str | None = None, kind: str = "BIGINT", **options) -> AggregateCall:
    return AggregateCall(
        name=f"{function}_{argument}_{options}", function=function, argument=argument, type=kind, **options
    )


def aggregate(
    *calls: AggregateCall,
    types: tuple[pa.DataType, ...] = (),
    columns: pa.Schema = COLUMNS,
    keys: tuple[str, ...] = ("k",),
    ttl: int = 0,
    changelog: bool = True,
    kinds: tuple = ("+I", "-U", "+U", "-D"),
) -> AggregateOperator:
    return AggregateOperator(
        columns=columns,
        changelog=changelog,
        keys=keys,
        calls=calls,
        types=types or tuple(pa.int64() for _ in calls),
        ttl=ttl,
        kinds=kinds,
    )


class Run:
    def __init__(self, operator: AggregateOperator, hasher=stable_hash) -> None:
        self.operator = operator
        self.hasher = hasher
        self.store = MemoryStore()
        self.manifest: bytes | None = None
        self.result = None

    def batch(self, events: list[Event], now: int = 0) -> list[Event]:
        rows = delta(self.operator.inputs[0], events, self.hasher)
        self.result = self.operator.process((rows,), self.manifest, self.store, now)
        self.manifest = self.result.manifest
        return events_of(self.result.output)


def inserts(*rows: tuple) -> list[Event]:
    return [("+I", row) for row in rows]
