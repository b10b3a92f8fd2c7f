"""A lease on a checkpoint: a run holds it while it renews it, and another run can take it after it has expired.

    <checkpoint>/hintplan.lease/<epoch>      the holder, the duration, and the number of renewals

To take the lease, a run creates the file of the next epoch. Only one run can create it, and from then on the holder
writes only to that file. A waiting run watches the newest file: if the file does not change for the duration of the
lease, the lease has expired. Each process uses its own monotonic clock, and clocks are never compared; they only have
to run at about the same speed. A holder counts the time from before each renewal, and stops a quarter of the duration
before another run could take over. A renewal is valid only if no newer epoch exists after it. This module does not know
file systems (:mod:`hintplan.runtime.checkpoint.lease_stores`), threads or Spark; callers pass in the clock.

    seen = run_out(store, waiting)
    lease = claim(store, seen, ourselves(None), 60.0, waiting)
    lease.renew()
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.checkpoint.lock_owner import LockOwner, is_here, is_us, lives

LEASES = "hintplan.lease"
DEFAULT_SECONDS, SHORTEST_SECONDS, LONGEST_SECONDS = 60.0, 5.0, 600.0
_USED = 0.75
"""The fraction of a lease in which its holder works. In the remaining time, writes that have begun can finish."""
RENEWALS = 4
"""The number of renewals within the duration of a lease."""
_LOOKS = 20
SETTLE_SECONDS = 2.0
"""If two runs can create the same file, a run waits this long after it has created one, and then checks its content."""


_held_here: set[str] = set()
"""The tokens of the leases that this process has taken and not released."""


class LeaseStore(Protocol):
    """The files of a lease, by epoch; OSError if the file system does not answer.

    ``atomic`` is true if only one of several runs can create a file. Otherwise a later run replaces the whole file.
    """

    @property
    def atomic(self) -> bool: ...

    def epochs(self) -> list[int]: ...

    def read(self, epoch: int) -> bytes | None: ...

    def create(self, epoch: int, data: bytes) -> bool: ...

    def write(self, epoch: int, data: bytes) -> None: ...

    def remove(self, epoch: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The content of an epoch's file. ``token`` identifies the holder; ``renewed`` is only for people to read."""

    owner: LockOwner
    seconds: float
    token: str
    renewals: int = 0
    renewed: str = ""
    released: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest file of a lease.

    ``record`` is None if the file cannot be parsed, because it is being written or was truncated.
    """

    epoch: int
    data: bytes
    record: Record | None

    @property
    def is_free(self) -> bool:
        """True if its holder has released it, or is a process of this machine that has certainly ended."""
        return self.record is not None and (self.record.released or self.ended_here or self._was_ours)

    @property
    def _was_ours(self) -> bool:
        """True if this process held the lease and has lost it."""
        record = self.record
        return record is not None and is_us(record.owner) and record.token not in _held_here

    @property
    def ended_here(self) -> bool:
        """True if its holder was a process of this machine that has ended."""
        return self.record is not None and is_here(self.record.owner) and not self.lives_here

    @property
    def lives_here(self) -> bool:
        """True if its holder is a process of this machine that is alive."""
        owner = self.record.owner if self.record is not None else None
        return owner is not None and is_here(owner) and lives(owner.pid, owner.birth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """A wait for a checkpoint: a description, its ``owner``, and the ``epoch`` and ``seconds`` of its lease.

    A field is None if it is unknown, or if the checkpoint has a lock instead of a lease.
    """

    text: str
    owner: LockOwner | None
    epoch: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Settings of the wait for a checkpoint that another run holds. ``longest`` is in seconds.

    If ``longest`` is None, a run waits at most until the lease expires, and gives up as soon as it sees that the other
    run is alive. ``tell`` is called once, with the wait. ``sleep`` may raise an exception to end the wait.
    """

    longest: float | None = None
    tell: Callable[[Waited], None] = lambda waited: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


