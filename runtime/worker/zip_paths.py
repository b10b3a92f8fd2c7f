"""Keeps a worker from reading the directories of zip files anew for every task.

PySpark forgets what Python knows of its import path before each task, since files may have been added; Python then
reads the directory of every zip file on it, PySpark's own with thousands of names among them. That takes a task 20 ms
of processor time, and most have nothing to import. A finder that is gone is made anew when something is imported, and
knows the directory from before; whether modules were added to a file that a worker has already read, it does not ask.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_finders() -> None:
    """Drop the finders of zip files, so that there is nothing to read before the next task; for each task to call."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
