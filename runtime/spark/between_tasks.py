"""Skips slow steps that PySpark performs between two tasks of a reused worker.

Before each task, PySpark invalidates Python's import caches, since files may have been added. Python then reads the
directory of each zip file on its path, including PySpark's own with thousands of names. This takes 20 ms of CPU time
per task, and most tasks import nothing. The solution is to remove the zip finders: Python creates a new finder at the
next import, with the cached directory. It does not detect modules that were added to a zip file that the worker has
already read.

After each task, PySpark collects garbage among all objects, including loaded modules. This takes 50 ms of CPU time, and
the next task waits for it. Loaded modules stay loaded, so they are excluded from the collection.

PySpark reuses a worker only if its task has read all of its input. A function that does not need its input, such as one
that only calls partitions, would cost a new worker for the next task.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from zipimport import zipimporter

import pyarrow as pa

MapBatches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function of a task, for ``mapInArrow``."""

_loaded = 0
"""The number of loaded modules when their objects were last excluded from garbage collection."""


def between_tasks() -> None:
    """Remove zip finders, and exclude loaded modules from garbage collection; call it at the start of each task."""
    global _loaded
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.collect()  # freezing would keep existing garbage forever
        gc.freeze()


def as_task(run: MapBatches) -> MapBatches:
    """Wrap ``run`` as the function of a task, under the same name."""
    task = partial(_run, run)
    task.__name__ = getattr(run, "__name__", type(run).__name__)  # type: ignore[attr-defined]
    return task


def _run(run: MapBatches, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    between_tasks()
    yield from run(batches)
    for _ in batches:
        pass
