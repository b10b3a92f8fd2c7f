"""Counts the state of one operator in one partition, as a task of Spark runs it over the segments in the state store.

The segments' parts come as rows of the map ``segments``; they are laid down as files, put together and mapped as the
run does (:class:`runtime.engine.segments.Segments`), counted, and removed. So a task needs room on disk for one
partition, and little memory.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from runtime.engine.blobs import from_blob, to_blob
from runtime.engine.saved import Saved
from runtime.engine.segments import Segments
from runtime.inspect.counts import Counted, Under, count_parked, count_rows
from runtime.operator import SegmentStore
from runtime.operators.lookup_retry import read_parked
from runtime.state.layout import WRITE, StateLayout
from runtime.state.manifest import StateTable, read_manifest

PARKED = "parked"
"""What the rows that wait for a deferred lookup are called, as a table and as a state entry."""

COUNTED_DDL = "query string, number int, partition int, table string, counted string, shown binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A state table to count, and the TTLs in ms to judge it by: first the one that runs, then that of an edit."""

    layout: StateLayout
    ttls: tuple[int, ...]
    is_asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Rows that wait for a deferred lookup, with these keys."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to count of one operator: ``number`` is Spark's for it in ``query``, ``saved`` are its partitions."""

    query: str
    number: int
    saved: Mapping[int, Saved]
    tables: tuple[Kept, ...] | Parked
    now: int
    show: int


class _Parts:
    """The parts of segments in the state store, as files that are removed when they are read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, key: str, data: pa.Scalar) -> None:
        with open(self._path(key), "wb") as sink:
            sink.write(data.as_buffer())

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        path = self._path(key[0])
        if not path.exists():
            return None
        data = path.read_bytes()
        path.unlink()
        return (data,)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        raise NotImplementedError("state is only read")

    def removeKey(self, key: tuple[str]) -> None:
        raise NotImplementedError("state is only read")

    def _path(self, key: str) -> Path:
        token, _, index = key.partition("/")
        return self._directory / f"{token}.{index}"


def count_partition(batches: Iterator[pa.RecordBatch], *, question: Question) -> Iterator[pa.RecordBatch]:
    """A row of COUNTED_DDL for each table of the partition whose rows (``partition``, ``id``, ``data``) come in.

    RunError if a part of a segment is missing.
    """
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    with tempfile.TemporaryDirectory(prefix="hintplan-state-", dir=scratch) as name:
        parts = _Parts(Path(name))
        partition: int | None = None
        tokens: set[str] = set()
        for batch in batches:
            for row in range(batch.num_rows):
                if partition is None:
                    partition = batch["partition"][row].as_py()
                    tokens = {token for token, _ in question.saved[partition].segments.values()}
                key = batch["id"][row].as_py()
                if key.partition("/")[0] in tokens:
                    parts.put(key, batch["data"][row])
        if partition is None:
            return
        saved = question.saved[partition]
        for table, counted in _count(saved, Segments(saved.segments, parts, Path(name)), question):
            yield _written(question, partition, table, counted)


def read_counted(text: str, shown: bytes | None) -> Counted:
    """What a row of COUNTED_DDL says."""
    found = json.loads(text)
    under = tuple(Under(**each) for each in found.pop("under"))
    return Counted(under=under, shown=None if shown is None else from_blob(shown), **found)


def _count(saved: Saved, store: SegmentStore, question: Question) -> Iterator[tuple[str, Counted]]:
    if isinstance(question.tables, Parked):
        found = [(store.read(each.id), each.at) for each in (read_parked(saved.manifest)[2] if saved.manifest else ())]
        if found:
            tables = [table.append_column(WRITE, pa.array(np.full(table.num_rows, at))) for table, at in found]
            # A key that had to be converted, or is a constant, is stored under a name of its own.
            names = tables[0].column_names
            own = (f"__key{index}" for index in range(len(question.tables.key)))
            key = [name if name in names else left for name, left in zip(own, question.tables.key, strict=True)]
            yield PARKED, count_parked(key, tables, show=question.show)
        return
    layouts = {kept.layout.name: kept.layout.fingerprint for kept in question.tables}
    stored: Mapping[str, StateTable] = read_manifest(saved.manifest, layouts)
    for kept in question.tables:
        if kept.is_asked:
            tables = [store.read(entry.id) for entry in stored[kept.layout.name].segments]
            yield (
                kept.layout.name,
                count_rows(kept.layout, tables, ttls=kept.ttls, now=question.now, show=question.show),
            )


def _written(question: Question, partition: int, table: str, counted: Counted) -> pa.RecordBatch:
    facts = {name: getattr(counted, name) for name in ("keys", "oldest", "newest")}
    text = json.dumps({**facts, "under": [asdict(each) for each in counted.under]})
    shown = None if counted.shown is None else to_blob(counted.shown)
    columns: Sequence[pa.Array] = [
        pa.array([question.query]),
        pa.array([question.number], pa.int32()),
        pa.array([partition], pa.int32()),
        pa.array([table]),
        pa.array([text]),
        pa.array([shown], pa.binary()),
    ]
    return pa.record_batch(columns, names=["query", "number", "partition", "table", "counted", "shown"])
