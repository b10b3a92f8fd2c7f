"""Pinned answers: the external answers that a batch has used, stored so that a repeated batch uses the same answers.

    <pins>/<lineage>/<batch>.<run>.<token>.pin     the answers of an operator for the rows of a task

A task publishes its answers before any dependent row leaves it, and then uses the published file: within a run, the
first file of a name stays. ``token`` identifies the rows of a task, so another attempt with the same rows finds the
file.

If earlier runs have begun the current batch, a run uses the pins that existed when it started, even if rows are divided
in another way. Its own pins list the names of these pins (``heeded``). So pins that processes of a dead run still write
have no effect, unless a later run has already used them. This module knows neither lookups nor functions: a question is
a digest, and an answer consists of rows.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.storage import partition
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import RESTORE, DamagedFile, FileFormat, framed, offsets, unframed
from hintplan.runtime.storage.names import PIN, batch_of

if TYPE_CHECKING:
    from hintplan.runtime.storage.place import Int64s

FORMAT = 1
_FILES = FileFormat(magic="hintplan-pin", versions=(FORMAT,), one="a pin", of="pin")
_QUESTION_BYTES = 16

Question = bytes
"""A digest of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPlace:
    """The location of the pins of ``operator``: the ``folder`` below ``root``, a path or a URL that all workers reach.

    ``run`` is higher than the number of any earlier run. ``replayed`` is the batch that earlier runs may have begun, or
    -1 for none, and ``heeded`` are the names of its pins that this run uses. Runs with the same ``division`` distribute
    rows to tasks in the same way. ``batch_key`` is as in :class:`~hintplan.runtime.storage.place.Place`.
    """

    root: str
    folder: str
    operator: str
    run: int = 1
    replayed: int = -1
    heeded: tuple[str, ...] = ()
    division: str = ""
    batch_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The answers to ``questions``: each has ``count`` rows in ``rows``, one answer after the other.

    ``marks`` has an additional flag for each answer, with a meaning that the operator defines. ``label`` describes the
    request, such as the time of a lookup or the partitions of a scan. ``at`` is the part of the task that asked, in a
    run with that ``division``.
    """

    label: str
    at: str
    division: str
    questions: tuple[Question, ...]
    count: Int64s
    marks: npt.NDArray[np.bool_]
    rows: pa.Table


@dataclass(slots=True)
class RememberedPins:
    """The cache of this process: the last sweep of each folder, and the earlier pins that a run uses."""

    swept: dict[tuple[str, str], int] = field(default_factory=dict)
    heeded: dict[PinPlace, dict[str, Pin]] = field(default_factory=dict)


class BatchPins:
    """The pins of an operator in a batch."""

    def __init__(self, files: Files, place: PinPlace, batch: int, remembered: RememberedPins) -> None:
        self._files = files
        self.place = place
        self.batch = batch
        self._remembered = remembered

    def find(self, token: str) -> Pin | None:
        """Return the pin that this run has published under ``token``, or None; RunError if it is damaged."""
        with self._told():
            try:
                return self._read(self._path(token))
            except FileNotFoundError:
                return None

    def heeded(self) -> dict[str, Pin]:
        """Return the pins of earlier runs that this batch uses, by token; RunError if one is lost or damaged."""
        place = self.place
        if self.batch != place.replayed or not place.heeded:
            return {}
        pins = self._remembered.heeded.get(place)
        if pins is None:
            with self._told():
                # If two runs have pins for the same rows, the later run has used the answers of the earlier one.
                names = sorted(place.heeded, key=_run_of)
                pins = {_token_of(name): self._heeded(name) for name in names}
            self._remembered.heeded = {place: pins}
        return pins

    def _heeded(self, name: str) -> Pin:
        try:
            return self._read(f"{self.place.folder}/{name}")
        except FileNotFoundError as error:
            raise RunError(
                f"operator {self.place.operator}: {name} is missing, on which an earlier run of batch {self.batch} "
                f"depended",
                hint="restore it, or the whole checkpoint, from a backup; or, if no sink has had the batch yet, remove "
                f"{self.place.root}/{self.place.folder}/{self.batch}.*, once no process of that run is left",
            ) from error

    def _read(self, path: str) -> Pin:
        full = f"{self._files.root}/{path}"
        try:
            return decode_pin(self._files.read(path), full)[0]
        except DamagedFile:
            if not self._files.distrust(path):
                raise
            return decode_pin(self._files.read(path), full)[0]

    def publish(self, token: str, pin: Pin) -> Pin:
        """Store ``pin`` under ``token``, and return the stored pin: another one, if that was published first."""
        with self._told():
            path = self._path(token)
            heeded = self.place.heeded if self.batch == self.place.replayed else ()
            data = encode_pin(pin, self.place.operator, path.rpartition("/")[2], heeded)
            first = self._files.publish(path, data)
            self._sweep()
        if first:
            return pin
        stored = self.find(token)
        if stored is None:
            raise RunError(f"{self._files.root}/{self._path(token)} is missing, which was there", hint=RESTORE)
        return stored

    def _path(self, token: str) -> str:
        return f"{self.place.folder}/{self.batch}.{self.place.run}.{token}.{PIN}"

    def _sweep(self) -> None:
        """Remove the pins of batches that can no longer run, periodically, regardless of which run wrote them."""
        key = (self.place.root, self.place.folder)
        if self.batch - self._remembered.swept.get(key, -1) < partition.SWEEP_EVERY:
            return
        self._remembered.swept[key] = self.batch
        for name in self._files.names(self.place.folder):
            batch = batch_of(name)
            if batch is not None and batch < self.batch - partition.KEPT_BATCHES:
                self._files.remove(f"{self.place.folder}/{name}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise RunError with the operator and the file for errors in the block."""
        try:
            yield
        except DamagedFile as error:
            raise RunError(
                f"operator {self.place.operator} cannot read its response: {error.diagnostics[0].message}",
                hint=RESTORE,
            ) from error
        except OSError as error:
            raise RunError(
                f"operator {self.place.operator} cannot store its response: {error.strerror or error} "
                f"({error.filename or self.place.root})",
                hint="make room there, or see whether the worker may read and write it; the checkpoint has all that "
                "was committed",
            ) from error


