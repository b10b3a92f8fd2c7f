"""The visible rows of a state as Arrow data, for DuckDB, pandas or Polars.

rows = state_rows(plan, "/data/checkpoints/revenue", "join_o_c.leftState")
duckdb.sql("SELECT c_id, sum(__count) FROM rows GROUP BY c_id")
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.inspect.counts import is_visible, present_rows
from hintplan.runtime.inspect.entries import Entry, choice, entries_of, fits
from hintplan.runtime.inspect.opening import Batches, OpenCheckpoint, at_last_batches, open_checkpoint, stored
from hintplan.runtime.inspect.partition import stored_runs
from hintplan.runtime.inspect.state_owner import OwnedState
from hintplan.runtime.state.layout import HASH, WRITE, StateLayout, int64s
from hintplan.runtime.state.merge import taken


def state_rows(
    plan: PlanLike,
    checkpoint: str | os.PathLike[str],
    state: str,
    *,
    table: str | None = None,
    query: str | None = None,
    at: int | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of ``state``, such as ``join_o_c.leftState``, that ``plan`` sees at the time ``at``.

    ``at`` is in ms since 1970; the default is now. Each row is present once, in its newest version, with its identity,
    its payload, ``__count`` and ``__write``, the time of its last write in ms. Rows that have expired under the plan's
    TTL are left out. The reader computes the rows on demand, in ranges of hashes. ``table`` selects a table if an
    aggregate has several; the default is the first, with the groups. ``query`` is required if several queries keep a
    state of the operator. PlanError if the plan is invalid or has no such state; RunError as
    :func:`hintplan.runtime.inspect.read.read_state`.
    """
    plan = plan_of(plan)
    opened = open_checkpoint(plan, os.fspath(checkpoint))
    kept = entries_of(plan, None)
    operator, entry = _entry(kept, state)
    layout = _layout(entry, state, table)
    owned = _owned(opened, operator, state, query)
    # Map all segments before the first row is read, because a run may remove the files in the meantime.
    partitions = at_last_batches(opened, lambda batches: _runs(opened, owned, batches, kept[operator], layout))
    now = int(time.time() * 1000) if at is None else at
    ttl = parse_duration(entry.ttl or "0 s")
    schema = layout.schema.remove(layout.schema.get_field_index(HASH))
    return pa.RecordBatchReader.from_batches(schema, _visible(layout, partitions, schema, ttl, now))


def _entry(kept: Mapping[str, Sequence[Entry]], state: str) -> tuple[str, Entry]:
    wanted = choice(kept, (), [state])
    matches = [
        (operator, entry) for operator, entries in kept.items() for entry in entries if wanted(operator, entry.name)
    ]
    if len(matches) > 1:
        names = " or ".join(f"'{operator}.{entry.name}'" for operator, entry in matches)
        raise PlanError(f"'{state}' has several states", path=state, hint=f"write {names}")
    return matches[0]


def _layout(entry: Entry, state: str, table: str | None) -> StateLayout:
    if not entry.layouts:
        raise PlanError(
            f"'{state}' has no table: its rows wait to be looked up again",
            path=state,
            hint="hintplan state --show prints them",
        )
    layouts = {layout.name: layout for layout in entry.layouts}
    name = entry.layouts[0].name if table is None else table
    if name not in layouts:
        raise PlanError(f"'{state}' has no table '{name}'", path=state, hint=f"it has {', '.join(layouts)}")
    return layouts[name]


def _owned(opened: OpenCheckpoint, operator: str, state: str, query: str | None) -> OwnedState | None:
    """Return the state in the checkpoint, or None if there is none yet."""
    query_ids = sorted(candidate.id for candidate in opened.record.queries)
    if query is not None and query not in query_ids:
        raise RunError(
            f"there is no query '{query}' in {opened.root}", hint=did_you_mean(query, query_ids, what="queries")
        )
    owned = [
        candidate for candidate in opened.states if candidate.operator == operator and query in (None, candidate.query)
    ]
    read = [candidate for candidate in owned if candidate.status == "read"]
    if len(read) > 1:
        names = ", ".join(repr(candidate.query) for candidate in read)
        raise RunError(f"several queries keep a state '{state}'", hint=f"choose one with query=: {names}")
    if owned and not read:
        raise RunError(
            f"the state of {operator} in {opened.root} is another one in the plan: a run would start it empty",
            hint="give the plan that it was written by",
        )
    return read[0] if read else None


def _runs(
    opened: OpenCheckpoint, owned: OwnedState | None, batches: Batches, entries: Sequence[Entry], layout: StateLayout
) -> list[list[pa.Table]]:
    """Return the segments of each table with ``layout`` in each partition."""
    if owned is None:
        return []
    files, partitions = stored(opened, owned, batches)
    if not fits(entries, partitions.values()):
        raise RunError(
            f"the state of {owned.operator} in {opened.root} has another layout than the plan's operator needs",
            hint="look at it with the version of hintplan that wrote the checkpoint",
        )
    return [runs for manifest in partitions.values() for runs in stored_runs(files, manifest, layout)]


def _visible(
    layout: StateLayout, partitions: Sequence[Sequence[pa.Table]], schema: pa.Schema, ttl: int, now: int
) -> Iterator[pa.RecordBatch]:
    for tables in partitions:
        for rows, order in present_rows(layout, tables):
            seen = order[is_visible(int64s(rows, WRITE)[order], ttl, now)]
            yield from taken(rows.select(schema.names), seen).to_batches()
