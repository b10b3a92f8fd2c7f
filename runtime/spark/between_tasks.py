"""Spares a worker that Spark uses again what PySpark would have it do between any two tasks.

PySpark forgets what Python knows of its import path before each task, since files may have been added; Python then
reads the directory of every zip file on it, PySpark's own with thousands of names among them. That takes a task 20 ms
of processor time, and most have nothing to import. A finder that is gone is made anew when something is imported, and
knows the directory from before; whether modules were added to a file that a worker has already read, it does not ask.

After each task it has Python look for garbage, in all that modules have brought along, too: 50 ms of processor time,
for which the next task waits. What a worker has loaded stays loaded, so it need not be looked at again.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from zipimport import zipimporter

import pyarrow as pa

_loaded = 0
"""How many modules this process had when what they brought along was last set aside."""


def between_tasks() -> None:
    """Leave nothing to read before the next task, and little to look at after this one; for each task to call."""
    global _loaded
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.collect()  # what is garbage now would stay for good
        gc.freeze()


def as_task(run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Any:
    """``run`` as what a task is to call, under the same name."""
    task = partial(_run, run)
    task.__name__ = getattr(run, "__name__", type(run).__name__)  # type: ignore[attr-defined]
    return task


def _run(
    run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    between_tasks()
    return run(batches)
