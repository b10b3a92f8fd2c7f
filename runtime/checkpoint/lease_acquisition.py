"""Takes the lease on a shared checkpoint, and starts to renew it (:mod:`hintplan.runtime.checkpoint.lease`)."""

from __future__ import annotations

from hintplan.runtime.checkpoint.heartbeat import Heartbeat
from hintplan.runtime.checkpoint.lease import LeaseStore, Seen, Waiting, claim, held_error, look, run_out
from hintplan.runtime.checkpoint.living_run import refuse_living, unreachable
from hintplan.runtime.checkpoint.lock_owner import ourselves
from hintplan.runtime.checkpoint.process_locks import RunLock, hold

NOTHING_HELD = Seen(0, b"", None)

_ATTEMPTS = 5
"""The number of attempts to take a free lease: a slow file system may delay one for too long."""


def hold_lease(
    store: LeaseStore,
    checkpoint: str,
    name: str,
    seconds: float,
    waiting: Waiting,
    *,
    jvm: int | None = None,
    take_over: bool = False,
    seen: Seen | None = NOTHING_HELD,
) -> RunLock:
    """Take the lease on a checkpoint, and renew it in the background."""
    try:
        if seen is NOTHING_HELD or seen != look(store):
            seen = run_out(store, checkpoint, waiting, take_over=take_over)
        lease = None
        for _ in range(_ATTEMPTS):
            if seen is not None and seen.ended_here and seen.record is not None:
                refuse_living(checkpoint, seen.record.owner, None, jvm, certain=True)
            lease = claim(store, seen, ourselves(jvm), seconds, waiting, take_over=take_over)
            if lease is not None:
                break
            seen = look(store)
            if seen is not None and not seen.is_free:
                raise held_error(checkpoint, seen, lives_on=True)
        if lease is None:
            raise OSError(f"it took too long to take its lease, {_ATTEMPTS} times")
    except OSError as error:
        raise unreachable(checkpoint, error) from error
    beat = Heartbeat(lease).start()
    return hold(RunLock(name=name, free=beat.end, beat=beat))


def seen_in(checkpoint: str, store: LeaseStore) -> Seen | None:
    """Return the newest file of the lease in ``store``; RunError if it cannot be read."""
    try:
        return look(store)
    except OSError as error:
        raise unreachable(checkpoint, error) from error
