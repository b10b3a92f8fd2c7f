"""One run per checkpoint at a time: who holds it, and when a run that ended badly may be followed by another.

A run holds ``flock`` on ``<checkpoint>/hintplan.lock``, which ends with its process however that ends; the file says
who it is. On another file system the file alone speaks, created only if it is not there. Spark Connect runs its queries
on a server that refuses a second one itself, so there is no lock (:mod:`runtime.run.execute`). Knows no plans.

    lock = acquire(spark, "/data/checkpoints/revenue")
    ...
    lock.release()
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plans.errors import RunError
from runtime.checkpoint.files import local_directory
from runtime.checkpoint.lock_owner import LockOwner, is_here, is_us, lives, lock_owner_of, ourselves
from runtime.storage.mounts import is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from runtime.storage.files import Files

LOCK = "hintplan.lock"
_JVM_SECONDS = 60.0
"""How long the JVM of a killed run may take to notice; it ends itself when its Python process is gone."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


@dataclass(slots=True, kw_only=True)
class RunLock:
    """A held checkpoint. ``in_use`` says whether the run still goes on, for runs whose end nobody waits for."""

    name: str
    free: Callable[[], None]
    in_use: Callable[[], bool] = lambda: True

    def release(self) -> None:
        """Let the next run begin; again is fine."""
        if _held.get(self.name) is self:
            del _held[self.name]
            self.free()


_held: dict[str, RunLock] = {}
"""What this process holds, by the name of the lock file."""


def refuse_held(checkpoint: str, *, take_over: bool = False) -> None:
    """RunError if a local ``checkpoint`` is known to be held, without Spark, so that nobody waits for its start.

    Waits for the end of what is left of a killed run. Says nothing of other file systems.
    """
    if "://" in checkpoint:
        return
    path = Path(checkpoint.removeprefix("file:")) / LOCK
    owner = lock_owner_of(_text(path))
    if owner is None or is_us(owner):
        return
    if is_here(owner):
        _refuse_living(checkpoint, owner, path)
    elif not take_over and is_shared(path):
        raise _elsewhere(checkpoint, owner, str(path))


def is_held(directory: Path) -> bool:
    """Whether a run goes on in the checkpoint at ``directory``, as far as this machine knows."""
    owner = lock_owner_of(_text(directory / LOCK))
    return owner is not None and (not is_here(owner) or lives(owner.pid, owner.birth))


def acquire(spark: SparkSession, checkpoint: str, *, take_over: bool = False) -> RunLock:
    """Hold ``checkpoint``, for a run of ``spark`` that is not on Spark Connect, or raise RunError with who holds it.

    ``take_over`` goes ahead if the owner cannot be asked, because it is on another machine.
    """
    jvm: Any = spark.sparkContext._jvm
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        return lock_local(checkpoint, directory, jvm=process, take_over=take_over)
    path = jvm.org.apache.hadoop.fs.Path(checkpoint)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return _lock_through(jvm, system, checkpoint, jvm.org.apache.hadoop.fs.Path(path, LOCK), process, take_over)


def lock_local(checkpoint: str, directory: Path, *, jvm: int | None = None, take_over: bool = False) -> RunLock:
    """Hold the directory of a checkpoint on a file system of this machine; RunError as :func:`acquire`."""
    path = directory / LOCK
    name = str(path.absolute())
    _forget_ended(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(
            f"the checkpoint {checkpoint} cannot be written: {error.strerror} ({error.filename})",
            hint="the user of the run needs the right to write there, and the disk must have room",
        ) from error
    try:
        certain = _flock(file)
        owner = lock_owner_of(_text(path))
        if certain is False:
            raise _living(checkpoint, owner)
        if owner is not None and is_here(owner) and not is_us(owner):
            _refuse_living(checkpoint, owner, path, jvm, certain=certain is True)
        elif owner is not None and not is_here(owner) and not take_over and is_shared(path):
            raise _elsewhere(checkpoint, owner, str(path))
        os.ftruncate(file, 0)
        os.pwrite(file, ourselves(jvm).encode(), 0)
    except OSError as error:
        os.close(file)
        raise RunError(
            f"the checkpoint {checkpoint} cannot be written: {error.strerror} ({path})", hint="make room on the disk"
        ) from error
    except RunError:
        os.close(file)
        raise
    lock = RunLock(name=name, free=partial(_free_local, file))
    _held[name] = lock
    return lock


def lock_stored(checkpoint: str, files: Files) -> RunLock:
    """Hold a checkpoint behind a URL, whose files are ``files``, without Spark; RunError as :func:`acquire`."""
    name = f"{files.root}/{LOCK}"
    for attempt in range(2):
        if files.publish(LOCK, ourselves(None).encode()):
            break
        files.distrust(LOCK)  # this name has another content each time
        try:
            owner = lock_owner_of(bytes(files.read(LOCK)).decode())
        except FileNotFoundError:
            continue
        if owner is None or not is_here(owner):
            raise _elsewhere(checkpoint, owner, name)
        if attempt or is_us(owner):
            raise _living(checkpoint, owner)
        _refuse_living(checkpoint, owner, None)
        files.remove(LOCK)
    else:
        raise _living(checkpoint, None)
    lock = RunLock(name=name, free=partial(files.remove, LOCK))
    _held[name] = lock
    return lock


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


def _lock_through(jvm: Any, system: Any, checkpoint: str, path: Any, process: int, take_over: bool) -> RunLock:
    """Hold a checkpoint on a file system that only Hadoop can write: by a file that is there as long as the run is."""
    from py4j.protocol import Py4JJavaError

    name = str(path.toString())
    _forget_ended(name)
    try:
        for attempt in range(2):
            try:
                out = system.create(path, False)
                break
            except Py4JJavaError:
                if attempt or not system.exists(path):
                    raise
            source = system.open(path)
            try:
                text = bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(source)).decode()
            finally:
                source.close()
            owner = lock_owner_of(text)
            if owner is not None and is_here(owner):
                if is_us(owner):
                    raise _living(checkpoint, owner)
                _refuse_living(checkpoint, owner, None, process)
            elif not take_over:
                raise _elsewhere(checkpoint, owner, name)
            system.delete(path, False)
        try:
            out.write(bytearray(ourselves(process).encode()))
        finally:
            out.close()
    except Py4JJavaError as error:
        said = str(error.java_exception.toString())
        raise RunError(f"the checkpoint {checkpoint} cannot be locked: {said}", hint="is it writable?") from error
    lock = RunLock(name=name, free=lambda: system.delete(path, False))
    _held[name] = lock
    return lock


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
        hint="a checkpoint has one run at a time: stop the other one"
        + ("" if owner is None or is_us(owner) else f" (kill {owner.pid} ends it after its batch)")
        + ", or give this run a checkpoint of its own",
    )


def _elsewhere(checkpoint: str, owner: LockOwner | None, path: str) -> RunError:
    who = "a run that did not say who it is" if owner is None else str(owner)
    return RunError(
        f"checkpoint {checkpoint} was taken by {who}, and nothing says that it has ended",
        hint="stop it if it runs. If it has surely ended, hintplan run --take-over goes on, or remove the file "
        f"{path}; if it has not, Spark fails the run that comes second to commit a batch",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
