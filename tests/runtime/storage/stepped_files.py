"""Files in memory, of which each operation is a step that a schedule takes, lets crash or fails.

A task runs in a greenlet. Before each operation it stops and names it; whoever runs the task says how it continues.
"""

from __future__ import annotations

import errno
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, TypeVar

import pyarrow as pa
from greenlet import greenlet

from hintplan.runtime.storage.files import Files

Order = Literal["go on", "crash before", "crash after", "fail before", "fail after"]
T = TypeVar("T")


class Crash(BaseException):
    """The process of a task dies: nothing in it runs any more, as far as files can tell."""


class Task:
    """Something that works on files step by step; ``waiting`` is the operation that it stands before."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._greenlet = greenlet(self._run)
        self._work = work
        self.waiting = "start"
        self.result: Any = None
        self.error: BaseException | None = None

    def _run(self, order: Order) -> None:
        try:
            self.result = self._work()
        except (Crash, Exception) as error:  # noqa: BLE001 - the schedule judges it
            self.error = error

    def step(self, order: Order = "go on") -> bool:
        """Take the operation that it stands before, up to the next one; whether it has ended."""
        self.waiting = self._greenlet.switch(order)
        return self._greenlet.dead

    @property
    def ended(self) -> bool:
        return self._greenlet.dead


def _order(operation: str) -> Order:
    """What becomes of an operation; outside of tasks, it continues."""
    this = greenlet.getcurrent()
    return "go on" if this.parent is None else this.parent.switch(operation)


@dataclass(slots=True)
class Disk:
    """What is on disk: folders of files, and how often there was something changed in each."""

    folders: dict[str, dict[str, pa.Buffer]] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)
    frozen: bool = False
    _drafts: Iterator[int] = field(default_factory=count)

    def put(self, path: str, data: bytes) -> None:
        if not self.frozen:
            folder, _, name = path.rpartition("/")
            self.folders.setdefault(folder, {})[name] = pa.py_buffer(data)
            self.changes[folder] += 1

    def has(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self.folders.get(folder, ())

    def get(self, path: str) -> pa.Buffer:
        folder, _, name = path.rpartition("/")
        try:
            return self.folders[folder][name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None

    def drop(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        if not self.frozen:
            self.folders.get(folder, {}).pop(name, None)
            self.changes[folder] += 1

    def draft_of(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return f"{folder}/.{name}.{next(self._drafts):x}.tmp"


@dataclass(frozen=True, slots=True)
class SteppedFiles:
    """The protocol ``Files`` on a :class:`Disk`. With ``links``, a name is given as a file system with links does."""

    disk: Disk
    links: bool = True
    root: str = "mem"

    def names(self, folder: str) -> list[str]:
        return _step(f"list {folder}", lambda: list(self.disk.folders.get(folder, ())))

    def read(self, path: str) -> pa.Buffer:
        return _step(f"read {path}", lambda: self.disk.get(path))

    @contextmanager
    def writing(self, path: str) -> Iterator[io.BytesIO]:
        with self._drafted(path) as draft:
            out = io.BytesIO()
            yield out
            _step(f"fill {draft}", lambda: self._filled(draft, out.getvalue()))
            self._named(draft, path)

    def publish(self, path: str, data: bytes) -> bool:
        with self._drafted(path) as draft:
            _step(f"fill {draft}", lambda: self._filled(draft, data))
            return self._named(draft, path)

    def mark(self, path: str) -> None:
        _step(f"mark {path}", lambda: self.disk.put(path, b""))

    def remove(self, path: str) -> None:
        _step(f"remove {path}", lambda: self.disk.drop(path))

    def take(self, path: str, source: Files, *, link: bool) -> bool:
        if not link or not isinstance(source, SteppedFiles):
            return False
        _step(f"link {path}", lambda: self.disk.put(path, source.disk.get(path)))
        return True

    def refresh(self, folder: str) -> None:
        pass

    def settle(self, path: str) -> None:
        _step(f"settle {path}", lambda: None)

    def distrust(self, path: str) -> bool:
        return False

    @contextmanager
    def _drafted(self, path: str) -> Iterator[str]:
        draft = self.disk.draft_of(path)
        _step(f"create {draft}", lambda: self.disk.put(draft, b""))
        try:
            yield draft
        except Crash:
            raise
        except BaseException:
            self.disk.drop(draft)
            raise
        self.disk.drop(draft)

    def _filled(self, draft: str, data: bytes) -> None:
        if self.disk.has(draft):  # else what is written goes to a file that was removed
            self.disk.put(draft, data)

    def _named(self, draft: str, path: str) -> bool:
        if self.links:
            return _step(f"link {path}", lambda: self._linked(draft, path))
        if _step(f"look for {path}", lambda: self.disk.has(path)):
            return False
        _step(f"rename to {path}", lambda: self._renamed(draft, path))
        return True

    def _linked(self, draft: str, path: str) -> bool:
        data = self.disk.get(draft)
        if self.disk.has(path):
            return False
        self.disk.put(path, data)
        return True

    def _renamed(self, draft: str, path: str) -> None:
        self.disk.put(path, self.disk.get(draft))
        self.disk.drop(draft)


def _step(operation: str, effect: Callable[[], T]) -> T:
    order = _order(operation)
    if order == "crash before":
        raise Crash
    if order == "fail before":
        raise OSError(errno.EIO, "input/output error", operation)
    result = effect()
    if order == "crash after":
        raise Crash
    if order == "fail after":
        raise OSError(errno.EIO, "input/output error", operation)
    return result