def heeded_pins(names: Iterable[str], batch: int, read: Callable[[str], bytes | pa.Buffer]) -> tuple[str, ...]:
    """Return the pins of ``batch`` that a new run uses, given the existing file ``names``.

    They are the pins of the last run that has any, and the earlier pins that the last run used. ``read`` returns the
    content of a file.
    """
    candidates = [name for name in names if not name.startswith(".") and batch_of(name) == batch]
    last = max(map(_run_of, candidates), default=0)
    own = sorted(name for name in candidates if _run_of(name) == last)
    return (*own, *decode_pin(read(own[0]), own[0])[1]) if own else ()


def _run_of(name: str) -> int:
    return int(name.split(".")[1])


def _token_of(name: str) -> str:
    return name.split(".")[2]


def encode_pin(pin: Pin, operator: str, name: str, heeded: Sequence[str] = ()) -> bytes:
    """Return the file ``name`` for ``pin``: a header, a table of the questions, and a table of the answers."""
    ids = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_QUESTION_BYTES), len(pin.questions), [None, pa.py_buffer(b"".join(pin.questions))]
    )
    questions = pa.table({"question": ids, "rows": pin.count, "mark": pin.marks})
    pieces = [_stream(questions), _stream(pin.rows)]
    located = zip(offsets(map(len, pieces)), pieces, strict=True)
    listed = [[offset, len(piece), zlib.crc32(piece)] for offset, piece in located]
    header = {"operator": operator, "name": name, "heeded": list(heeded), "pieces": listed}
    header |= {"label": pin.label, "at": pin.at, "division": pin.division}
    return framed(_FILES, header, pieces)


def decode_pin(data: bytes | pa.Buffer, path: str) -> tuple[Pin, tuple[str, ...]]:
    """Parse the result of :func:`encode_pin`, and return the pin and the names of the earlier pins that its run used.

    DamagedFile if it is damaged, RunError with ``path`` for another format.
    """
    header, begin = unframed(_FILES, data, path)
    if header["name"] != path.rpartition("/")[2]:
        raise DamagedFile(path, f"is another pin, {header['name']} of {header['operator']}")
    body = pa.py_buffer(data).slice(begin) if begin <= len(data) else pa.py_buffer(b"")
    tables = []
    for offset, length, crc in header["pieces"]:
        if offset + length > len(body):
            raise DamagedFile(path, "is cut off")
        piece = body.slice(offset, length)
        if zlib.crc32(piece) != crc:
            raise DamagedFile(path, "was changed after it was written")
        with pa.ipc.open_stream(piece) as reader:
            tables.append(reader.read_all())
    questions, rows = tables
    pin = Pin(
        label=header["label"],
        at=header["at"],
        division=header["division"],
        questions=tuple(questions["question"].to_pylist()),
        count=questions["rows"].to_numpy(),
        marks=questions["mark"].to_numpy(),
        rows=rows,
    )
    return pin, tuple(header["heeded"])


def token_of(*parts: object) -> str:
    """Return a token for the rows of a task, which ``parts`` distinguish from all other rows of the batch."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=_QUESTION_BYTES).hexdigest()


def question_of(value: object) -> Question:
    """Return the digest of a question, a Python value; it is the same in each process."""
    return hashlib.blake2b(repr(value).encode(), digest_size=_QUESTION_BYTES).digest()


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
