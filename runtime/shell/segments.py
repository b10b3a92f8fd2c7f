"""Segments of state: durable in Spark's state store, quick to read from memory-mapped files on the worker.

A segment is written once under a token that no other segment ever has, so a local file is never stale: it is there and
right, or it is missing and fetched from the state store. Nothing is persisted before :meth:`Segments.commit`, so a
segment that is written and deleted within one batch costs nothing. Knows no operator and no manifest.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from plans.errors import RunError

__all__ = ["ChunkStore", "Segments", "Stored"]

CHUNK_BYTES = 32 << 20
"""Largest value put into the state store; a value crosses a socket and RocksDB in one piece."""

Stored = tuple[str, int]
"""Where a segment is: its token, and its number of chunks in the state store under ``<token>/<chunk>``."""


class ChunkStore(Protocol):
    """The three calls of PySpark's MapState that segments need; keys and values are 1-tuples."""

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None: ...

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None: ...

    def removeKey(self, key: tuple[str]) -> None: ...


class Segments:
    """A SegmentStore over ``chunks`` and ``directory`` that starts with the segments in ``stored``."""

    def __init__(
        self,
        stored: Mapping[str, Stored],
        chunks: ChunkStore,
        directory: Path,
        token: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._stored = dict(stored)
        self._chunks = chunks
        self._directory = directory
        self._token = token
        self._pending: dict[str, pa.Table] = {}
        self._deleted: list[Stored] = []

    def read(self, segment: str) -> pa.Table:
        if segment in self._pending:
            return self._pending[segment]
        token, count = self._stored[segment]
        path = self._path(token)
        if not path.exists():
            self._fetch(token, count, path)
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def write(self, segment: str, table: pa.Table) -> int:
        if segment in self._pending or segment in self._stored:
            raise RunError(f"segment {segment!r} of state is written twice; segments are immutable")
        self._pending[segment] = table
        return int(table.nbytes)

    def delete(self, segment: str) -> None:
        if self._pending.pop(segment, None) is None:
            self._deleted.append(self._stored.pop(segment))

    def delete_all(self) -> None:
        for segment in list(self._stored):
            self.delete(segment)

    def commit(self) -> dict[str, Stored]:
        """Persist what was written, remove what was deleted, and return where each segment is."""
        for segment, table in self._pending.items():
            self._stored[segment] = self._persist(table)
        self._pending.clear()
        for token, count in self._deleted:
            for index in range(count):
                self._chunks.removeKey((f"{token}/{index}",))
            self._path(token).unlink(missing_ok=True)
        self._deleted.clear()
        return dict(self._stored)

    def _path(self, token: str) -> Path:
        return self._directory / f"{token}.arrow"

    def _persist(self, table: pa.Table) -> Stored:
        token = self._token()
        temporary = self._temporary(token)
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        count = 0
        with open(temporary, "rb") as source:
            while part := source.read(CHUNK_BYTES):
                self._chunks.updateValue((f"{token}/{count}",), (part,))
                count += 1
        os.replace(temporary, self._path(token))
        return token, count

    def _fetch(self, token: str, count: int, path: Path) -> None:
        temporary = self._temporary(token)
        with open(temporary, "wb") as sink:
            for index in range(count):
                value = self._chunks.getValue((f"{token}/{index}",))
                if value is None:
                    raise RunError(
                        f"the state store has lost part {index + 1} of {count} of state segment {token}",
                        hint="restore the checkpoint directory from a backup, or start with a new one",
                    )
                sink.write(value[0])
        os.replace(temporary, path)

    def _temporary(self, token: str) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        # Two attempts of one task may fetch the same segment at once; each has a file of its own until it is whole.
        return self._directory / f"{token}.{uuid.uuid4().hex}.tmp"
