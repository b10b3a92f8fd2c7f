"""One run per checkpoint at a time: who holds it, and when a run that ended badly may be followed by another.

On a disk of this machine a run holds ``flock`` on ``<checkpoint>/hintplan.lock``, which ends with its process however
that ends; the file says who it is. Where other machines see the checkpoint, and behind URLs, it holds a lease
(:mod:`runtime.checkpoint.lease`), which another run may take once it has run out. Spark Connect runs its queries on a
server that refuses a second one itself, so there is no lock (:mod:`runtime.run.execute`). Knows no plans.

    lock = acquire(spark, "/data/checkpoints/revenue")
    ...
    lock.release()
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plans.errors import RunError
from plans.text.terminal import say
from runtime.checkpoint.files import CheckpointFiles, local_directory
from runtime.checkpoint.heartbeat import Heartbeat
from runtime.checkpoint.lease import (
    DEFAULT_SECONDS,
    LEASES,
    ONE_AT_A_TIME,
    WAITS,
    LeaseStore,
    Seen,
    Waited,
    Waiting,
    claim,
    held,
    look,
    record_of,
    run_out,
)
from runtime.checkpoint.lock_owner import LockOwner, is_here, is_us, lives, lock_owner_of, lock_text, ourselves
from runtime.storage.mounts import is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from runtime.storage.remote_files import RemoteFiles

LOCK = "hintplan.lock"
_POLL_SECONDS = 0.2
_JVM_SECONDS = 60.0
"""How long the JVM of a killed run may take to notice; it ends itself when its Python process is gone."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


@dataclass(slots=True, kw_only=True)
class RunLock:
    """A held checkpoint. ``in_use`` says whether the run still goes on, for runs whose end nobody waits for.

    ``beat`` renews its lease, where it has one.
    """

    name: str
    free: Callable[[], None]
    in_use: Callable[[], bool] = lambda: True
    beat: Heartbeat | None = None

    def stops(self, spark: SparkSession, queries: Iterable[Any]) -> None:
        """See that ``queries`` stop when the checkpoint is not held any more."""
        if self.beat is not None:
            self.beat.stops(spark, queries)

    @property
    def in_force(self) -> bool:
        """Whether nobody else can hold the checkpoint."""
        return self.beat is None or self.beat.lease.in_force

    def require(self) -> None:
        """RunError if the checkpoint is not held any more."""
        if self.beat is not None and not self.beat.lease.in_force:
            raise self.beat.lease.lost()

    def release(self) -> None:
        """Let the next run begin; again is fine."""
        if _held.get(self.name) is self:
            del _held[self.name]
            self.free()


_held: dict[str, RunLock] = {}
"""What this process holds, by the name of the lock file."""

_NOTHING_HELD = Seen(0, b"", None)

_ATTEMPTS = 5
"""How often a lease is tried to be taken that nobody else takes: a file system may be slow for a while."""

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
        from runtime.checkpoint.lease_stores import directory_store

        seen = _seen(checkpoint, directory_store(directory))
        if seen is None or seen.is_free or waiting.longest:
            return
        if seen.lives_here or (waiting.longest == 0 and not take_over):
            raise held(checkpoint, seen, lives_on=seen.lives_here)
        return
    path = directory / LOCK
    turn = _Turn(checkpoint, waiting)
    while (owner := lock_owner_of(_text(path))) is not None and is_here(owner) and not is_us(owner):
        if not lives(owner.pid, owner.birth):
            _refuse_living(checkpoint, owner, path)
            return
        turn.wait(owner)


def is_held(directory: Path) -> bool:
    """Whether a run goes on in the checkpoint at ``directory``, as far as this machine knows."""
    if is_shared(directory):
        from runtime.checkpoint.lease_stores import directory_store

        try:
            seen = look(directory_store(directory, fresh=False))
        except OSError:
            return False
        return seen is not None and not seen.is_free
    owner = lock_owner_of(_text(directory / LOCK))
    return owner is not None and (not is_here(owner) or lives(owner.pid, owner.birth))


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
        return _NOTHING_HELD
    _forget_ended(_name(spark, checkpoint))
    try:
        return run_out(store, checkpoint, waiting, take_over=take_over)
    except OSError as error:
        raise _unreachable(checkpoint, error) from error


