"""What a task is answered, pinned before it is used (:mod:`hintplan.runtime.storage.pins`): the same whenever the batch
runs.

    pins = TaskPins(batch_pins, task=3)
    known = pins.known("", rows_id(table), questions, schema)  # what is pinned of them
    settled = pins.settled(known, found, marks)                # what is pinned now, by whoever was first

Knows no source and no cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.this_task import this_task
from hintplan.runtime.kernels.found_rows import KeyedRows, ranges
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.lookup.rows import ABSENT
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import BatchPins, Pin, PinPlace, Question, RememberedPins, token_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The answers to ``questions``, ``ABSENT`` where nothing is pinned; ``marks`` are those of the pins.

    ``whole`` says that these very rows have been pinned under ``token``, so that nothing is left to publish.
    """

    token: str
    label: str
    at: str
    questions: tuple[Question, ...]
    found: KeyedRows
    marks: Mask
    whole: bool

    @property
    def left(self) -> Mask:
        """The questions that are still to be asked."""
        left: Mask = self.found.count == ABSENT
        return left


_remembered = RememberedPins()
"""What this worker knows of pins."""


def task_pins(place: PinPlace) -> TaskPins:
    """The pins at ``place`` for the task of Spark's that this is, and its batch."""
    return TaskPins(batch_pins(place), task=this_task(place.batch_key)[1])


def batch_pins(place: PinPlace) -> BatchPins:
    """The pins at ``place`` for the batch of the task of Spark's that this is."""
    return BatchPins(files_at(place.root), place, this_task(place.batch_key)[0], _remembered)


class TaskPins:
    """The pins of an operator as the task with the number ``task`` of a batch uses them."""

    def __init__(self, pins: BatchPins, task: int) -> None:
        self._pins = pins
        self._task = task
        self._portions = 0

    def known(self, label: str, rows: bytes, questions: Sequence[Question], schema: pa.Schema) -> Pinned:
        """What is pinned of the distinct ``questions`` of the next ``rows``, whose answers have ``schema``.

        ``label`` says when they are asked, if that is more than once in a batch. RunError if the batch is divided
        otherwise than when it ran before, and was answered in two ways.
        """
        at = f"{self._task}.{self._portions}"
        token = token_of(label, at, rows)
        self._portions += 1
        pin = self._pins.find(token)
        found = Pinned(
            token=token,
            label=label,
            at=at,
            questions=tuple(questions),
            found=_absent(len(questions), schema),
            marks=np.zeros(len(questions), np.bool_),
            whole=pin is not None,
        )
        if pin is not None:
            return self._gathered([pin], found)
        heeded = self._pins.heeded()
        if token in heeded:
            return self._gathered([heeded[token]], found)
        # These rows had no answer yet if rows were divided alike, so no sink has had the batch.
        others = heeded.values()
        unseen = all(
            each.division == self._pins.place.division and (each.label, each.at) != (label, at) for each in others
        )
        return self._gathered(list(others), found, free=unseen)

    def settled(self, known: Pinned, found: KeyedRows, marks: Mask) -> Pinned:
        """Pin the answers ``found``; they, or those that an equal task has pinned before, which is what then holds."""
        rows = found.table.take(pa.array(ranges(found.start, found.count))).combine_chunks()
        pin = Pin(
            label=known.label,
            at=known.at,
            division=self._pins.place.division,
            questions=known.questions,
            count=found.count,
            marks=marks,
            rows=rows,
        )
        kept = self._pins.publish(known.token, pin)
        if kept is pin:
            return replace(known, found=found, marks=marks, whole=True)
        nothing = _absent(len(known.questions), found.table.schema)
        return self._gathered([kept], replace(known, found=nothing, whole=True))

    def _gathered(self, pins: Sequence[Pin], known: Pinned, *, free: bool = False) -> Pinned:
        """``known`` with what ``pins`` have. Where they differ, RunError, or nothing if rows are ``free``."""
        if not pins:
            return known
        places = {question: place for place, question in enumerate(known.questions)}
        table, start, count = known.found.table, known.found.start.copy(), known.found.count.copy()
        marks = known.marks.copy()
        answers: dict[int, list[str]] = {}
        differing: list[int] = []
        tables, offset = [table], table.num_rows
        for pin in pins:
            if pin.label != known.label or not pin.rows.schema.equals(table.schema):
                continue
            begin = np.cumsum(pin.count) - pin.count
            for at, question in enumerate(pin.questions):
                place = places.get(question)
                if place is None:
                    continue
                if count[place] == ABSENT:
                    start[place], count[place], marks[place] = begin[at] + offset, pin.count[at], pin.marks[at]
                    if len(pins) > 1:
                        answers[place] = _answer(pin, at, int(begin[at]))
                elif answers[place] != _answer(pin, at, int(begin[at])):
                    if not free:
                        raise self._ambiguous()
                    differing.append(place)
            tables.append(pin.rows)
            offset += pin.rows.num_rows
        count[differing], marks[differing] = ABSENT, False
        found = KeyedRows(table=pa.concat_tables(tables), start=start, count=count)
        return replace(known, found=found, marks=marks)

    def _ambiguous(self) -> RunError:
        place = self._pins.place
        return RunError(
            f"operator {place.operator}: batch {self._pins.batch} runs again with its rows divided among tasks "
            "otherwise than before, and then one question had different answers in several tasks",
            hint="run it once with as many cores, and the parallelism, as the run before; or, if no sink has had the "
            f"batch yet, remove {place.root}/{place.folder}/{self._pins.batch}.*",
        )


def rows_id(table: pa.Table) -> bytes:
    """A digest of the rows of ``table``, in whatever order they are."""
    whole = table.combine_chunks()
    columns = [_hashable(column.chunk(0) if column.num_chunks else column.combine_chunks()) for column in whole.columns]
    hashes = np.sort(hash_rows(columns, whole.num_rows))
    return hashlib.blake2b(hashes.tobytes(), digest_size=16).digest()


def _hashable(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_time(kind) or pa.types.is_null(kind):
        return pa.array([repr(value) for value in column.to_pylist()], pa.string())
    return column


def _absent(number: int, schema: pa.Schema) -> KeyedRows:
    count = np.full(number, ABSENT, np.int64)
    return KeyedRows(table=schema.empty_table(), start=np.zeros(number, np.int64), count=count)


def _answer(pin: Pin, at: int, begin: int) -> list[str]:
    """What can be compared of an answer, whose rows have no order; NaN is like NaN."""
    rows = pin.rows.slice(begin, int(pin.count[at])).to_pylist()
    return [str(pin.marks[at]), *sorted(map(repr, rows))]


def merged(known: KeyedRows, left: Mask, found: KeyedRows) -> KeyedRows:
    """``known`` with what was ``found`` for those that were ``left``, in their order."""
    start, count = known.start.copy(), known.count.copy()
    start[left] = found.start + known.table.num_rows
    count[left] = found.count
    return KeyedRows(table=pa.concat_tables([known.table, found.table]), start=start, count=count)
