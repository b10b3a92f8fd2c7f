"""A plan that runs step by step in this process, with rows and times from a test.

    rehearsal = Rehearsal(plan, session=lambda: spark)
    changes = rehearsal.step(now, {"orders": table})["paid"]
    rehearsal.state_rows()["join_o_p.leftState"]

Builders, kernels, Arrow programs and Spark's expressions are the same as in a run. Sources, sinks, shuffles and files
of state are not here. Each step is one micro-batch. Batches without rows run between steps, when something is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin, Operator, Requesting, Scan, Sink, Values
from hintplan.runtime.builders.edges import Edges, edges_of
from hintplan.runtime.builders.stream import build_stream
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.current_time import at_time, uses_clock
from hintplan.runtime.inspect.counts import count_rows
from hintplan.runtime.inspect.entries import Entry, entries_of
from hintplan.runtime.inspect.partition import PARKED
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.operators.lookup_retry import read_parked
from hintplan.runtime.rehearsal.backend import PartitionState, RehearsalBackend, Step
from hintplan.runtime.rehearsal.local_rows import Session, table_of
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.layout import StateLayout, layout_of
from hintplan.runtime.state.manifest import read_tables
from hintplan.runtime.storage.place import Place, Scale

_numbers = count(1)


class Rehearsal:
    """A streaming plan in this process, with its state; RunError for a batch plan."""

    def __init__(
        self,
        plan: Plan,
        *,
        session: Session,
        modules: tuple[str, ...] = (),
        partitions: int = 1,
    ) -> None:
        if plan.mode != "streaming":
            raise RunError(
                f"plan {plan.name} runs in batch mode, which has no time: steps need a streaming plan",
                hint="compile the script with SET 'execution.runtime-mode' = 'streaming', or compare the job's output",
            )
        self.plan = without_waits(plan)
        self.time_zone = self.zone_of(plan)
        self._partitions = partitions
        self._sinks = tuple(operator for operator in plan.operators if isinstance(operator, Sink))
        self.lookups: dict[str, LookupSource] = {}
        """The sources of lookup tables that a test answers itself, by table."""
        self.functions: dict[str, type[Any]] = {}
        """The classes of functions that a test answers itself, by function."""
        self._backend = RehearsalBackend(session=session, lookups=self.lookups, functions=self.functions)
        self._run = RequestRun(token=f"rehearsal {next(_numbers)}", allowed_modules=modules, time_zone=self.time_zone)
        self._clock = any(map(uses_clock, plan.operators))
        self._requests = any(isinstance(operator, Requesting) for operator in plan.operators)
        self._steps = 0
        self._built: Mapping[str, EdgeRows] | None = None
        self._queries = [frozenset(plan.upstream(*query.sinks)) for query in queries(plan)]
        self._edges = self._edges_of(plan)
        self._entries: dict[str, tuple[Entry, ...]] | None = None

    @staticmethod
    def zone_of(plan: Plan) -> str:
        """Return the session time zone of ``plan``."""
        return plan.config.get(TIME_ZONE, "UTC")

    def step(self, now: int, rows: Mapping[str, pa.Table], *, ends: bool = False) -> dict[str, pa.Table]:
        """Return the changes of each sink's table in a step at ``now`` (ms) with these ``rows`` of sources.

        Rows have the columns of a source that a scan can read, and ``KIND`` if it is a changelog. A step that ``ends``
        event time closes all windows. The changes include batches without rows that run before ``now``, because
        operators have something to do at their times.
        """
        batches: list[dict[str, pa.Table]] = []
        while (due := min(self._dues(), default=now)) < now:
            batches.append(self._batch(due, {}, ends=False))
        batches.append(self._batch(now, rows, ends=ends))
        return {table: pa.concat_tables([batch[table] for batch in batches]) for table in batches[0]}

    def _dues(self) -> Iterator[int]:
        """Yield the times (ms) at which operators have something to do without rows."""
        for state in self._backend.state.values():
            if state.watermark is not None and state.watermark.due is not None:
                yield state.watermark.due

    def _batch(self, now: int, rows: Mapping[str, pa.Table], *, ends: bool) -> dict[str, pa.Table]:
        """Return the changes of each sink's table in a batch."""
        backend = self._backend
        called = self._called(now, rows, ends=ends)
        backend.step = Step(now=now, rows=rows, called=called, first=backend.step.first, ends=ends)
        self._steps += 1
        built = self._built if self._built is not None else self._build(now)
        changes: dict[str, pa.Table] = {}
        for sink in self._sinks:
            made = built[sink.id]
            schema = self._edges.schema(sink.inputs[0])
            changes[sink.table] = table_of(made.in_arrow or made.frame, schema, {}, marked=False)
        backend.step.first = False
        return changes

    def _build(self, now: int) -> Mapping[str, EdgeRows]:
        """Build the rows of the sinks; Spark's frames and the current time of expressions hold for one step only."""
        edges = self._edges
        if self._clock or self._requests:
            edges = self._edges_of(at_time(self.plan, now) if self._clock else self.plan)
        self._backend.used_spark = False
        built = build_stream(edges, [sink.id for sink in self._sinks])
        if not (self._clock or self._requests or self._backend.used_spark):
            self._built = built
        return built

    def reset(self) -> None:
        """Forget all state, and all lookups and functions of the test, as before the first step."""
        self._backend.state.clear()
        self._backend.step = Step()
        self.lookups.clear()
        self.functions.clear()

    def restart(self) -> None:
        """Build all operators again, as a restart does; the state remains."""
        self._edges = self._edges_of(self.plan)
        self._built = None

    def state_rows(self) -> dict[str, int]:
        """Return the number of visible rows of each state, by operator and state, at the time of the last step.

        If a state has several tables, the rows of the first are counted, such as the groups of an aggregate.
        """
        if self._entries is None:
            self._entries = entries_of(self.plan, None)
        return {
            f"{operator}.{entry.name}": sum(self._count(entry, state) for state in self._states(operator))
            for operator, entries in self._entries.items()
            for entry in entries
        }

    def _count(self, entry: Entry, state: PartitionState) -> int:
        if state.manifest is None:
            return 0
        if entry.name == PARKED:
            return sum(segment.rows for segment in read_parked(state.manifest)[2])
        layout, ttl = entry.layouts[0], parse_duration(entry.ttl or "0 s")
        return sum(
            count_rows(layout, runs, ttls=(ttl,), now=self._backend.step.now).under[0].rows
            for runs in _runs(state, layout)
        )

    def _states(self, operator: str) -> list[PartitionState]:
        return [state for (name, _), state in self._backend.state.items() if name == operator]

    def _edges_of(self, plan: Plan) -> Edges:
        # Each step is a run of its own to lookups, whose caches are therefore empty: their times are not of this clock.
        run = replace(self._run, token=f"{self._run.token}.{self._steps}")
        places = {
            operator.id: Place(root="", operator=operator.id, scales=(Scale(self._partitions),))
            for operator in plan.operators
        }
        return edges_of(plan, self._backend, places=places, lookups=run)

    def _called(self, now: int, rows: Mapping[str, pa.Table], *, ends: bool) -> frozenset[str]:
        """Return the operators of the queries that have a batch at ``now`` with these ``rows``."""
        due = {
            name
            for (name, _), state in self._backend.state.items()
            if state.watermark is not None and state.watermark.due is not None and state.watermark.due <= now
        }
        called: set[str] = set()
        for below in self._queries:
            if ends or not due.isdisjoint(below) or any(self._brings_rows(name, rows) for name in below):
                called.update(below)
        return frozenset(called)

    def _brings_rows(self, name: str, rows: Mapping[str, pa.Table]) -> bool:
        match self.plan.by_id[name]:
            case Scan(table=table):
                return table in rows and rows[table].num_rows > 0
            case Values():
                return self._backend.step.first
            case LookupJoin() as lookup:
                return lookup.parks_rows
        return False


def without_waits(plan: Plan) -> Plan:
    """Return ``plan`` with lookups that repeat their requests at once, because the clock of a test stands still."""
    return replace(plan, operators=tuple(map(_without_wait, plan.operators)))


def _without_wait(operator: Operator) -> Operator:
    if not isinstance(operator, LookupJoin) or operator.retry is None or operator.retry.mode != "inline":
        return operator
    retry = operator.settings["retry"]
    at_once = replace(retry, values={**retry.values, "fixed-delay": "1 ms"})
    return replace(operator, settings={**operator.settings, "retry": at_once})


def _runs(state: PartitionState, layout: StateLayout) -> list[list[pa.Table]]:
    """Return the segments of each table with ``layout``, from old to new."""
    assert state.manifest is not None
    return [
        [state.store.read(segment.id) for segment in table.segments]
        for name, table in read_tables(state.manifest).items()
        if layout_of(name, [layout])
    ]
