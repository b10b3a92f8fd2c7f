"""Allows one run per checkpoint at a time, and decides when another run may follow a run that crashed.

On a disk of this machine, a run holds a lock (:mod:`hintplan.runtime.checkpoint.local_lock`), which ends with its
process. On shared file systems and behind URLs, it holds a lease (:mod:`hintplan.runtime.checkpoint.lease`), which
another run may take after it has expired. Spark Connect needs no lock, because its server refuses to run a query twice
(:mod:`hintplan.runtime.run.execute`). This module does not know plans.

    lock = acquire(spark, "/data/checkpoints/revenue")
    ...
    lock.release()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hintplan.plans.text.terminal import print_message
from hintplan.runtime.checkpoint.files import CheckpointFiles, local_directory
from hintplan.runtime.checkpoint.lease import (
    DEFAULT_SECONDS,
    LEASES,
    WAITS,
    LeaseStore,
    Seen,
    Waiting,
    held_error,
    look,
    record_of,
    run_out,
)
from hintplan.runtime.checkpoint.lease_acquisition import NOTHING_HELD, hold_lease, seen_in
from hintplan.runtime.checkpoint.living_run import unreachable
from hintplan.runtime.checkpoint.local_lock import is_locked, lock_local, refuse_locked
from hintplan.runtime.checkpoint.process_locks import RunLock, forget_ended
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.storage.mounts import is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hintplan.runtime.storage.remote_files import RemoteFiles


TELLS = Waiting(tell=lambda waited: print_message(waited.text))
"""Prints a message to stderr when it starts to wait for another run."""


def refuse_held(checkpoint: str, *, take_over: bool = False, waiting: Waiting = WAITS) -> None:
    """Raise RunError if another run is known to hold a local ``checkpoint``, before Spark starts.

    Wait for the remains of a killed run, and as long as ``waiting`` allows. Remote file systems are not checked.
    """
    if "://" in checkpoint:
        return
    directory = Path(checkpoint.removeprefix("file:"))
    if is_shared(directory):
        from hintplan.runtime.checkpoint.lease_stores import directory_store

        seen = seen_in(checkpoint, directory_store(directory))
        if seen is None or seen.is_free or waiting.longest:
            return
        if seen.lives_here or (waiting.longest == 0 and not take_over):
            raise held_error(checkpoint, seen, lives_on=seen.lives_here)
        return
    refuse_locked(checkpoint, directory, waiting)


def is_held(directory: Path) -> bool:
    """Return whether a run is active in the checkpoint at ``directory``, as seen from this machine."""
    if is_shared(directory):
        from hintplan.runtime.checkpoint.lease_stores import directory_store

        try:
            seen = look(directory_store(directory, fresh=False))
        except OSError:
            return False
        return seen is not None and not seen.is_free
    return is_locked(directory)


def is_held_in(files: CheckpointFiles) -> bool:
    """Return whether a run holds a checkpoint behind a URL, or has ended without releasing it.

    ``files`` are the files of the checkpoint.
    """
    newest = max(files.numbers(LEASES), default=None)
    if newest is None:
        return False
    path = f"{LEASES}/{newest}"
    record = record_of(files.read([path]).get(path, b""))
    return record is None or not record.released


def await_free(spark: SparkSession, checkpoint: str, waiting: Waiting, *, take_over: bool = False) -> Seen | None:
    """Wait until no other run holds ``checkpoint``; RunError if the wait is over or pointless.

    The result is for :func:`acquire`. The checkpoint is not held yet, so that a run can refuse it without changing it.
    """
    store = _store(spark, checkpoint)
    if store is None:
        refuse_held(checkpoint, take_over=take_over, waiting=waiting)
        return NOTHING_HELD
    forget_ended(_name(spark, checkpoint))
    try:
        return run_out(store, checkpoint, waiting, take_over=take_over)
    except OSError as error:
        raise unreachable(checkpoint, error) from error


def acquire(
    spark: SparkSession,
    checkpoint: str,
    *,
    take_over: bool = False,
    seconds: float = DEFAULT_SECONDS,
    seen: Seen | None = NOTHING_HELD,
    waiting: Waiting = WAITS,
) -> RunLock:
    """Lock ``checkpoint`` for a run of ``spark``; RunError with the holder if another run holds it.

    Not for Spark Connect. A lease lasts ``seconds``, and follows the lease that :func:`await_free` has ``seen``. With
    ``take_over``, the run does not wait for an owner on another machine, which cannot be checked.
    """
    jvm = jvm_of(spark)
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    store = _store(spark, checkpoint)
    if store is not None:
        return hold_lease(
            store, checkpoint, _name(spark, checkpoint), seconds, waiting, jvm=process, take_over=take_over, seen=seen
        )
    directory = local_directory(spark, checkpoint)
    assert directory is not None
    return lock_local(checkpoint, directory, jvm=process, waiting=waiting)


def lock_directory(checkpoint: str, directory: Path) -> RunLock:
    """Lock the directory of a checkpoint without Spark; RunError as :func:`acquire`."""
    if not is_shared(directory):
        return lock_local(checkpoint, directory)
    from hintplan.runtime.checkpoint.lease_stores import directory_store

    name = str(directory.absolute())
    forget_ended(name)
    return hold_lease(directory_store(directory), checkpoint, name, DEFAULT_SECONDS, TELLS)


def lock_stored(checkpoint: str, files: RemoteFiles) -> RunLock:
    """Lock a checkpoint behind a URL, whose files are ``files``, without Spark; RunError as :func:`acquire`."""
    from hintplan.runtime.checkpoint.lease_stores import arrow_store

    forget_ended(files.root)
    return hold_lease(arrow_store(files), checkpoint, files.root, DEFAULT_SECONDS, TELLS)


def _store(spark: SparkSession, checkpoint: str) -> LeaseStore | None:
    """Return the store of the lease of a checkpoint, or None on a disk of this machine, where a lock is reliable."""
    from hintplan.runtime.checkpoint.lease_stores import directory_store, hadoop_store

    directory = local_directory(spark, checkpoint)
    if directory is None:
        return hadoop_store(spark, checkpoint)
    return directory_store(directory) if is_shared(directory) else None


def _name(spark: SparkSession, checkpoint: str) -> str:
    directory = local_directory(spark, checkpoint)
    return checkpoint.rstrip("/") if directory is None else str(directory.absolute())
