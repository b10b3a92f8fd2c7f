"""The kernel of a lookup join with deferred retries: rows without a match wait in state, and block no other rows.

A row is looked up when it comes. If the source has no match, the kernel parks the row with the time and the number of
its attempts. It looks the row up again after each ``delay``, at most ``max_attempts`` times. Then a LEFT join pads the
row and an INNER join drops it. Only a row's last answer is cached, so that a cached miss cannot defeat an attempt. If
the run ends with its input, no later batch may come, so the remaining attempts are made before the call returns.

State, format 1: one immutable segment of parked rows per call, and a manifest with the time of each segment's last
lookup. Delay and attempts come from the plan that runs, not from the plan that parked the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.spec import LookupSpec
from hintplan.runtime.lookup.task import Answered, looked_up
from hintplan.runtime.lookup.worker import OpenLookup, shared_lookup
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.requests.pins import TaskPins, task_pins
from hintplan.runtime.state.identity import without_chunks
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.worker.clock import Clock

FORMAT = 1
ATTEMPTS = "__attempts"
"""The number of times that a parked row was looked up again."""

_BATCH_ROWS = 1 << 16
_OTHER_LAYOUT = "the stored rows of a deferred lookup have another layout than the plan's operator needs"
_OTHER_PLAN = "run the plan that wrote the checkpoint, or start with a new checkpoint"


class Acquire(Protocol):
    """Opens the lookup that a spec describes, for as long as the context lasts."""

    def __call__(self, spec: LookupSpec) -> AbstractContextManager[OpenLookup]: ...


@dataclass(frozen=True, slots=True)
class ParkedRows:
    """A segment of rows whose last lookup was ``at`` (ms)."""

    id: str
    rows: int
    size: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRetry:
    """A deferred lookup bound to its input ``columns``, the delay in ms, and the number of further attempts.

    ``spec`` has a policy without attempts of its own. ``once`` means that no batch may follow.
    """

    spec: LookupSpec
    columns: pa.Schema
    max_attempts: int
    delay: int
    once: bool
    acquire: Acquire = shared_lookup
    pinned: Callable[[PinPlace], TaskPins] = task_pins

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=(self.spec.rows.keys,), changelog=False),)

    @property
    def output(self) -> pa.Schema:
        return self.spec.rows.output

    @property
    def parked(self) -> pa.Schema:
        """The columns of parked rows."""
        return self.columns.append(pa.field(ATTEMPTS, pa.int32()))

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        number, waiting = _read(manifest, self.parked)
        rows = deltas[0]
        rows_in = rows.num_rows if rows is not None else 0
        due = [segment for segment in waiting if segment.at + self.delay <= now]
        if not rows_in and not due and not (self.once and waiting):
            return self._result([], number, waiting, LookupCounters(), rows_in)
        counters = LookupCounters()
        output: list[pa.Table] = []
        with self.acquire(self.spec) as lookup:
            pins = None if self.spec.pins is None else self.pinned(self.spec.pins)
            missed = [] if rows is None else self._look(_fresh(rows, self.parked), lookup, counters, output, pins)
            time = now
            while True:
                again = [store.read(segment.id) for segment in due]
                for segment in due:
                    waiting.remove(segment)
                    store.delete(segment.id)
                # Rows are looked up again at the same times, however they are divided into partitions.
                if pins is not None:
                    pins.label = str(time)
                missed += self._look_again(again, lookup, counters, output, pins)
                if missed:
                    number += 1
                    table = pa.concat_tables(missed).combine_chunks()
                    name = f"parked/{number}"
                    waiting.append(ParkedRows(name, table.num_rows, store.write(name, table), time))
                    missed = []
                if not self.once or not waiting:
                    break
                first = min(segment.at for segment in waiting) + self.delay
                time = _sleep_until(first, time, lookup.clock)
                due = [segment for segment in waiting if segment.at + self.delay <= time]
            lookup.report(counters)
        return self._result(output, number, waiting, counters, rows_in)

    def inherit(self, store: Inheritance) -> bytes | None:
        low, high = store.bounds
        number, waiting = 0, []
        for part, manifest in enumerate(store.manifests):
            for segment in _read(manifest, self.parked)[1]:
                rows = store.read_old(part, segment.id)
                hashes = hash_rows([without_chunks(rows[name]) for name in self.spec.rows.keys], rows.num_rows)
                rows = rows.filter(pa.array((hashes >= low) & (hashes <= high - 1)))
                if rows.num_rows:
                    number += 1
                    name = f"parked/{number}"
                    waiting.append(ParkedRows(name, rows.num_rows, store.write(name, rows), segment.at))
        return _written(number, waiting, self.parked)

    def _look_again(
        self,
        tables: list[pa.Table],
        lookup: OpenLookup,
        counters: LookupCounters,
        output: list[pa.Table],
        pins: TaskPins | None,
    ) -> list[pa.Table]:
        retried = LookupCounters()
        missed = self._look(_raised(tables), lookup, retried, output, pins)
        counters.add_retried(retried)
        counters.retries += retried.loadCount
        return missed

    def _look(
        self,
        tables: Iterator[pa.Table],
        lookup: OpenLookup,
        counters: LookupCounters,
        output: list[pa.Table],
        pins: TaskPins | None,
    ) -> list[pa.Table]:
        """Look up the rows of ``tables``, add decided rows to ``output``, and return the rows that must wait."""
        rows = self.spec.rows
        missed: list[pa.Table] = []
        for answered in looked_up((rows.key_batch(table) for table in tables), lookup, counters, pins):
            wait = self._waiting(answered)
            if len(wait):
                missed.append(answered.batch.table.take(wait))
            decided = answered.batch.without(wait)
            self._settle(answered, decided.missed(answered.rows), lookup)
            joined = rows.join(decided.table, decided.codes, answered.rows)
            if joined.num_rows:
                output.append(joined)
        return missed

    def _waiting(self, answered: Answered) -> Int64s:
        missed = answered.batch.missed(answered.rows)
        attempts = answered.batch.table[ATTEMPTS].to_numpy()[missed]
        waiting: Int64s = missed[answered.fresh[answered.batch.codes[missed]] & (attempts < self.max_attempts)]
        return waiting

    def _settle(self, answered: Answered, missed: Int64s, lookup: OpenLookup) -> None:
        """Cache the miss for the keys of ``missed`` rows."""
        codes = np.unique(answered.batch.codes[missed])
        codes = codes[answered.fresh[codes]]
        if lookup.cache is not None and len(codes) and not answered.pinned:
            nothing = np.zeros(len(codes), np.int64)
            rows = KeyedRows(table=self.spec.rows.fetched.empty_table(), start=nothing, count=nothing)
            now = np.full(len(codes), lookup.clock.elapsed())
            lookup.cache.store([answered.batch.keys[code] for code in codes.tolist()], rows, now)

    def _result(
        self, output: list[pa.Table], number: int, waiting: list[ParkedRows], counters: LookupCounters, rows_in: int
    ) -> Result:
        return Result(
            output=pa.concat_tables([self.output.empty_table(), *output]),
            manifest=_written(number, waiting, self.parked),
            rows_in=rows_in,
            state_rows=sum(segment.rows for segment in waiting),
            state_bytes=sum(segment.size for segment in waiting),
            oldest_write=min((segment.at for segment in waiting), default=None),
            metrics=tuple(counters.values()),
        )


def _sleep_until(due: int, now: int, clock: Clock) -> int:
    if due > now:
        clock.sleep(due - now)
    return max(due, now)


def _fresh(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
    attempts = pa.array(np.zeros(rows.num_rows, np.int32))
    table = pa.table([*(rows[name] for name in schema.names[:-1]), attempts], schema=schema)
    return (table.slice(start, _BATCH_ROWS) for start in range(0, table.num_rows, _BATCH_ROWS))


def _raised(tables: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield ``tables`` in batches, with one more attempt on each row."""
    for table in tables:
        attempts = pa.array(table[ATTEMPTS].to_numpy() + np.int32(1))
        raised = table.set_column(table.num_columns - 1, table.schema.field(ATTEMPTS), attempts)
        yield from (raised.slice(start, _BATCH_ROWS) for start in range(0, raised.num_rows, _BATCH_ROWS))


def _written(number: int, waiting: list[ParkedRows], schema: pa.Schema) -> bytes | None:
    if not waiting:
        return None
    segments = [asdict(segment) for segment in waiting]
    document = {"format": FORMAT, "columns": str(schema), "number": number, "segments": segments}
    return json.dumps(document, separators=(",", ":")).encode()


def _read(manifest: bytes | None, schema: pa.Schema) -> tuple[int, list[ParkedRows]]:
    if manifest is None:
        return 0, []
    columns, number, waiting = read_parked(manifest)
    if columns != str(schema):
        raise RunError(_OTHER_LAYOUT, hint=_OTHER_PLAN)
    return number, waiting


def is_parked(manifest: bytes) -> bool:
    """Return True if a manifest lists parked rows, not state tables."""
    return "columns" in json.loads(manifest)


def read_parked(manifest: bytes) -> tuple[str, int, list[ParkedRows]]:
    """Return the columns, last segment number and segments of parked rows; RunError for another format."""
    document = json.loads(manifest)
    if document.get("format") != FORMAT:
        raise RunError(_OTHER_LAYOUT, hint=_OTHER_PLAN)
    return document["columns"], document["number"], [ParkedRows(**entry) for entry in document["segments"]]