WAITS = Waiting()
"""Waits silently until the lease expires, or gives up when it sees that the other run is alive."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """A lease of ``seconds`` that this process holds, in force until ``until`` by ``clock`` unless it is renewed."""

    store: LeaseStore
    epoch: int
    record: Record
    clock: Callable[[], float]
    until: float
    renewed_at: float = field(default=0.0)
    taken_by: str | None = None

    @property
    def in_force(self) -> bool:
        """True if no other run can hold it."""
        return self.taken_by is None and self.clock() < self.until

    def renew(self) -> bool:
        """Renew the lease, and return True if it is renewed.

        A lease that is no longer in force is not renewed. OSError if the file system does not answer; the caller may
        then retry.
        """
        began = self.clock()
        if not self.in_force:
            return False
        if not self.store.atomic and not _is_of(self.store.read(self.epoch), self.record.token):
            self.taken_by = "another run, which began at the same moment"
            return False
        self.record = replace(self.record, renewals=self.record.renewals + 1, renewed=_now())
        self.store.write(self.epoch, encoded(self.record))
        if (newest := look(self.store)) is not None and newest.epoch > self.epoch:
            self.taken_by = str(newest.record.owner) if newest.record is not None else "another run"
            return False
        self.until, self.renewed_at = began + _USED * self.record.seconds, began
        return True

    def told(self) -> dict[str, Any]:
        """Return the state of the lease for reports; times in ms."""
        now = self.clock()
        return {
            "epoch": self.epoch,
            "lease_ms": int(self.record.seconds * 1000),
            "renewed_ms_ago": int((now - self.renewed_at) * 1000),
            "in_force": self.in_force,
        }

    def release(self) -> None:
        """Release the lease, so that no other run has to wait.

        All work under the lease must have stopped, including its renewal.
        """
        _held_here.discard(self.record.token)
        if self.taken_by is None:
            self.store.write(self.epoch, encoded(replace(self.record, released=True)))

    def lost(self) -> RunError:
        """Return the error of a run that has lost the lease."""
        if self.taken_by is not None:
            return Unavailable(f"the checkpoint was taken over by {self.taken_by}", hint=_ONE_RUN)
        return Unavailable(
            f"the lease on the checkpoint could not be renewed within {self.record.seconds * _USED:g} s",
            hint="was this machine paused, or the file system of the checkpoint unavailable? Another run may "
            "continue now; --lease allows more time",
        )


_ONE_RUN = "a checkpoint has one run at a time; the other run continues after the last finished batch"


def look(store: LeaseStore) -> Seen | None:
    """Return the newest file of a lease, or None if the lease was never held."""
    for _ in range(_LOOKS):
        if not (epochs := store.epochs()):
            return None
        data = store.read(max(epochs))
        if data is not None:
            return Seen(max(epochs), data, record_of(data))
    raise OSError("the file system lists a lease that it does not have")


def run_out(store: LeaseStore, checkpoint: str, waiting: Waiting, *, take_over: bool = False) -> Seen | None:
    """Wait until no run holds ``checkpoint``, and return the newest file of its lease.

    RunError if the wait is over or pointless. With ``take_over``, a run does not wait unless the holder lives on this
    machine.
    """
    start = waiting.clock()
    last: Seen | None = None
    seconds, since, renewed, reported = LONGEST_SECONDS, start, False, False
    while True:
        began = waiting.clock()
        seen = look(store)
        if seen is None or seen.is_free or (take_over and not seen.lives_here):
            return seen
        if last is None or seen != last:
            renewed = last is not None
            if seen.record is not None:
                seconds = min(max(seen.record.seconds, SHORTEST_SECONDS), LONGEST_SECONDS)
            elif last is None or last.epoch != seen.epoch:
                seconds = LONGEST_SECONDS
            last, since = seen, waiting.clock()
        elif began - since >= seconds:
            return seen
        lives_on = renewed or seen.lives_here
        patience = waiting.longest if waiting.longest is not None else 0.0 if lives_on else LONGEST_SECONDS + 60.0
        if began - start >= patience or (seen.record is not None and is_us(seen.record.owner)):
            raise held_error(checkpoint, seen, lives_on=lives_on)
        if not reported:
            waiting.tell(_waited(checkpoint, seen, seconds))
            reported = True
        waiting.sleep(seconds / _LOOKS)


def claim(
    store: LeaseStore, seen: Seen | None, owner: LockOwner, seconds: float, waiting: Waiting, *, take_over: bool = False
) -> Lease | None:
    """Take a lease that has expired, given the ``seen`` result of :func:`run_out`; None if another run was faster.

    If the old holder has renewed it at the last moment, the new epoch makes the old holder stop, and this function
    returns after that. With ``take_over``, it does not wait.
    """
    record = Record(owner=owner, seconds=seconds, token=uuid.uuid4().hex, renewed=_now())
    lease = None
    _held_here.add(record.token)
    try:
        lease = _claimed(store, seen, record, waiting, take_over=take_over)
    finally:
        if lease is None:
            _held_here.discard(record.token)
    return lease


def _claimed(
    store: LeaseStore, seen: Seen | None, record: Record, waiting: Waiting, *, take_over: bool
) -> Lease | None:
    clock, began, seconds = waiting.clock, waiting.clock(), record.seconds
    epoch = 1 if seen is None else seen.epoch + 1
    if not store.create(epoch, encoded(record)):
        return None
    if not store.atomic:
        if clock() - began > SETTLE_SECONDS:
            return None  # a run that created it earlier may have checked it already
        waiting.sleep(SETTLE_SECONDS)
        if not _is_of(store.read(epoch), record.token):
            return None
    lease = Lease(store=store, epoch=epoch, record=record, clock=clock, until=began + _USED * seconds, renewed_at=began)
    if max(store.epochs(), default=epoch) > epoch:
        store.remove(epoch)  # other runs have already seen a newer epoch
        return None
    if seen is not None and not seen.is_free and not take_over and store.read(seen.epoch) != seen.data:
        end = clock() + (LONGEST_SECONDS if seen.record is None else seen.record.seconds)
        while (left := end - clock()) > 0:
            waiting.sleep(min(left, seconds / RENEWALS))
            if not lease.renew():
                return None
    for old in store.epochs():
        if old < epoch:
            store.remove(old)
    return lease if lease.in_force else None


def held_error(checkpoint: str, seen: Seen, *, lives_on: bool) -> RunError:
    """Return the error for a checkpoint that another run holds."""
    owner = seen.record.owner if seen.record is not None else None
    if owner is not None and is_us(owner):
        return RunError(f"checkpoint {checkpoint} is in use by this process, since {owner.since}", hint=ONE_AT_A_TIME)
    holder = "a run without a name" if owner is None else str(owner)
    if lives_on:
        stop = f" (kill {owner.pid} ends it after its batch)" if owner is not None and is_here(owner) else ""
        return RunError(
            f"checkpoint {checkpoint} is in use by {holder}, which has just renewed its lease"
            if not stop
            else f"checkpoint {checkpoint} is in use by {holder}",
            hint=f"a checkpoint has one run at a time: stop the other one{stop}, or give this run a checkpoint of its "
            "own, or let it wait: --wait '5 min'",
        )
    return RunError(
        f"checkpoint {checkpoint} was taken by {holder}, and its lease has not run out",
        hint="without --wait, a run waits until it has. If the other run has surely ended, hintplan run --take-over "
        "continues at once",
    )


ONE_AT_A_TIME = "a checkpoint has one run at a time: stop the other one, or give this run a checkpoint of its own"


def lease_seconds(duration: str | None) -> float:
    """Parse the duration of a lease, such as ``60 s``, to seconds; RunError if it is invalid or out of range."""
    if duration is None:
        return DEFAULT_SECONDS
    try:
        seconds = parse_duration(duration, require_unit=True) / 1000
    except ValueError as error:
        raise RunError(f"the lease is wrong: {error}", hint="write a duration such as '60 s'") from error
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise RunError(
            f"a lease of {duration} is not possible",
            hint=f"give one between {SHORTEST_SECONDS:g} s, in which it can be renewed, and {LONGEST_SECONDS:g} s, "
            f"because other runs wait for so long after a crash",
        )
    return seconds


def encoded(record: Record) -> bytes:
    """Return the content of the file for a record."""
    return json.dumps(asdict(record)).encode()


def record_of(data: bytes) -> Record | None:
    """Return the record in a file, or None if the file was truncated or is being written."""
    try:
        fields = json.loads(data)
        record = Record(**{**fields, "owner": LockOwner(**fields["owner"])})
        return record if isinstance(record.seconds, int | float) and isinstance(record.token, str) else None
    except (ValueError, TypeError, KeyError):
        return None


def _is_of(data: bytes | None, token: str) -> bool:
    record = None if data is None else record_of(data)
    return record is not None and record.token == token


def _waited(checkpoint: str, seen: Seen, seconds: float) -> Waited:
    owner = None if seen.record is None else seen.record.owner
    holder = "a run without a name" if owner is None else str(owner)
    return Waited(
        text=f"checkpoint {checkpoint} is held by {holder}: waiting until it ends, or its lease of {seconds:g} s has "
        "run out",
        owner=owner,
        epoch=seen.epoch,
        seconds=seconds,
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
