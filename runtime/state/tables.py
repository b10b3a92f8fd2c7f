"""The state tables of an operator in one batch: opened from its manifest, and committed to the next manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hintplan.runtime.operator import Result, SegmentStore
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import StateTable, read_manifest, write_manifest
from hintplan.runtime.state.observation import Observation


def open_tables(
    layouts: Sequence[StateLayout], manifest: bytes | None, store: SegmentStore, *, ttls: Sequence[int], now: int
) -> dict[str, KeyedState]:
    """Return the tables with ``layouts`` by name, each with its TTL in ms; RunError if stored columns differ.

    The tables observe the batch.
    """
    tables = read_manifest(manifest, layouts)
    return {
        layout.name: keyed_table(layout, tables[layout.name], store, ttl=ttl, now=now)
        for layout, ttl in zip(layouts, ttls, strict=True)
    }


def keyed_table(layout: StateLayout, table: StateTable, store: SegmentStore, *, ttl: int, now: int) -> KeyedState:
    """Return a table with its TTL in ms, which observes the batch."""
    return KeyedState(layout, table, store, ttl=ttl, now=now, observation=Observation(table.observed, ttl=ttl, now=now))


def rows_in(deltas: Sequence[pa.Table | None]) -> int:
    """Return the number of input rows."""
    return sum(rows.num_rows for rows in deltas if rows is not None)


def commit_states(
    states: Mapping[str, KeyedState], output: pa.Table, rows_in: int, metrics: tuple[int, ...] = ()
) -> Result:
    """Commit the changes in ``states``, and return the result of the batch."""
    result = result_of({name: state.commit() for name, state in states.items()}, output, rows_in, metrics)
    return replace(result, uses=tuple(state.uses() for state in states.values()))


def result_of(
    tables: Mapping[str, StateTable], output: pa.Table, rows_in: int, metrics: tuple[int, ...] = ()
) -> Result:
    """Return the result of a batch that leaves ``tables``."""
    return Result(
        output=output,
        manifest=write_manifest(tables),
        rows_in=rows_in,
        state_rows=sum(table.rows for table in tables.values()),
        state_bytes=sum(segment.size for table in tables.values() for segment in table.segments),
        oldest_write=min(
            (segment.first_write for table in tables.values() if table.rows for segment in table.segments), default=None
        ),
        metrics=metrics,
    )
