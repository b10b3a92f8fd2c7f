"""A plan's operators in the engine's own processors, on states that are found by number, as Spark finds them.

What a Spark job does when it is restarted with another plan, without Spark: the processors store, read and drop state
as in a job; the sink has what it was given before. The numbers are those of a walk from the sink, each operator before
its inputs, as tests/spark/run/test_continued.py finds them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import Row

from plans.compare.carryover import state_lineages
from plans.model.plan import Plan
from plans.operators import Aggregate, Join, Sink
from runtime.build.table import build_operator
from runtime.engine.blobs import from_blob, to_blob
from runtime.engine.process import PartitionProcessor
from runtime.operator import hash_column
from tests.runtime.changelog import stable_hash
from tests.runtime.pipeline import Pipeline

__all__ = ["OneValue", "Restartable", "of_sink"]


class OneValue:
    """ValueState with or without a value."""

    def __init__(self, value: tuple[Any, ...] | None = None) -> None:
        self.value = value

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None


class _Map(dict):
    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        return (self[key[0]],) if key[0] in self else None

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:
        del self[key[0]]


class _Partition:
    """What Spark keeps of one stateful operator in its only partition."""

    def __init__(self) -> None:
        self.manifest, self.segments = OneValue(), _Map()
        self.timers: set[int] = set()

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)


class _Time:
    def __init__(self, now: int) -> None:
        self.now = now

    def getCurrentProcessingTimeInMs(self) -> int:
        return self.now


class Restartable(Pipeline):
    """A plan with one sink; ``states`` are those of its query, by number."""

    def __init__(self, plan: Plan, states: dict[int, _Partition] | None = None) -> None:
        super().__init__(plan)
        self.states = {} if states is None else states
        self._lineages = state_lineages(plan)
        self._numbers = {name: number for number, name in enumerate(_stateful_from_the_sink(plan))}

    def restarted(self, plan: Plan, result: Counter) -> Restartable:
        """Another plan on the same states, into a sink that holds ``result``."""
        other = Restartable(plan, self.states)
        other.result = Counter(result)
        return other

    def _stateful(self, operator: Join | Aggregate, inputs: list[pa.Table], now: int) -> pa.Table:
        columns = tuple(self.columns[name] for name in operator.inputs)
        built = build_operator(operator, columns, tuple(self.changelog[name] for name in operator.inputs))
        processor = PartitionProcessor(operator.id, built, self._lineages[operator.id])
        kept = self.states.setdefault(self._numbers[operator.id], _Partition())
        processor.open(kept, {"manifest": kept.manifest, "segments": kept.segments})  # type: ignore[arg-type]
        rows = []
        for side, (spec, table) in enumerate(zip(built.inputs, inputs, strict=True)):
            # Rows come with the hash that routes them; the others are made by the processor.
            hashes = [stable_hash(tuple(row[name] for name in spec.hashes[0])) for row in table.to_pylist()]
            table = table.append_column(hash_column(0), pa.array(hashes, pa.int64()))
            rows += [Row(side=side, task=0, seq=0, blob=to_blob(table))] if table.num_rows else []
        out = processor.handleInputRows((0,), iter(rows), _Time(now))
        blobs = [from_blob(row.blob) for row in out if row.blob is not None]
        return pa.concat_tables(blobs) if blobs else built.output.empty_table()


def of_sink(plan: Plan, sink: str) -> Plan:
    """The part of ``plan`` that leads to one sink."""
    operators = {operator.id: operator for operator in plan.operators}
    wanted, waiting = set(), [sink]
    while waiting:
        name = waiting.pop()
        wanted.add(name)
        waiting += operators[name].inputs
    return replace(plan, operators=tuple(operator for operator in plan.operators if operator.id in wanted))


def _stateful_from_the_sink(plan: Plan) -> list[str]:
    operators = {operator.id: operator for operator in plan.operators}

    def walk(name: str) -> list[str]:
        operator = operators[name]
        own = [name] if isinstance(operator, Join | Aggregate) else []
        return own + [found for each in operator.inputs for found in walk(each)]

    (sink,) = (operator.id for operator in plan.operators if isinstance(operator, Sink))
    return walk(sink)
