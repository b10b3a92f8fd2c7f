"""Pinned answers of a task (:mod:`hintplan.runtime.storage.pins`): a batch that runs again gets the same answers.

    pins = TaskPins(batch_pins, task=3)
    known = pins.known(rows_id(table), questions, schema)  # the answers that are already pinned
    pinned = pins.completed(known, answers)                    # all answers that hold: the first attempt's

A task pins its answers before it uses them. This module knows neither lookups nor functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.this_task import this_task
from hintplan.runtime.kernels.found_rows import ABSENT, KeyedRows, ranges
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import BatchPins, Pin, PinPlace, Question, RememberedPins, token_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The pinned answers to ``questions``, each with the mark of its pin.

    The count of a question without an answer is ``ABSENT``. ``whole`` is True if these very rows have been pinned under
    ``token``, so that nothing is left to publish. ``own`` is True if this attempt at the rows has just pinned them.
    """

    token: str
    label: str
    at: str
    questions: tuple[Question, ...]
    answers: KeyedRows
    marks: Mask
    whole: bool
    own: bool = False

    @property
    def left(self) -> Mask:
        """The questions without a pinned answer."""
        unanswered: Mask = self.answers.count == ABSENT
        return unanswered


_remembered = RememberedPins()
"""The pins that this worker has read or written."""


def task_pins(place: PinPlace) -> TaskPins:
    """Return the pins at ``place`` for the Spark task that runs here, and its batch."""
    return TaskPins(batch_pins(place), task=this_task(place.batch_key)[1])


def batch_pins(place: PinPlace) -> BatchPins:
    """Return the pins at ``place`` for the batch of the Spark task that runs here."""
    return BatchPins(files_at(place.root), place, this_task(place.batch_key)[0], _remembered)


class TaskPins:
    """The pins of an operator for the task with the number ``task`` of a batch.

    ``label`` distinguishes requests that one batch makes at several times.
    """

    label = ""

    def __init__(self, pins: BatchPins, task: int) -> None:
        self._pins = pins
        self._task = task
        self._portions = 0

    def known(self, rows: bytes, questions: Sequence[Question], schema: pa.Schema) -> Pinned:
        """Return the pinned answers to the distinct ``questions`` of the next ``rows``; answers have ``schema``.

        Raise RunError if the batch now divides its rows otherwise than in its last run, and one question has different
        pinned answers.
        """
        label, at = self.label, f"{self._task}.{self._portions}"
        token = token_of(label, at, rows)
        self._portions += 1
        pin = self._pins.find(token)
        nothing_known = Pinned(
            token=token,
            label=label,
            at=at,
            questions=tuple(questions),
            answers=_absent(len(questions), schema),
            marks=np.zeros(len(questions), np.bool_),
            whole=pin is not None,
        )
        if pin is not None:
            return self._gathered([pin], nothing_known)
        heeded = self._pins.heeded()
        if token in heeded:
            return self._gathered([heeded[token]], nothing_known)
        # If rows were divided alike before, these rows got no answer, so no sink has written the batch yet.
        candidates = heeded.values()
        unseen = all(
            candidate.division == self._pins.place.division and (candidate.label, candidate.at) != (label, at)
            for candidate in candidates
        )
        return self._gathered(list(candidates), nothing_known, free=unseen)

    def completed(self, known: Pinned, answers: KeyedRows, marks: Mask | None = None) -> Pinned:
        """Pin the ``answers`` to the questions that were left; return all answers.

        If another attempt at these rows pinned its answers first, return these. ``marks`` has a flag for each question
        that was left, False if it is None.
        """
        if known.whole:
            return known
        together = _together(known, answers)
        all_marks = known.marks.copy()
        if marks is not None:
            all_marks[known.left] = marks
        pin = Pin(
            label=known.label,
            at=known.at,
            division=self._pins.place.division,
            questions=known.questions,
            count=together.count,
            marks=all_marks,
            rows=together.table.take(pa.array(ranges(together.start, together.count))).combine_chunks(),
        )
        kept = self._pins.publish(known.token, pin)
        if kept is pin:
            return replace(known, answers=together, marks=all_marks, whole=True, own=True)
        nothing = _absent(len(known.questions), together.table.schema)
        return self._gathered([kept], replace(known, answers=nothing, whole=True))

    def _gathered(self, pins: Sequence[Pin], known: Pinned, *, free: bool = False) -> Pinned:
        """Return ``known`` with the answers in ``pins``.

        Where two answers differ, raise RunError, or take neither of them if rows are ``free``.
        """
        if not pins:
            return known
        places = {question: place for place, question in enumerate(known.questions)}
        table, start, count = known.answers.table, known.answers.start.copy(), known.answers.count.copy()
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
        gathered = KeyedRows(table=pa.concat_tables(tables), start=start, count=count)
        return replace(known, answers=gathered, marks=marks)

    def _ambiguous(self) -> RunError:
        place = self._pins.place
        return RunError(
            f"operator {place.operator}: batch {self._pins.batch} runs again with its rows divided among tasks "
            "otherwise than before, and then one question had different answers in several tasks",
            hint="run it once with as many cores, and the parallelism, as the run before; or, if no sink has had the "
            f"batch yet, remove {place.root}/{place.folder}/{self._pins.batch}.*",
        )


def rows_id(table: pa.Table) -> bytes:
    """Return a digest of the rows of ``table`` that does not depend on their order."""
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
    """Return an answer in a comparable form: its rows have no order, and NaN equals NaN."""
    rows = pin.rows.slice(begin, int(pin.count[at])).to_pylist()
    return [str(pin.marks[at]), *sorted(map(repr, rows))]


def _together(known: Pinned, answers: KeyedRows) -> KeyedRows:
    """Return the answers that are ``known`` and the ``answers`` that were left, in the order of the questions."""
    start, count = known.answers.start.copy(), known.answers.count.copy()
    start[known.left] = answers.start + known.answers.table.num_rows
    count[known.left] = answers.count
    return KeyedRows(table=pa.concat_tables([known.answers.table, answers.table]), start=start, count=count)
