"""Identifies the process that runs on a checkpoint by host, process id and start time, and checks if it is alive.

The start time is needed because the system reuses the id of a process that has ended. This module does not know locks.

    lock_owner_of(path.read_text())    # LockOwner(host="etl-1", pid=4711, since="2026-11-20 10:32:02 UTC", ...)
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOwner:
    """A process that runs on a checkpoint, and the JVM that it has started."""

    host: str
    pid: int
    since: str
    birth: str | None = None
    jvm: int | None = None
    jvm_birth: str | None = None
    processes: str | None = None
    """The namespace of the process id: containers that share a host name on one machine have separate ids."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def ourselves(jvm: int | None) -> LockOwner:
    """Return the identity of this process, whose JVM has the process id ``jvm``."""
    pid = os.getpid()
    return LockOwner(
        host=socket.gethostname(),
        pid=pid,
        since=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        birth=birth_of(pid),
        jvm=jvm,
        jvm_birth=None if jvm is None else birth_of(jvm),
        processes=_processes(),
    )


def lock_text(owner: LockOwner) -> str:
    """Return ``owner`` as text for :func:`lock_owner_of`."""
    return json.dumps(asdict(owner))


def lock_owner_of(text: str) -> LockOwner | None:
    """Parse the owner in ``text``; None if it has none, or was truncated by a full disk or a crash."""
    try:
        return LockOwner(**json.loads(text))
    except (ValueError, TypeError):
        return None


def is_here(owner: LockOwner) -> bool:
    """Return whether the owner's process id can be looked up here: it ran on this machine and in this container."""
    return owner.host == socket.gethostname() and owner.processes in (None, _processes())


def is_us(owner: LockOwner) -> bool:
    """Return whether the owner is this process."""
    return is_here(owner) and owner.pid == os.getpid() and owner.birth == birth_of(os.getpid())


def lives(pid: int, birth: str | None) -> bool:
    """Return whether this machine has a process with this id, and with this start time if that is known."""
    current = birth_of(pid)
    return current is not None and birth in (None, current)


def birth_of(pid: int) -> str | None:
    """Return the start time of process ``pid`` as a unique text, or None if there is no such process.

    A zombie, whose parent has not collected its exit code, counts as ended.
    """
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return None if state in "ZX" else f"{fields[18]} after boot {boot}"


def _processes() -> str | None:
    """Return an id of the machine since its boot, and of the container; None if the system does not provide it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{os.readlink('/proc/self/ns/pid')} after boot {boot}"
    except OSError:
        return None