def acquire(
    spark: SparkSession,
    checkpoint: str,
    *,
    take_over: bool = False,
    seconds: float = DEFAULT_SECONDS,
    seen: Seen | None = _NOTHING_HELD,
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
        return _leased(
            store, checkpoint, _name(spark, checkpoint), seconds, waiting, jvm=process, take_over=take_over, seen=seen
        )
    directory = local_directory(spark, checkpoint)
    assert directory is not None
    return lock_local(checkpoint, directory, jvm=process, waiting=waiting)


def lock_directory(checkpoint: str, directory: Path) -> RunLock:
    """Hold the directory of a checkpoint without Spark; RunError as :func:`acquire`."""
    if not is_shared(directory):
        return lock_local(checkpoint, directory)
    from runtime.checkpoint.lease_stores import directory_store

    name = str(directory.absolute())
    _forget_ended(name)
    return _leased(directory_store(directory), checkpoint, name, DEFAULT_SECONDS, TELLS)


def lock_stored(checkpoint: str, files: RemoteFiles) -> RunLock:
    """Hold a checkpoint behind a URL, whose files are ``files``, without Spark; RunError as :func:`acquire`."""
    from runtime.checkpoint.lease_stores import arrow_store

    _forget_ended(files.root)
    return _leased(arrow_store(files), checkpoint, files.root, DEFAULT_SECONDS, TELLS)


def _leased(
    store: LeaseStore,
    checkpoint: str,
    name: str,
    seconds: float,
    waiting: Waiting,
    *,
    jvm: int | None = None,
    take_over: bool = False,
    seen: Seen | None = _NOTHING_HELD,
) -> RunLock:
    """Hold a checkpoint by a lease that is renewed from now on."""
    try:
        if seen is _NOTHING_HELD or seen != look(store):
            seen = run_out(store, checkpoint, waiting, take_over=take_over)
        lease = None
        for _ in range(_ATTEMPTS):
            if seen is not None and seen.ended_here and seen.record is not None:
                _refuse_living(checkpoint, seen.record.owner, None, jvm, certain=True)
            lease = claim(store, seen, ourselves(jvm), seconds, waiting, take_over=take_over)
            if lease is not None:
                break
            seen = look(store)
            if seen is not None and not seen.is_free:
                raise held(checkpoint, seen, lives_on=True)
        if lease is None:
            raise OSError(f"it took too long to take its lease, {_ATTEMPTS} times")
    except OSError as error:
        raise _unreachable(checkpoint, error) from error
    beat = Heartbeat(lease).start()
    lock = RunLock(name=name, free=beat.end, beat=beat)
    _held[name] = lock
    return lock


def _store(spark: SparkSession, checkpoint: str) -> LeaseStore | None:
    """Where the lease of a checkpoint is; None if it is on a disk of this machine, where a lock is certain."""
    from runtime.checkpoint.lease_stores import directory_store, hadoop_store

    directory = local_directory(spark, checkpoint)
    if directory is None:
        return hadoop_store(spark, checkpoint)
    return directory_store(directory) if is_shared(directory) else None


def _name(spark: SparkSession, checkpoint: str) -> str:
    directory = local_directory(spark, checkpoint)
    return checkpoint.rstrip("/") if directory is None else str(directory.absolute())


def _seen(checkpoint: str, store: LeaseStore) -> Seen | None:
    try:
        return look(store)
    except OSError as error:
        raise _unreachable(checkpoint, error) from error


def lock_local(checkpoint: str, directory: Path, *, jvm: int | None = None, waiting: Waiting = WAITS) -> RunLock:
    """Hold the directory of a checkpoint on a disk of this machine; RunError as :func:`acquire`."""
    path = directory / LOCK
    name = str(path.absolute())
    _forget_ended(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _unreachable(checkpoint, error) from error
    try:
        turn = _Turn(checkpoint, waiting)
        while (certain := _flock(file)) is False:
            turn.wait(lock_owner_of(_text(path)))
        owner = lock_owner_of(_text(path))
        if owner is not None and is_here(owner) and not is_us(owner):
            _refuse_living(checkpoint, owner, path, jvm, certain=certain is True)
        os.ftruncate(file, 0)
        os.pwrite(file, lock_text(ourselves(jvm)).encode(), 0)
    except OSError as error:
        os.close(file)
        raise RunError(
            f"the checkpoint {checkpoint} cannot be written: {error.strerror} ({path})", hint="make room on the disk"
        ) from error
    except BaseException:
        os.close(file)
        raise
    lock = RunLock(name=name, free=partial(_free_local, file))
    _held[name] = lock
    return lock


class _Turn:
    """Waits for its turn behind a run of this machine that lives."""

    def __init__(self, checkpoint: str, waiting: Waiting) -> None:
        self._checkpoint, self._waiting, self._since = checkpoint, waiting, waiting.clock()
        self._told = False

    def wait(self, owner: LockOwner | None) -> None:
        """Wait a moment, for ``owner``; RunError if that was long enough, which without a time it is at once."""
        longest = self._waiting.longest or 0.0
        if self._waiting.clock() - self._since >= longest or (owner is not None and is_us(owner)):
            raise _living(self._checkpoint, owner)
        if not self._told:
            who = "another run that is just starting" if owner is None else str(owner)
            text = f"checkpoint {self._checkpoint} is held by {who}: waiting until it ends"
            self._waiting.tell(Waited(text=text, owner=owner))
            self._told = True
        self._waiting.sleep(_POLL_SECONDS)


def _free_local(file: int) -> None:
    # The file stays: if it were removed, two runs could hold a file of that name each.
    os.ftruncate(file, 0)
    os.close(file)


def _flock(file: int) -> bool | None:
    """Whether the lock was free; None if the file system has none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _forget_ended(name: str) -> None:
    held = _held.get(name)
    if held is not None and not held.in_use():
        held.release()


def _refuse_living(
    checkpoint: str, owner: LockOwner, path: Path | None, jvm: int | None = None, *, certain: bool = False
) -> None:
    """RunError if the run of ``owner`` goes on on this machine; waits for the JVM of one whose process is gone.

    ``jvm`` is our own, in which Spark itself refuses a second run of a query. ``certain`` says that the process has
    given up its lock, so that only its JVM may be left.
    """
    if not certain and lives(owner.pid, owner.birth):
        raise _living(checkpoint, owner)
    deadline = time.monotonic() + _JVM_SECONDS
    while owner.jvm not in (None, jvm) and lives(owner.jvm, owner.jvm_birth):
        if path is not None and lock_owner_of(_text(path)) != owner:
            return  # given back, or taken by another run, which is the lock's to say
        if time.monotonic() >= deadline:
            raise RunError(
                f"checkpoint {checkpoint} is still in use by process {owner.jvm}, the JVM of a run that was killed "
                f"({owner})",
                hint=f"end it with: kill -9 {owner.jvm}",
            )
        time.sleep(0.1)


def _living(checkpoint: str, owner: LockOwner | None) -> RunError:
    who = "another run that is just starting" if owner is None else str(owner)
    if owner is not None and is_us(owner):
        who = f"this process, since {owner.since}"
    return RunError(
        f"checkpoint {checkpoint} is in use by {who}",
        hint=ONE_AT_A_TIME
        if owner is None or is_us(owner)
        else f"a checkpoint has one run at a time: stop the other one (kill {owner.pid} ends it after its batch), or "
        "give this run a checkpoint of its own",
    )


def _unreachable(checkpoint: str, error: OSError) -> RunError:
    """What is said if the lease of a checkpoint cannot be read or written."""
    said = error.strerror or str(error)
    file = f" ({error.filename})" if error.filename else ""
    return RunError(
        f"the checkpoint {checkpoint} cannot be written: {said}{file}",
        hint="the user of the run needs the right to write there, and the disk must have room",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
