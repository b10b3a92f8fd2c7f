"""The lock on a checkpoint on a disk of this machine: ``flock`` on a file that contains the holder.

The operating system releases it when the process ends, also after a crash.
"""

from __future__ import annotations

import errno
import fcntl
import os
from functools import partial
from pathlib import Path

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.lease import WAITS, Waited, Waiting
from hintplan.runtime.checkpoint.living_run import living, owner_text, refuse_living, unreachable
from hintplan.runtime.checkpoint.lock_owner import LockOwner, is_here, is_us, lives, lock_owner_of, lock_text, ourselves
from hintplan.runtime.checkpoint.process_locks import RunLock, forget_ended, hold

LOCK = "hintplan.lock"
_POLL_SECONDS = 0.2
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


def refuse_locked(checkpoint: str, directory: Path, waiting: Waiting) -> None:
    """Raise RunError if a run of this machine holds the checkpoint, or if the remains of one hold it for too long."""
    path = directory / LOCK
    turn = Turn(checkpoint, waiting)
    while (owner := lock_owner_of(owner_text(path))) is not None and is_here(owner) and not is_us(owner):
        if not lives(owner.pid, owner.birth):
            refuse_living(checkpoint, owner, path)
            return
        turn.wait(owner)


def is_locked(directory: Path) -> bool:
    """Return whether a run is active in the checkpoint at ``directory``, as seen from this machine."""
    owner = lock_owner_of(owner_text(directory / LOCK))
    return owner is not None and (not is_here(owner) or lives(owner.pid, owner.birth))


def lock_local(checkpoint: str, directory: Path, *, jvm: int | None = None, waiting: Waiting = WAITS) -> RunLock:
    """Lock the directory of a checkpoint on a disk of this machine; RunError as :func:`acquire`."""
    path = directory / LOCK
    name = str(path.absolute())
    forget_ended(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unreachable(checkpoint, error) from error
    try:
        turn = Turn(checkpoint, waiting)
        while (certain := _flock(file)) is False:
            turn.wait(lock_owner_of(owner_text(path)))
        owner = lock_owner_of(owner_text(path))
        if owner is not None and is_here(owner) and not is_us(owner):
            refuse_living(checkpoint, owner, path, jvm, certain=certain is True)
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
    return hold(RunLock(name=name, free=partial(_free_local, file)))


class Turn:
    """Waits until a live run of this machine releases a checkpoint."""

    def __init__(self, checkpoint: str, waiting: Waiting) -> None:
        self._checkpoint, self._waiting, self._since = checkpoint, waiting, waiting.clock()
        self._told = False

    def wait(self, owner: LockOwner | None) -> None:
        """Wait a moment for ``owner``; RunError if the time is up.

        Without a longest wait, the time is up at once.
        """
        longest = self._waiting.longest or 0.0
        if self._waiting.clock() - self._since >= longest or (owner is not None and is_us(owner)):
            raise living(self._checkpoint, owner)
        if not self._told:
            holder = "another run that is just starting" if owner is None else str(owner)
            text = f"checkpoint {self._checkpoint} is held by {holder}: waiting until it ends"
            self._waiting.tell(Waited(text=text, owner=owner))
            self._told = True
        self._waiting.sleep(_POLL_SECONDS)


def _free_local(file: int) -> None:
    # Keep the file: if it were removed, two runs could each hold a file of that name.
    os.ftruncate(file, 0)
    os.close(file)


def _flock(file: int) -> bool | None:
    """Lock the file, and return True; False if it is locked, None if the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True
