"""Errors for a checkpoint that a run on this machine holds, and the wait for the JVM of a run that was killed."""

from __future__ import annotations

import time
from pathlib import Path

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.lease import ONE_AT_A_TIME
from hintplan.runtime.checkpoint.lock_owner import LockOwner, is_us, lives, lock_owner_of

_JVM_SECONDS = 60.0
"""The longest wait for the JVM of a killed run, which ends itself when its Python process is gone."""


def refuse_living(
    checkpoint: str, owner: LockOwner, path: Path | None, jvm: int | None = None, *, certain: bool = False
) -> None:
    """Raise RunError if the run of ``owner`` is active on this machine.

    If its Python process has ended, wait for its JVM. ``jvm`` is our own JVM, in which Spark itself refuses to run a
    query twice. With ``certain``, the process has released its lock, so that only its JVM may be left.
    """
    if not certain and lives(owner.pid, owner.birth):
        raise living(checkpoint, owner)
    deadline = time.monotonic() + _JVM_SECONDS
    while owner.jvm not in (None, jvm) and lives(owner.jvm, owner.jvm_birth):
        if path is not None and lock_owner_of(owner_text(path)) != owner:
            return  # released, or taken by another run, which the lock reports
        if time.monotonic() >= deadline:
            raise RunError(
                f"checkpoint {checkpoint} is still in use by process {owner.jvm}, the JVM of a run that was killed "
                f"({owner})",
                hint=f"end it with: kill -9 {owner.jvm}",
            )
        time.sleep(0.1)


def living(checkpoint: str, owner: LockOwner | None) -> RunError:
    """Return the error for a checkpoint that ``owner`` holds."""
    holder = "another run that is just starting" if owner is None else str(owner)
    if owner is not None and is_us(owner):
        holder = f"this process, since {owner.since}"
    return RunError(
        f"checkpoint {checkpoint} is in use by {holder}",
        hint=ONE_AT_A_TIME
        if owner is None or is_us(owner)
        else f"a checkpoint has one run at a time: stop the other one (kill {owner.pid} ends it after its batch), or "
        "give this run a checkpoint of its own",
    )


def unreachable(checkpoint: str, error: OSError) -> RunError:
    """Return the error for a checkpoint whose lease cannot be read or written."""
    text = error.strerror or str(error)
    file = f" ({error.filename})" if error.filename else ""
    return RunError(
        f"the checkpoint {checkpoint} cannot be written: {text}{file}",
        hint="the user of the run needs the right to write there, and the disk must have room",
    )


def owner_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
