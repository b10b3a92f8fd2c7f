"""A lease on a checkpoint in a directory that machines share: who waits for whom, who is refused, what is said."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.checkpoint import lease_acquisition, lease_stores, run_lock
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.heartbeat import Heartbeat
from hintplan.runtime.checkpoint.lease import LEASES, Lease, Seen, Waiting, claim, lease_seconds, look, run_out
from hintplan.runtime.checkpoint.lease_stores import DirectoryStore, directory_store
from hintplan.runtime.checkpoint.lock_owner import LockOwner, birth_of, is_here, ourselves
from hintplan.runtime.checkpoint.run_lock import is_held, is_held_in, lock_directory, refuse_held

ELSEWHERE = LockOwner(host="etl-7", pid=4711, since="2026-01-02 03:04:05 UTC")


@dataclass
class Time:
    """A clock that continues when somebody waits; ``during`` is what happens at such a moment, by the time."""

    now: float = 1000.0
    during: dict[float, Callable[[], Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for due in [due for due in self.during if due <= self.now]:
            self.during.pop(due)()

    def waiting(self, longest: float | None = None) -> Waiting:
        return Waiting(
            longest=longest, tell=lambda waited: self.said.append(waited.text), clock=lambda: self.now, sleep=self.sleep
        )


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return directory_store(tmp_path / "state")


def taken(store: DirectoryStore, time: Time, owner: LockOwner = ELSEWHERE, *, seconds: float = 60.0) -> Lease:
    lease = claim(store, look(store), owner, seconds, time.waiting())
    assert lease is not None
    return lease


def followed(store: DirectoryStore, time: Time, longest: float | None = None, **more: Any) -> Seen | None:
    return run_out(store, "state", time.waiting(longest), **more)


def test_what_nobody_holds_is_free_at_once(store: DirectoryStore, time: Time) -> None:
    assert followed(store, time) is None
    lease = taken(store, time)
    lease.release()
    seen = followed(store, time)
    assert (seen is not None and seen.is_free, time.now, time.said) == (True, 1000.0, [])


def test_a_lease_that_nobody_renews_has_run_out_after_its_own_time(store: DirectoryStore, time: Time) -> None:
    taken(store, time, seconds=20.0)
    followed(store, time)
    assert 1020.0 <= time.now < 1023.0
    assert time.said == [
        "checkpoint state is held by process 4711 on etl-7, since 2026-01-02 03:04:05 UTC: waiting until it ends, or "
        "its lease of 20 s has run out"
    ]


def test_a_run_that_renews_its_lease_is_not_waited_for(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    time.during[1010.0] = lease.renew
    with pytest.raises(RunError) as caught:
        followed(store, time)
    assert 1010.0 <= time.now < 1020.0
    (found,) = caught.value.diagnostics
    assert found.message.endswith("is in use by process 4711 on etl-7, since 2026-01-02 03:04:05 UTC, which has just "
                                  "renewed its lease")  # fmt: skip
    assert "waiting='5 min'" in (found.hint or "")


def test_a_run_that_renews_its_lease_may_be_waited_for(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    time.during |= {1030.0: lease.renew, 1070.0: lease.renew, 1100.0: lease.release}
    seen = followed(store, time, 120.0)
    assert seen is not None
    assert (seen.is_free, 1100.0 <= time.now < 1105.0, len(time.said)) == (True, True, 1)
    lease = taken(store, time)
    for at in range(1110, 1300, 10):
        time.during[at] = lease.renew
    with pytest.raises(RunError, match="has just renewed its lease"):
        followed(store, time, 60.0)
    assert 1160.0 <= time.now < 1170.0


def test_without_waiting_a_lease_is_refused_at_once(store: DirectoryStore, time: Time) -> None:
    taken(store, time)
    with pytest.raises(RunError) as caught:
        followed(store, time, 0.0)
    assert (time.now, time.said) == (1000.0, [])
    assert "was taken by process 4711 on etl-7" in str(caught.value)
    assert "its lease has not run out" in str(caught.value)
    assert "take_over=True" in str(caught.value)
    assert followed(store, time, 0.0, take_over=True) is not None


def test_a_process_of_this_machine_is_known_to_live_or_to_be_dead(store: DirectoryStore, time: Time) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = replace(ourselves(None), pid=process.pid, birth=birth_of(process.pid))
        taken(store, time, owner)
        for more in ({}, {"take_over": True}):
            with pytest.raises(RunError, match=f"kill {process.pid} ends it after its batch"):
                followed(store, time, **more)
        process.kill()
        process.wait()
        assert followed(store, time) is not None
    assert (time.now, time.said) == (1000.0, [])


def test_a_container_of_the_same_name_is_elsewhere(store: DirectoryStore, time: Time) -> None:
    owner = ourselves(None)
    assert is_here(owner)
    other = replace(owner, pid=1, birth="5 after boot 6", processes="pid:[1] after boot 6")
    assert (other.host, is_here(other)) == (socket.gethostname(), False)
    taken(store, time, other)
    followed(store, time)
    assert time.now >= 1060.0


def test_this_process_is_refused_whatever_it_waits_for(store: DirectoryStore, time: Time) -> None:
    taken(store, time, ourselves(None))
    with pytest.raises(RunError, match="is in use by this process, since"):
        followed(store, time, 600.0)


def test_this_process_goes_on_after_a_lease_that_it_has_lost(
    store: DirectoryStore, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*given: Any) -> None:
        raise OSError("the file system is away")

    lease = taken(store, time, ourselves(None))
    time.now += 100.0
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryStore, "write", away)
        with pytest.raises(OSError, match="away"):
            lease.release()
    before = time.now
    assert taken(store, time, ourselves(None)).epoch == 2
    assert time.now == before


def test_only_one_of_two_goes_on_after_a_lease(store: DirectoryStore, time: Time) -> None:
    seen = run_out(store, "state", time.waiting())
    first = claim(store, seen, ELSEWHERE, 60.0, time.waiting())
    second = claim(store, seen, replace(ELSEWHERE, host="etl-8"), 60.0, time.waiting())
    assert (first is not None, second) == (True, None)


def test_a_holder_that_is_followed_stops_and_says_by_whom(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    successor = claim(store, followed(store, time, take_over=True), replace(ELSEWHERE, host="etl-8"), 60.0,
                      time.waiting(), take_over=True)  # fmt: skip
    assert successor is not None
    assert (successor.epoch, lease.renew(), lease.in_force, successor.renew()) == (2, False, False, True)
    assert "the checkpoint was taken over by process 4711 on etl-8" in str(lease.lost())
    lease.release()
    assert store.epochs() != []
    seen = look(store)
    assert seen is not None
    assert (seen.epoch, seen.is_free) == (2, False)


def test_who_renews_at_the_last_moment_has_stopped_before_another_goes_on(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    seen = look(store)
    time.now += 40.0
    assert lease.renew()  # after it was last seen
    before = time.now
    successor = claim(store, seen, replace(ELSEWHERE, host="etl-8"), 60.0, time.waiting())
    assert successor is not None
    assert (time.now >= before + 60.0, lease.in_force, successor.in_force) == (True, False, True)


def test_a_holder_stops_before_others_may_go_on(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    time.now += 44.9
    assert lease.in_force
    time.now += 0.2
    assert (lease.in_force, lease.renew()) == (False, False)
    assert isinstance(lease.lost(), Unavailable)
    assert "could not be renewed within 45 s" in str(lease.lost())


def test_a_record_that_is_cut_off_is_waited_for_longest(store: DirectoryStore, time: Time) -> None:
    lease = taken(store, time)
    store.write(lease.epoch, b'{"owner": {"ho')
    followed(store, time)
    assert 1600.0 <= time.now < 1650.0
    assert "a run without a name" in time.said[0]


def test_a_file_system_without_links_creates_a_file_once(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*paths: Any) -> None:
        raise OSError(lease_stores.NO_LINKS[0], "no links")

    monkeypatch.setattr(lease_stores.os, "link", refused)
    assert (store.create(1, b"a"), store.create(1, b"b"), store.read(1)) == (True, False, b"a")
    store.write(1, b"c")
    assert (store.read(1), store.read(2), store.epochs()) == (b"c", None, [1])


@pytest.mark.parametrize("text", ["1 s", "1 h", "ten"])
def test_a_lease_has_bounds(text: str) -> None:
    with pytest.raises(RunError, match="lease"):
        lease_seconds(text)


def test_a_heartbeat_renews_a_lease_and_gives_it_back(store: DirectoryStore, tmp_path: Path) -> None:
    lease = claim(store, None, ourselves(None), 60.0, Waiting())
    assert lease is not None
    lease.record = replace(lease.record, seconds=0.04)  # of which the holder has 30 ms
    beat = Heartbeat(lease).start()
    while (seen := look(store)) is None or seen.record is None or seen.record.renewals < 3:
        assert lease.taken_by is None
        lease.until = lease.clock() + 60.0
    lease.until = lease.clock() + 60.0
    beat.end()
    assert not is_held(tmp_path / "state")


def test_a_run_that_shares_its_checkpoint_holds_a_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "is_shared", lambda path: True)
    lock = lock_directory("state", tmp_path)
    assert is_held(tmp_path)
    assert is_held_in(local_files(tmp_path))
    with pytest.raises(RunError, match="is in use by this process"):
        refuse_held(str(tmp_path))
    assert json.loads((tmp_path / LEASES / "1").read_text())["owner"]["pid"] > 0
    lock.require()
    lock.release()
    assert not is_held(tmp_path)
    assert not is_held_in(local_files(tmp_path))
    refuse_held(str(tmp_path), waiting=Waiting(longest=0.0))
    lock_directory("state", tmp_path).release()
    assert [path.name for path in (tmp_path / LEASES).iterdir()] == ["2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStore(DirectoryStore):
    """A directory whose server takes three seconds for each of the first ``slow`` epochs, and knows no create-once."""

    time: Time
    slow: int
    atomic: bool = False

    def create(self, epoch: int, data: bytes) -> bool:
        if epoch <= self.slow:
            self.time.now += 3.0
        return DirectoryStore.create(self, epoch, data)


@pytest.mark.parametrize(("slow", "is_taken"), [(0, True), (1, True), (4, True), (5, False)])
def test_a_lease_that_could_not_be_taken_in_time_is_tried_again(
    tmp_path: Path, time: Time, slow: int, is_taken: bool
) -> None:
    store = SlowStore(files=directory_store(tmp_path).files, time=time, slow=slow)
    if not is_taken:
        with pytest.raises(RunError, match="cannot be written: it took too long to take its lease, 5 times"):
            lease_acquisition.hold_lease(store, "state", "name", 60.0, time.waiting())
        return
    lock = lease_acquisition.hold_lease(store, "state", "name", 60.0, time.waiting())
    try:
        assert (newest := look(store)) is not None
        assert newest.epoch == slow + 1
        assert lock.in_force
    finally:
        lock.release()


def test_a_checkpoint_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "is_shared", lambda path: True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match=r"the checkpoint state cannot be written: Not a directory"):
        lock_directory("state", tmp_path / "file" / "state")
