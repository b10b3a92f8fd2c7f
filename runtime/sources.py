"""The progress of each source in a batch, from Spark's progress: the rows read, and the input that is still unread."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hintplan.plans.text.counts import human_bytes

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress as SourceProgressOfSpark

_FILES = "numFilesOutstanding"
_BYTES = "numBytesOutstanding"
_OFFSETS = "maxOffsetsBehindLatest"
"""The metrics in which sources report their lag."""

_FALLS_BEHIND = 1.1
"""The ratio of arriving to processed rows from which a lag is reported."""

_LOW_RATE = 10
"""Rates below this number of rows per second are printed with a decimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """A source in a batch. ``source`` is Spark's description, ``operator`` the plan's operator that reads it.

    If several operators read the same source, ``operator`` is the first; None on Spark Connect if the query has several
    sources. The rates are in rows per second; None if Spark does not know them. The offsets are texts of the source:
    the end of the batch, and the latest offset available; None if a source has none. ``metrics`` are the source's own.
    """

    source: str
    operator: str | None = None
    rows_in: int = 0
    rows_in_per_second: float | None = None
    rows_processed_per_second: float | None = None
    end_offset: str | None = None
    latest_offset: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag of a source: the files and bytes that it has found and not read, or None if it reports none.

    ``offsets`` is the distance between the end of the batch and the latest offsets, over all partitions of a topic.
    """

    files: int | None
    bytes: int | None
    offsets: int | None


def source_progress(
    progress: SourceProgressOfSpark, operator: str | None, unread_files: Mapping[str, int], uncounted: Mapping[str, int]
) -> SourceProgress:
    """Return the record of Spark's progress of a source; ``unread_files`` has the unread files by description.

    If tasks read the files themselves, Spark counts files as rows. ``uncounted`` has the rows beyond Spark's count, by
    the scan that read them. If the scan of the source is unknown, its rates are unknown.
    """
    waiting = unread_files.get(progress.description)
    rows = progress.numInputRows + uncounted.get(operator or "", 0)
    unknown = bool(uncounted) and operator is None
    share = math.nan if unknown else rows / progress.numInputRows if progress.numInputRows else 1.0
    return SourceProgress(
        source=progress.description,
        operator=operator,
        rows_in=rows,
        rows_in_per_second=_finite(progress.inputRowsPerSecond, share),
        rows_processed_per_second=_finite(progress.processedRowsPerSecond, share),
        end_offset=_known(progress.endOffset),
        latest_offset=_known(progress.latestOffset),
        metrics={**({} if waiting is None else {_FILES: str(waiting)}), **(progress.metrics or {})},
    )


def lag(source: SourceProgress) -> Lag:
    """Return the lag of a source in numbers.

    >>> lag(SourceProgress(source="KafkaV2[Subscribe[t]]",
    ...     end_offset='{"t": {"0": 7, "1": 5}}', latest_offset='{"t": {"0": 9, "1": 5, "2": 4}}'))
    Lag(files=None, bytes=None, offsets=6)
    """
    return Lag(
        files=_number(source.metrics.get(_FILES)),
        bytes=_number(source.metrics.get(_BYTES)),
        offsets=_offsets_between(source.end_offset, source.latest_offset),
    )


def split_names(source: SourceProgress) -> Iterator[str]:
    """Yield the splits of a source by their names in event time; none for a source without splits.

    >>> list(split_names(SourceProgress(source="KafkaV2[Subscribe[t]]", end_offset='{"t": {"0": 7, "1": 5}}')))
    ['t/0', 't/1']
    """
    yield from ("/".join(partition) for partition in _by_partition(source.end_offset) or ())


def lag_text(source: SourceProgress) -> str:
    """Return the lag of a source as text; empty if there is none, or if it is unknown.

    >>> lag_text(SourceProgress(source="FileStreamSource[file:/in]", operator="scan_o", metrics={
    ...     "numFilesOutstanding": "1200", "numBytesOutstanding": "2048"}))
    'scan_o is behind: 1,200 files, 2.0 KiB'
    >>> lag_text(SourceProgress(source="KafkaV2[Subscribe[t]]", metrics={"maxOffsetsBehindLatest": "7"}))
    'Subscribe[t] is behind: 7 offsets at most'
    >>> lag_text(SourceProgress(source="org.x.Stream@7b7f", rows_in_per_second=500.0, rows_processed_per_second=300.0))
    'Stream falls behind: 500 rows a second come, 300 are processed'
    >>> lag_text(SourceProgress(source="x", rows_in_per_second=300.0, rows_processed_per_second=500.0))
    ''
    """
    name = source.operator or _name(source.source)
    files, size, offsets = (_number(source.metrics.get(key)) for key in (_FILES, _BYTES, _OFFSETS))
    if files:
        return f"{name} is behind: {files:,} files{f', {human_bytes(size)}' if size else ''}"
    if offsets:
        return f"{name} is behind: {offsets:,} offsets at most"
    come, processed = source.rows_in_per_second, source.rows_processed_per_second
    if files is None and offsets is None and come and processed and come > processed * _FALLS_BEHIND:
        digits = 0 if processed >= _LOW_RATE else 1
        return f"{name} falls behind: {come:,.{digits}f} rows a second come, {processed:,.{digits}f} are processed"
    return ""


class Behind:
    """Reports the lag of a stream's sources, once a source is behind for several micro-batches in a row.

    A run with ``once`` reports no lag, because it ignores rows that arrive while it works.
    """

    IN_A_ROW = 3

    def __init__(self, *, once: bool) -> None:
        self._once = once
        self._batches: dict[tuple[str, int], int] = {}

    def __call__(self, sink: str, sources: Sequence[SourceProgress]) -> list[str]:
        """Return texts about the ``sources`` of a micro-batch of ``sink`` that are behind."""
        if self._once:
            return []
        texts: list[str] = []
        for position, source in enumerate(sources):
            text = lag_text(source)
            so_far = self._batches.get((sink, position), 0) + 1 if text else 0
            self._batches[sink, position] = so_far
            if so_far >= self.IN_A_ROW:
                texts.append(text)
        return list(dict.fromkeys(texts))


def _offsets_between(end: str | None, latest: str | None) -> int | None:
    """Return the number of offsets from ``end`` to ``latest``, if these are numbers by topic and partition."""
    ends, latests = _by_partition(end), _by_partition(latest)
    if ends is None or latests is None:
        return None
    # A partition that is not in ``end`` is new. It is read from its beginning, which is unknown here, so count from 0.
    return sum(max(0, offset - ends.get(partition, 0)) for partition, offset in latests.items())


def _by_partition(offsets: str | None) -> dict[tuple[str, str], int] | None:
    try:
        topics = json.loads(offsets or "null")
        return {(topic, number): int(at) for topic, partitions in topics.items() for number, at in partitions.items()}
    except (ValueError, TypeError, AttributeError):
        return None


def _name(source: str) -> str:
    """Return the text in the brackets of Spark's description, such as ``FileStreamSource[file:/in]``.

    For a source without a description, return the name of its class.
    """
    match = re.fullmatch(r"\w+\[(.*)\]", source)
    return match[1] if match else re.sub(r"^[\w.$]*[.$](\w+)@[0-9a-f]+$", r"\1", source)


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(float(text))
    except ValueError:
        return None


def _finite(value: float | None, share: float) -> float | None:
    return value * share if value is not None and math.isfinite(value * share) else None


def _known(offset: object) -> str | None:
    """Return an offset of Spark's progress as text; None if the source has none.

    PySpark 4.0 and 4.1 report offsets that are JSON in Python's notation.

    >>> _known("{'t': {'0': 7}}"), _known("None")
    ('{"t": {"0": 7}}', None)
    """
    text = "" if offset is None else str(offset)
    if text.startswith("{'"):
        try:
            return json.dumps(ast.literal_eval(text))
        except (ValueError, SyntaxError):
            return text
    return None if text in ("null", "None", "") else text
