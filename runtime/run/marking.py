"""Writes the marks of a query's sinks (:mod:`hintplan.runtime.checkpoint.sink_marks`) to its checkpoint, on the driver.

marks = sink_marks(spark, "/data/checkpoints/revenue", "sink_r")
marks.begin(files, "sink_r", 6)
marks.of("sink_r", table)(7, {"batch": 7})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles, local_directory
from hintplan.runtime.checkpoint.lease_stores import hadoop_store
from hintplan.runtime.checkpoint.sink_marks import MARKS, SinkMark, mark_damage, marks_line, parsed_marks, place_digest
from hintplan.runtime.connectors.connector import Mark
from hintplan.runtime.storage.local_files import LocalFiles


class MarkStore(Protocol):
    """The mark files of a query, by batch number; OSError if the file system refuses an operation."""

    def write(self, batch: int, data: bytes) -> None: ...

    def remove(self, batch: int) -> None: ...


@dataclass(slots=True, kw_only=True)
class SinkMarks:
    """Writes the marks of a query. It keeps the last two files, because the batch of the newest may not have ended."""

    store: MarkStore
    _known: dict[str, SinkMark] = field(default_factory=dict)
    _batches: list[int] = field(default_factory=list)

    def begin(self, files: CheckpointFiles, query: str, began: int) -> None:
        """Load the marks of the checkpoint's ``files`` up to batch ``began``, the last one that began."""
        for number in files.numbers(f"{query}/{MARKS}"):
            if number > began:  # left by logs that no longer exist
                self.store.remove(number)
            else:
                self._batches.append(number)
        for path in (f"{query}/{MARKS}/{number}" for number in reversed(self._batches)):
            content = files.read([path])[path]
            if mark_damage(path, content) is None:  # a killed run may leave an incomplete file
                self._known = parsed_marks(content)
                return

    def of(self, sink: str, table: Table) -> Mark:
        """Return a function that records the version of ``table`` after a batch, for the writer of ``sink``."""
        return partial(self._note, sink, place_digest(table))

    def _note(self, sink: str, place: str, batch: int, had: Mapping[str, Any]) -> None:
        self._known[sink] = SinkMark(batch=batch, place=place, had=had)
        try:
            self.store.write(batch, marks_line(batch, self._known))
            earlier = [number for number in self._batches if number < batch]
            for number in earlier[:-1]:
                self.store.remove(number)
        except OSError as error:
            raise RunError(
                f"the marks of {sink} cannot be written to the checkpoint: {error.strerror or error}",
                hint="the user of the run needs the right to write there, and the disk must have room",
            ) from error
        self._batches = [*earlier[-1:], batch]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalStore:
    files: LocalFiles

    def write(self, batch: int, data: bytes) -> None:
        path = f"{MARKS}/{batch}"
        if not self.files.publish(path, data):  # the batch is repeated, or an earlier sink has written the file
            self.files.remove(path)
            self.files.publish(path, data)

    def remove(self, batch: int) -> None:
        self.files.remove(f"{MARKS}/{batch}")


def sink_marks(spark: SparkSession, checkpoint: str, query: str) -> SinkMarks:
    """Return the marks of ``query`` in ``checkpoint``; not for Spark Connect."""
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        return SinkMarks(store=_LocalStore(files=LocalFiles(str(directory / query))))
    return SinkMarks(store=hadoop_store(spark, f"{checkpoint.rstrip('/')}/{query}", MARKS))
