"""The manifest: the segments of the state of one operator in one partition, and their statistics.

It is the only mutable part of stored state, and is rewritten once per micro-batch. It has a format version and the
fingerprint of each layout. State that this code cannot read is refused, never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hintplan.plans.errors import RunError
from hintplan.plans.evidence.ages import by_bucket, counts
from hintplan.plans.evidence.period import Period
from hintplan.runtime.state.layout import StateLayout, layout_of

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A stored segment. ``first_write`` and ``last_write`` bound its rows' write times in ms.

    ``shadows`` is True if one of its rows may replace a row of an older segment.
    """

    id: str
    rows: int
    size: int
    first_write: int
    last_write: int
    shadows: bool


_PERIOD = tuple(field.name for field in fields(Period))
_HISTOGRAMS = ("hits", "misses")
_ENTRY = tuple(field.name for field in fields(SegmentEntry))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTable:
    """A state table: ``segments`` from oldest to newest, and the number of ``rows`` that they represent.

    ``observed`` has the periods of :mod:`hintplan.runtime.state.observation`.
    """

    fingerprint: str
    rows: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    observed: tuple[Period, ...] = ()


def write_manifest(tables: Mapping[str, StateTable]) -> bytes | None:
    """Encode ``tables``, or return None when none of them has a segment or has observed anything."""
    if not any(table.segments or table.observed for table in tables.values()):
        return None
    document = {"format": FORMAT, "tables": {name: _encoded(table) for name, table in tables.items()}}
    return json.dumps(document, separators=(",", ":")).encode()


def _encoded(table: StateTable) -> dict[str, object]:
    document: dict[str, object] = {
        "fingerprint": table.fingerprint,
        "rows": table.rows,
        "segments": [[getattr(segment, name) for name in _ENTRY] for segment in table.segments],
    }
    if table.observed:
        document["observed"] = [_encoded_period(period) for period in table.observed]
    return document


def _encoded_period(period: Period) -> list[object]:
    values = {name: getattr(period, name) for name in _PERIOD}
    return [by_bucket(value) if name in _HISTOGRAMS else value for name, value in values.items()]


def _decoded_period(values: Sequence[Any]) -> Period:
    decoded = dict(zip(_PERIOD, values, strict=True))
    return Period(**{**decoded, **{name: counts(dict(decoded[name])) for name in _HISTOGRAMS}})


def read_manifest(data: bytes | None, layouts: Sequence[StateLayout]) -> dict[str, StateTable]:
    """Decode a manifest of tables with ``layouts``; RunError if it does not fit them.

    A layout by time may have any number of tables, and each other layout has one.
    """
    fingerprints = {layout.name: layout.fingerprint for layout in layouts}
    single = [layout.name for layout in layouts if not layout.by_time]
    if data is None:
        return {name: StateTable(fingerprint=fingerprints[name]) for name in single}
    stored = read_tables(data)
    for name in sorted({*stored, *single}):
        layout = layout_of(name, layouts)
        if name not in stored or layout is None or stored[name].fingerprint != fingerprints[layout.name]:
            raise RunError(
                f"the stored state table {name!r} has another layout than the plan's operator needs",
                hint="run the plan and the version of hintplan that wrote the checkpoint, or start with a new one",
            )
    return stored


def read_tables(data: bytes) -> dict[str, StateTable]:
    """Decode a manifest with any layouts; RunError for another format."""
    document = json.loads(data)
    if document.get("format") != FORMAT or "tables" not in document:
        raise RunError(
            f"the stored state has format {document.get('format')!r}; this version reads format {FORMAT}",
            hint="run the version of hintplan that wrote the checkpoint, or start with a new checkpoint",
        )
    return {
        name: StateTable(
            fingerprint=table["fingerprint"],
            rows=table["rows"],
            segments=tuple(SegmentEntry(*segment) for segment in table["segments"]),
            observed=tuple(_decoded_period(values) for values in table.get("observed", ())),
        )
        for name, table in document["tables"].items()
    }
