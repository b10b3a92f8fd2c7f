"""One run per checkpoint at a time: who holds it, and when a run that ended badly may be followed by another.

On a disk of this machine a run holds a lock (:mod:`hintplan.runtime.checkpoint.local_lock`), which ends with its
process. Where other machines see the checkpoint, and behind URLs, it holds a lease
(:mod:`hintplan.runtime.checkpoint.lease`), which another run may take once it has run out. Spark Connect runs its
queries on a server that refuses a second one itself, so there is no lock (:mod:`hintplan.runtime.run.execute`). Knows
no plans.

    lock = acquire(spark, "/data/checkpoints/revenue")
    ...
    lock.release()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hintplan.plans.text.terminal import say
from hintplan.runtime.checkpoint.files import CheckpointFiles, local_directory
from hintplan.runtime.checkpoint.held_checkpoint import RunLock, forget_ended
from hintplan.runtime.checkpoint.held_lease import NOTHING_HELD, hold_lease, seen_in
from hintplan.runtime.checkpoint.lease import (
    DEFAULT_SECONDS,
    LEASES,
    WAITS,
    LeaseStore,
    Seen,
    Waiting,
    held,
    look,
    record_of,
    run_out,
)
from hintplan.runtime.checkpoint.living_run import unreachable
from hintplan.runtime.checkpoint.local_lock import is_locked, lock_local, refuse_locked
from hintplan.runtime.storage.mounts import is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hintplan.runtime.storage.remote_files import RemoteFiles


TELLS = Waiting(tell=lambda waited: say(waited.text))
"""Says on stderr whom it waits for."""


def refuse_held(checkpoint: str, *, take_over: bool = False, waiting: Waiting = WAITS) -> None:
    """RunError if a local ``checkpoint`` is known to be held, without Spark, so that nobody waits for its start.

    Waits for the end of what is left of a killed run, and as ``waiting`` says. Says nothing of other file systems.
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
            raise held(checkpoint, seen, lives_on=seen.lives_here)
        return
    refuse_locked(checkpoint, directory, waiting)


def is_held(directory: Path) -> bool:
    """Whether a run goes on in the checkpoint at ``directory``, as far as this machine knows."""
    if is_shared(directory):
        from hintplan.runtime.checkpoint.lease_stores import directory_store

        try:
            seen = look(directory_store(directory, fresh=False))
        except OSError:
            return False
        return seen is not None and not seen.is_free
    return is_locked(directory)


def is_held_in(files: CheckpointFiles) -> bool:
    """Whether a run goes on in a checkpoint behind a URL, or has ended without giving it back; ``files`` are there."""
    newest = max(files.numbers(LEASES), default=None)
    if newest is None:
        return False
    path = f"{LEASES}/{newest}"
    record = record_of(files.read([path]).get(path, b""))
    return record is None or not record.released


def await_free(spark: SparkSession, checkpoint: str, waiting: Waiting, *, take_over: bool = False) -> Seen | None:
    """Wait until no other run holds ``checkpoint``, for :func:`acquire`; RunError if it is not to be waited for.

    It is not held after that, so that what is refused of it can be, without having been touched.
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
    """Hold ``checkpoint``, for a run of ``spark`` that is not on Spark Connect, or raise RunError with who holds it.

    Where it is held by a lease, that is of so many ``seconds``, and goes on after what was ``seen`` by
    :func:`await_free`. ``take_over`` goes ahead if the owner cannot be asked, because it is on another machine.
    """
    jvm: Any = spark.sparkContext._jvm
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
    """Hold the directory of a checkpoint without Spark; RunError as :func:`acquire`."""
    if not is_shared(directory):
        return lock_local(checkpoint, directory)
    from hintplan.runtime.checkpoint.lease_stores import directory_store

    name = str(directory.absolute())
    forget_ended(name)
    return hold_lease(directory_store(directory), checkpoint, name, DEFAULT_SECONDS, TELLS)


def lock_stored(checkpoint: str, files: RemoteFiles) -> RunLock:
    """Hold a checkpoint behind a URL, whose files are ``files``, without Spark; RunError as :func:`acquire`."""
    from hintplan.runtime.checkpoint.lease_stores import arrow_store

    forget_ended(files.root)
    return hold_lease(arrow_store(files), checkpoint, files.root, DEFAULT_SECONDS, TELLS)


def _store(spark: SparkSession, checkpoint: str) -> LeaseStore | None:
    """Where the lease of a checkpoint is; None if it is on a disk of this machine, where a lock is certain."""
    from hintplan.runtime.checkpoint.lease_stores import directory_store, hadoop_store

    directory = local_directory(spark, checkpoint)
    if directory is None:
        return hadoop_store(spark, checkpoint)
    return directory_store(directory) if is_shared(directory) else None


def _name(spark: SparkSession, checkpoint: str) -> str:
    directory = local_directory(spark, checkpoint)
    return checkpoint.rstrip("/") if directory is None else str(directory.absolute())
