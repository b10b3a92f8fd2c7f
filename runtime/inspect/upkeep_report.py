"""Formats the results of ``hintplan state --snapshot`` and ``--compact`` as text for people and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.counts import count, human_bytes
from hintplan.plans.text.escapes import clean
from hintplan.runtime.inspect.compact import CompactedState, Compaction
from hintplan.runtime.inspect.rows import instant, utc
from hintplan.runtime.inspect.snapshot import Snapshot

_HEADINGS = ("", "rows", "", "bytes", "", "files", "")


def snapshot_text(found: Snapshot) -> str:
    """Return a line for each query, and the size of the snapshot."""
    lines = [f"{found.plan} · {found.checkpoint} · snapshot {found.directory}", ""]
    lines += aligned_rows(
        [
            (query, "no batch committed yet" if batch is None else f"up to batch {batch}")
            for query, batch in found.batches.items()
        ]
    )
    linked = f", {count(found.linked, 'file')} shared with the checkpoint" if found.linked else ""
    lines += ["", f"{count(found.files, 'file')}, {human_bytes(found.bytes)}{linked}"]
    return clean("\n".join(lines))


def snapshot_json(found: Snapshot) -> dict[str, Any]:
    """Return the same result as JSON values."""
    return {
        "plan": found.plan,
        "checkpoint": found.checkpoint,
        "snapshot": found.directory,
        "queries": [{"id": query, "batch": batch} for query, batch in found.batches.items()],
        "files": found.files,
        "bytes": found.bytes,
        "linked": found.linked,
    }


def compaction_text(found: Compaction) -> str:
    """Return a line for each state, with rows, bytes and files before and after."""
    when = f"{instant(found.at, found.time_zone)} {found.time_zone}"
    several = len({state.query for state in found.states}) > 1
    table = [_HEADINGS, *(_cells(state, several) for state in (*found.states, found.total))]
    lines = aligned_rows(table, right=range(1, len(_HEADINGS), 2))
    notes = [f"{_name(state, several)} keeps its rows: {state.kept}" for state in found.states if state.kept]
    blocks = [
        f"{found.plan} · {found.checkpoint} · expired at {when}",
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


def compaction_json(found: Compaction) -> dict[str, Any]:
    """Return the same result as JSON values, with the time in UTC."""
    return {
        "plan": found.plan,
        "checkpoint": found.checkpoint,
        "at": utc(found.at),
        "states": [
            {
                "query": state.query,
                "operator": state.operator,
                **_sizes_json(state),
                "kept-because": state.kept or None,
            }
            for state in found.states
        ],
        "total": _sizes_json(found.total),
    }


def _sizes_json(state: CompactedState) -> dict[str, Any]:
    return {"before": asdict(state.before), "after": asdict(state.after)}
