"""Lists a directory without Spark: in this process, or in a task that reaches the directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

NAMES = pa.schema([("name", pa.string())])


def names_in(directory: str) -> tuple[str, ...]:
    """Return the names of the entries of ``directory``, a path or a URL; none if it does not exist."""
    if "://" in directory and not directory.startswith("file://"):
        from hintplan.runtime.storage.remote_files import remote_files

        root, _, folder = directory.rpartition("/")
        return tuple(remote_files(root).names(folder))
    with suppress(FileNotFoundError):
        return tuple(os.listdir(directory.removeprefix("file://").removeprefix("file:")))
    return ()


def names_by_task(batches: Iterable[pa.RecordBatch], *, directory: str) -> Iterator[pa.RecordBatch]:
    """Yield the same names as rows of ``NAMES``, in the task that has an input row."""
    if any(batch.num_rows for batch in list(batches)):
        yield pa.record_batch([pa.array(names_in(directory), pa.string())], schema=NAMES)
