"""What a batch has read of each source, and what is there still to be read, as Spark's progress has it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.amounts import human_bytes

_FILES = "numFilesOutstanding"
_BYTES = "numBytesOutstanding"
_OFFSETS = "maxOffsetsBehindLatest"
"""What sources call what they are behind."""

_FALLS_BEHIND = 1.1
"""How much faster rows come than they are done with, to be worth telling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """A source in a batch; ``source`` is Spark's description of it.

    Rows come and are processed by the second; None if Spark does not know. Offsets are those of the source, as text:
    where the batch ended, and the latest one there was; None if a source has none. ``metrics`` are the source's own.
    """

    source: str
    rows_in: int = 0
    rows_in_per_second: float | None = None
    rows_processed_per_second: float | None = None
    end_offset: str | None = None
    latest_offset: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


def source_progress(found: Any, unread_files: Mapping[str, int]) -> SourceProgress:
    """The record of Spark's progress of a source; ``unread_files`` has how many files wait, by its description."""
    waiting = unread_files.get(found.description)
    return SourceProgress(
        source=found.description,
        rows_in=found.numInputRows,
        rows_in_per_second=_finite(found.inputRowsPerSecond),
        rows_processed_per_second=_finite(found.processedRowsPerSecond),
        end_offset=_known(found.endOffset),
        latest_offset=_known(found.latestOffset),
        metrics={**({} if waiting is None else {_FILES: str(waiting)}), **(found.metrics or {})},
    )


def lag_text(source: SourceProgress) -> str:
    """What a source is behind, in words; empty if it is not, as far as that is known.

    >>> lag_text(SourceProgress(source="FileStreamSource[file:/in]", metrics={"numFilesOutstanding": "1200",
    ...     "numBytesOutstanding": "2048"}))
    'file:/in is behind: 1,200 files, 2.0 KiB'
    >>> lag_text(SourceProgress(source="KafkaV2[Subscribe[t]]", metrics={"maxOffsetsBehindLatest": "7"}))
    'Subscribe[t] is behind: 7 offsets at most'
    >>> lag_text(SourceProgress(source="x", rows_in_per_second=500.0, rows_processed_per_second=300.0))
    'x falls behind: 500 rows a second come, 300 are processed'
    >>> lag_text(SourceProgress(source="x", rows_in_per_second=300.0, rows_processed_per_second=500.0))
    ''
    """
    name = _name(source.source)
    files, size, offsets = (_number(source.metrics.get(key)) for key in (_FILES, _BYTES, _OFFSETS))
    if files:
        return f"{name} is behind: {files:,} files{f', {human_bytes(size)}' if size else ''}"
    if offsets:
        return f"{name} is behind: {offsets:,} offsets at most"
    come, processed = source.rows_in_per_second, source.rows_processed_per_second
    if files is None and offsets is None and come and processed and come > processed * _FALLS_BEHIND:
        return f"{name} falls behind: {come:,.0f} rows a second come, {processed:,.0f} are processed"
    return ""


def _name(source: str) -> str:
    """What stands in Spark's brackets: ``FileStreamSource[file:/in]``."""
    found = re.fullmatch(r"\w+\[(.*)\]", source)
    return found[1] if found else source


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(float(text))
    except ValueError:
        return None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _known(offset: Any) -> str | None:
    return None if offset is None or str(offset) in ("null", "None", "") else str(offset)
