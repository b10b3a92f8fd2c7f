"""Who runs on a checkpoint: a process by host, number and birth, and whether it still lives.

The number of a process that has ended is given to another one sooner or later, hence its birth. Knows no locks.

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
    """Among which processes its number counts: containers with one name on one machine have numbers of their own."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def ourselves(jvm: int | None) -> LockOwner:
    """This process, with the JVM of that number."""
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
    """``owner``, as :func:`lock_owner_of` reads it."""
    return json.dumps(asdict(owner))


def lock_owner_of(text: str) -> LockOwner | None:
    """Who ``text`` names; None if nobody, or if it was cut off by a full disk or a crash."""
    try:
        return LockOwner(**json.loads(text))
    except (ValueError, TypeError):
        return None


def is_here(owner: LockOwner) -> bool:
    """Whether the process runs, or ran, where its number can be looked up: on this machine, and in this container."""
    return owner.host == socket.gethostname() and owner.processes in (None, _processes())


def is_us(owner: LockOwner) -> bool:
    """Whether it is this process."""
    return is_here(owner) and owner.pid == os.getpid() and owner.birth == birth_of(os.getpid())


def lives(pid: int, birth: str | None) -> bool:
    """Whether there is a process of this machine with that number, and with that birth if it is known."""
    found = birth_of(pid)
    return found is not None and birth in (None, found)


def birth_of(pid: int) -> str | None:
    """When the process with the number ``pid`` was started, in words that no other process has; None if there is none.

    A process that has ended and that nobody has asked for its exit code has ended.
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
    """The machine, since it was started, and the container; None where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{os.readlink('/proc/self/ns/pid')} after boot {boot}"
    except OSError:
        return None
