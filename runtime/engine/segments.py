"""Segments of state: durable in Spark's state store, quick to read from memory-mapped files on the worker.

A segment is written once under a token that no other segment ever has, so a local file is never stale: it is there and
right, or it is missing or damaged (:mod:`runtime.engine.local_files`) and fetched from the state store. Nothing is
persisted before :meth:`Segments.commit`, so a segment that is written and deleted within one batch costs nothing; only
one that comes in pieces, because it is large, is laid down as a file at once.
Knows no manifest, and of the operator only its name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from plans.errors import RunError
from runtime.engine.local_files import LocalFiles, let_pages_go
from runtime.engine.opened import Opened

CHUNK_BYTES = 1 << 20
"""Largest value put into the state store. It is copied a dozen times on its way through PySpark, a socket, the JVM and
RocksDB: pieces that fit the processor's cache, and that the JVM does not take for humongous, cost half as much."""

Stored = tuple[str, int]
"""Where a segment is: its token, and its number of chunks in the state store under ``<token>/<chunk>``."""


class ChunkStore(Protocol):
    """The three calls of PySpark's MapState that segments need; keys and values are 1-tuples."""

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None: ...

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None: ...

    def removeKey(self, key: tuple[str]) -> None: ...


class Segments:
    """A SegmentStore over ``chunks`` and ``directory`` that starts with the segments in ``stored``.

    What ``opened`` keeps is read from there; without it, nothing stays open.
    """

    def __init__(
        self,
        stored: Mapping[str, Stored],
        chunks: ChunkStore,
        directory: Path,
        token: Callable[[], str] = lambda: uuid.uuid4().hex,
        *,
        operator: str = "",
        opened: Opened | None = None,
    ) -> None:
        self._stored = dict(stored)
        self._chunks = chunks
        self._files = LocalFiles(directory, operator)
        self._token = token
        self._operator = operator
        self._opened = Opened(limit=0) if opened is None else opened
        self._pending: dict[str, pa.Table] = {}
        self._laid: dict[str, str] = {}
        self._deleted: list[Stored] = []

    def read(self, segment: str) -> pa.Table:
        if segment in self._pending:
            return self._pending[segment]
        token, count = (self._laid[segment], 0) if segment in self._laid else self._stored[segment]
        path = self._files.path(token)
        table = self._opened.find(path)
        if table is None:
            table = self._mapped(token, count)
            self._opened.keep(path, table)
        return table

    def _mapped(self, token: str, count: int) -> pa.Table:
        found = self._files.read(token)
        if found is None:
            self._files.write(token, self._fetched(token, count))
            found = self._files.read(token)
        if found is None:
            raise RunError(
                f"operator {self._operator}: the file {self._files.path(token)} is damaged as soon as it is written",
                hint="check the disk of this worker, or choose another with --conf spark.local.dir=DIRECTORY",
            )
        try:
            return pa.ipc.open_file(found).read_all()
        except pa.ArrowInvalid as error:
            raise RunError(
                f"operator {self._operator}: the state store holds damaged data of state segment {token}: {error}",
                hint="restore the checkpoint directory from a backup, or start with a new one",
            ) from error

    def write(self, segment: str, table: pa.Table) -> int:
        self._check_new(segment)
        self._pending[segment] = table
        return int(table.nbytes)

    def write_pieces(self, segment: str, pieces: Iterable[pa.Table]) -> int:
        self._check_new(segment)
        token = self._token()
        size = self._lay(token, pieces)
        self._laid[segment] = token
        return size

    def settle(self) -> None:
        let_pages_go()
        pa.default_memory_pool().release_unused()

    def delete(self, segment: str) -> None:
        if segment in self._laid:
            self._files.remove(self._laid.pop(segment))
        elif self._pending.pop(segment, None) is None:
            self._deleted.append(self._stored.pop(segment))

    def delete_all(self) -> None:
        for segment in list(self._stored):
            self.delete(segment)

    def commit(self) -> dict[str, Stored]:
        """Persist what was written, remove what was deleted, and return where each segment is."""
        for segment, table in self._pending.items():
            token = self._token()
            self._lay(token, [table])
            self._stored[segment] = self._persist(token)
        self._pending.clear()
        for segment, token in self._laid.items():
            self._stored[segment] = self._persist(token)
        self._laid.clear()
        for token, count in self._deleted:
            for index in range(count):
                self._chunks.removeKey((f"{token}/{index}",))
            self._files.remove(token)
        self._deleted.clear()
        self._opened.forget_removed()
        return dict(self._stored)

    def _check_new(self, segment: str) -> None:
        if segment in self._pending or segment in self._laid or segment in self._stored:
            raise RunError(f"segment {segment!r} of state is written twice; segments are immutable")

    def _lay(self, token: str, pieces: Iterable[pa.Table]) -> int:
        """Write a local file of ``pieces``, and return their size in bytes."""
        pieces = iter(pieces)
        piece = next(pieces)
        size = 0
        with self._files.writing(token) as file, pa.ipc.new_file(pa.PythonFile(file, "w"), piece.schema) as writer:
            while piece is not None:
                writer.write_table(piece)
                size += piece.nbytes
                piece = next(pieces, None)
        return size

    def _persist(self, token: str) -> Stored:
        count = 0
        for part in self._files.parts(token, CHUNK_BYTES):
            self._chunks.updateValue((f"{token}/{count}",), (part,))
            count += 1
        return token, count

    def _fetched(self, token: str, count: int) -> Iterator[bytes]:
        for index in range(count):
            value = self._chunks.getValue((f"{token}/{index}",))
            if value is None:
                raise RunError(
                    f"operator {self._operator}: the state store has lost part {index + 1} of {count} of state "
                    f"segment {token}",
                    hint="restore the checkpoint directory from a backup, or start with a new one",
                )
            yield value[0]
