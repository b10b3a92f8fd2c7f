"""The most memory that the JVMs and the Python workers below a process had, and what CPU time they have used.

with watched(child.pid) as peaks:
    child.wait()
print(peaks.jvm >> 20, peaks.worker >> 20)

Memory is looked at five times a second.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

__all__ = ["Peaks", "cpu_seconds", "watched"]

_SECONDS = 0.2


@dataclass(slots=True)
class Peaks:
    """Resident bytes: of all JVMs together, of the largest Python worker, and what of that one is not mapped files.

    Pages of mapped files are shared by the workers that map them, and the system takes them back when it needs them.
    """

    jvm: int = 0
    worker: int = 0
    worker_own: int = 0

    def look(self, root: psutil.Process) -> None:
        jvm = 0
        for process in root.children(recursive=True):
            try:
                with process.oneshot():
                    memory, name = process.memory_info(), process.name()
            except psutil.Error:
                continue
            if name.startswith("java"):
                jvm += memory.rss
            elif name.startswith("python"):
                self.worker = max(self.worker, memory.rss)
                # Elsewhere than on Linux nothing tells the mapped files apart.
                self.worker_own = max(self.worker_own, memory.rss - getattr(memory, "shared", 0))
        self.jvm = max(self.jvm, jvm)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and those below it, also of such that have ended and were waited for."""
    root = psutil.Process(pid)
    seconds = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            seconds += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return seconds


@contextmanager
def watched(pid: int) -> Iterator[Peaks]:
    """The peaks of the processes below ``pid``, growing until the block ends."""
    peaks, ended = Peaks(), threading.Event()

    def watch() -> None:
        root = psutil.Process(pid)
        while not ended.wait(_SECONDS):
            try:
                peaks.look(root)
            except psutil.NoSuchProcess:
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()
