"""Answers from outside that a batch has gone by, pinned, so that the batch goes by the same when it is computed again.

    <pins>/<lineage>/<batch>.<run>.<token>.pin     what an operator was answered for the rows of a task

Whoever has got answers publishes them before any row that depends on them leaves it, and goes by what is there: within
a run the first file of a name stays. ``token`` stands for the rows of a task, so another attempt at them finds it.

In the batch that runs before it have begun, a run heeds the pins that were there when it began, also where rows are
divided otherwise, and says in its own which those are. So what processes of a dead run still write counts no more
than what any run after it has heeded. Knows neither lookups nor functions: a question is a digest of it, an answer
some rows.
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
_FILES = FileFormat(magic="hintplan-pin", version=FORMAT, one="a pin", of="pin")
_QUESTION_BYTES = 16

Question = bytes
"""A digest of what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPlace:
    """Where the pins of ``operator`` are: in the ``folder`` below ``root``, a path or a URL that all workers reach.

    ``run`` is a number higher than that of any run before. ``replayed`` is the batch that these may have begun, -1 for
    none, and ``heeded`` the names of its pins that count. Runs of the same ``division`` divide rows among tasks alike.
    ``batch_key`` is as in :class:`~hintplan.runtime.storage.place.Place`.
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
    """The answers to ``questions``: of each ``count`` of the ``rows``, one after the other.

    ``marks`` says of each whatever else the operator must know of its answer, ``label`` when they were asked, ``at`` in
    which part of which task, as a run of that ``division`` has them.
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
    """What this process knows of pins: when it last swept in a folder, and those that a run heeds."""

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
        """What this run has published under ``token``; None if nothing. RunError if it is damaged."""
        with self._told():
            try:
                return self._read(self._path(token))
            except FileNotFoundError:
                return None

    def heeded(self) -> dict[str, Pin]:
        """The pins of earlier runs that count in this batch, by their tokens; RunError if one is lost or damaged."""
        place = self.place
        if self.batch != place.replayed or not place.heeded:
            return {}
        found = self._remembered.heeded.get(place)
        if found is None:
            with self._told():
                # Of two runs with the same rows, the later one has gone by what the earlier one had.
                names = sorted(place.heeded, key=_run_of)
                found = {_token_of(name): self._heeded(name) for name in names}
            self._remembered.heeded = {place: found}
        return found

    def _heeded(self, name: str) -> Pin:
        try:
            return self._read(f"{self.place.folder}/{name}")
        except FileNotFoundError as error:
            raise RunError(
                f"operator {self.place.operator}: {name} is gone, by which a run of batch {self.batch} went before",
                hint="restore it, or the whole checkpoint, from a backup; or, if no sink has had the batch yet, remove "
                f"{self.place.root}/{self.place.folder}/{self.batch}.*, once no process of that run is left",
            ) from error

    def _read(self, path: str) -> Pin:
        full = f"{self._files.root}/{path}"
        try:
            return decode(self._files.read(path), full)[0]
        except DamagedFile:
            if not self._files.distrust(path):
                raise
            return decode(self._files.read(path), full)[0]

    def publish(self, token: str, pin: Pin) -> Pin:
        """Keep ``pin``, and return what is kept under ``token``: another one, if that was there first."""
        with self._told():
            path = self._path(token)
            heeded = self.place.heeded if self.batch == self.place.replayed else ()
            data = encode(pin, self.place.operator, path.rpartition("/")[2], heeded)
            first = self._files.publish(path, data)
            self._sweep()
        if first:
            return pin
        there = self.find(token)
        if there is None:
            raise RunError(f"{self._files.root}/{self._path(token)} is missing, which was there", hint=RESTORE)
        return there

    def _path(self, token: str) -> str:
        return f"{self.place.folder}/{self.batch}.{self.place.run}.{token}.{PIN}"

    def _sweep(self) -> None:
        """Remove, from time to time, the pins of batches that nobody computes any more, whoever wrote them."""
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
        """RunError, naming operator and file, for what fails here."""
        try:
            yield
        except DamagedFile as error:
            raise RunError(
                f"operator {self.place.operator} cannot read what it was answered: {error.diagnostics[0].message}",
                hint=RESTORE,
            ) from error
        except OSError as error:
            raise RunError(
                f"operator {self.place.operator} cannot keep what it was answered: {error.strerror or error} "
                f"({error.filename or self.place.root})",
                hint="make room there, or see whether the worker may read and write it; the checkpoint has all that "
                "was committed",
            ) from error


def heeded_pins(names: Iterable[str], batch: int, read: Callable[[str], bytes | pa.Buffer]) -> tuple[str, ...]:
    """The pins of ``batch`` that a run heeds which begins when there are files of these ``names``.

    They are those of the last run that has any, and those which that run has heeded. ``read`` has the content of one.
    """
    there = [name for name in names if not name.startswith(".") and batch_of(name) == batch]
    last = max(map(_run_of, there), default=0)
    own = sorted(name for name in there if _run_of(name) == last)
    return (*own, *decode(read(own[0]), own[0])[1]) if own else ()


def _run_of(name: str) -> int:
    return int(name.split(".")[1])


def _token_of(name: str) -> str:
    return name.split(".")[2]


def encode(pin: Pin, operator: str, name: str, heeded: Sequence[str] = ()) -> bytes:
    """The file ``name`` of ``pin``: a header, a table of the questions, and one of the answers."""
    ids = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_QUESTION_BYTES), len(pin.questions), [None, pa.py_buffer(b"".join(pin.questions))]
    )
    questions = pa.table({"question": ids, "rows": pin.count, "mark": pin.marks})
    pieces = [_stream(questions), _stream(pin.rows)]
    places = zip(offsets(map(len, pieces)), pieces, strict=True)
    listed = [[offset, len(piece), zlib.crc32(piece)] for offset, piece in places]
    header = {"operator": operator, "name": name, "heeded": list(heeded), "pieces": listed}
    header |= {"label": pin.label, "at": pin.at, "division": pin.division}
    return framed(_FILES, header, pieces)


def decode(data: bytes | pa.Buffer, path: str) -> tuple[Pin, tuple[str, ...]]:
    """The pin that :func:`encode` wrote, and the names of those that its run heeds.

    DamagedFile if it is damaged, RunError, naming ``path`` too, for another format.
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
            raise DamagedFile(path, "is not what was written")
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
    """What stands for the rows of a task that ask, which ``parts`` tell from all others of the batch."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=_QUESTION_BYTES).hexdigest()


def question_of(value: object) -> Question:
    """The digest of a question that Python's values make up, the same in each process."""
    return hashlib.blake2b(repr(value).encode(), digest_size=_QUESTION_BYTES).digest()


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
