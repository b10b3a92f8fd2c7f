"""Formats the results of ``hintplan state --snapshot`` and ``--compact`` as text for people and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.counts import count, human_bytes
from hintplan.plans.text.escapes import clean
from hintplan.runtime.inspect.compact import CompactedState, Compaction
from hintplan.runtime.inspect.rows import time_text, utc
from hintplan.runtime.inspect.snapshot import Snapshot

_HEADINGS = ("", "rows", "", "bytes", "", "files", "")


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a line for each query, and the size of the snapshot."""
    lines = [f"{snapshot.plan} · {snapshot.checkpoint} · snapshot {snapshot.directory}", ""]
    lines += aligned_rows(
        [
            (query, "no batch committed yet" if batch is None else f"up to batch {batch}")
            for query, batch in snapshot.batches.items()
        ]
    )
    linked = f", {count(snapshot.linked, 'file')} shared with the checkpoint" if snapshot.linked else ""
    lines += ["", f"{count(snapshot.files, 'file')}, {human_bytes(snapshot.bytes)}{linked}"]
    return clean("\n".join(lines))


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the same result as JSON values."""
    return {
        "plan": snapshot.plan,
        "checkpoint": snapshot.checkpoint,
        "snapshot": snapshot.directory,
        "queries": [{"id": query, "batch": batch} for query, batch in snapshot.batches.items()],
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "linked": snapshot.linked,
    }


def compaction_text(compaction: Compaction) -> str:
    """Return a line for each state, with rows, bytes and files before and after."""
    when = f"{time_text(compaction.at, compaction.time_zone)} {compaction.time_zone}"
    several = len({state.query for state in compaction.states}) > 1
    table = [_HEADINGS, *(_cells(state, several) for state in (*compaction.states, compaction.total))]
    lines = aligned_rows(table, right=range(1, len(_HEADINGS), 2))
    notes = [f"{_name(state, several)} keeps its rows: {state.kept}" for state in compaction.states if state.kept]
    blocks = [
        f"{compaction.plan} · {compaction.checkpoint} · expired at {when}",
        "\n".join(lines),
        *(["\n".join(notes)] * any(notes)),
    ]
    return clean("\n\n".join(blocks))


def _cells(state: CompactedState, several: bool) -> tuple[str, ...]:
    before, after = state.before, state.after
    return (
        _name(state, several),
        *(f"{before.rows:,}", f"to {after.rows:,}"),
        *(human_bytes(before.bytes), f"to {human_bytes(after.bytes)}"),
        *(f"{before.files:,}", f"to {after.files:,}"),
    )


def _name(state: CompactedState, several: bool) -> str:
    return f"{state.operator} ({state.query})" if several and state.query else state.operator


def compaction_json(compaction: Compaction) -> dict[str, Any]:
    """Return the same result as JSON values, with the time in UTC."""
    return {
        "plan": compaction.plan,
        "checkpoint": compaction.checkpoint,
        "at": utc(compaction.at),
        "states": [
            {
                "query": state.query,
                "operator": state.operator,
                **_sizes_json(state),
                "kept-because": state.kept or None,
            }
            for state in compaction.states
        ],
        "total": _sizes_json(compaction.total),
    }


def _sizes_json(state: CompactedState) -> dict[str, Any]:
    return {"before": asdict(state.before), "after": asdict(state.after)}
