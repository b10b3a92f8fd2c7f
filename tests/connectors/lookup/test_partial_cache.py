"""The default partial cache against a dictionary that does one key at a time, and its bounds, expiry and estimates."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from hintplan.runtime.kernels.found_rows import ABSENT
from hintplan.runtime.lookup.api import Key, Row
from hintplan.runtime.lookup.caches.partial_cache import DefaultLookupCache
from hintplan.runtime.lookup.metrics import CacheGauges, LookupCounters
from hintplan.runtime.lookup.rows import keyed_rows, python_rows
from tests.connectors.lookup.simulation import VirtualClock
from tests.sample import sampled

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string())])


class Model:
    """A least-recently-used map whose entries expire, as Guava's cache, one key at a time."""

    def __init__(self, access: int | None, write: int | None, size: int | None, missing: bool) -> None:
        self.access, self.write, self.size, self.missing = access, write, size, missing
        self.entries: OrderedDict[Key, tuple[list[Row], int, int]] = OrderedDict()

    def get(self, key: Key, now: int) -> list[Row] | None:
        if key not in self.entries:
            return None
        rows, written, accessed = self.entries[key]
        if self.write is not None and written + self.write <= now:
            return None
        if self.access is not None and accessed + self.access <= now:
            return None
        self.entries[key] = (rows, written, now)
        self.entries.move_to_end(key)
        return rows

    def put(self, key: Key, rows: list[Row], now: int) -> None:
        self.entries.pop(key, None)
        if not rows and not self.missing:
            return
        self.entries[key] = (rows, now, now)
        while self.size is not None and len(self.entries) > self.size:
            self.entries.popitem(last=False)


def cache(clock: VirtualClock, **settings: int | bool | None) -> DefaultLookupCache:
    return DefaultLookupCache(SCHEMA, clock, **settings)  # type: ignore[arg-type]


def store(target: DefaultLookupCache, clock: VirtualClock, found: dict[Key, list[Row]]) -> None:
    rows = keyed_rows(list(found.values()), SCHEMA, where="test")
    target.store(list(found), rows, np.full(len(found), clock.elapsed()))


def probe(target: DefaultLookupCache, keys: Sequence[Key]) -> list[list[Row] | None]:
    found = target.probe(keys)
    return [
        None if count == ABSENT else python_rows(found.table.slice(start, count))
        for start, count in zip(found.start.tolist(), found.count.tolist(), strict=True)
    ]


@pytest.mark.parametrize("seed", sampled(range(60), keep=20))
def test_many_keys_at_once_behave_as_one_key_after_the_other(seed: int) -> None:
    random = Random(seed)
    clock = VirtualClock()
    access, write = random.choice((None, 30)), random.choice((None, 50))
    size, missing = random.choice((None, 1, 5, 20)), random.random() < 0.5
    settings = {"expire_after_access": access, "expire_after_write": write, "max_rows": size}
    tested = cache(clock, **settings, cache_missing_key=missing)
    model = Model(access, write, size, missing)
    expires = access is not None or write is not None
    for step in range(100):
        clock.time += random.choice((0, 1, 10, 40))
        keys: list[Key] = [(key,) for key in random.sample(range(30), random.randint(1, 8))]
        if random.random() < 0.5:
            expected = [model.get(key, clock.elapsed()) for key in keys]
            if size is None or not expires:
                assert probe(tested, keys) == expected
            else:
                # Which expired entries still count towards the bound is up to the cache; what it serves must be right.
                for found, wanted in zip(probe(tested, keys), expected, strict=True):
                    assert found is None or wanted is None or found == wanted
        else:
            found = {key: [(key[0], f"{step}/{n}") for n in range(random.randint(0, 2))] for key in keys}
            store(tested, clock, found)
            # What is not kept makes room before what is.
            for key, rows in sorted(found.items(), key=lambda entry: bool(entry[1]) or missing):
                model.put(key, rows, clock.elapsed())
        assert size is None or tested.size() <= size


def test_maximum_rows_counts_keys_and_the_least_recently_used_key_goes() -> None:
    clock = VirtualClock()
    tested = cache(clock, max_rows=2)
    tested.put((1,), [(1, "a"), (1, "b")])
    tested.put((2,), [(2, "a")])
    assert tested.get_if_present((1,)) == [(1, "a"), (1, "b")], "two rows of one key count once"
    tested.put((3,), [(3, "a")])
    assert tested.get_if_present((2,)) is None
    assert tested.get_if_present((1,)) is not None


def test_no_entries_and_no_time_mean_no_caching() -> None:
    clock = VirtualClock()
    for tested in (cache(clock, max_rows=0), cache(clock, expire_after_write=0), cache(clock, expire_after_access=0)):
        tested.put((1,), [(1, "a")])
        assert tested.get_if_present((1,)) is None


def test_reading_postpones_the_end_of_access_but_not_that_of_writing() -> None:
    clock = VirtualClock()
    read, written = cache(clock, expire_after_access=100), cache(clock, expire_after_write=100)
    for tested in (read, written):
        tested.put((1,), [(1, "a")])
    for _ in range(3):
        clock.time += 99
        assert read.get_if_present((1,)) == [(1, "a")]
    assert written.get_if_present((1,)) is None
    clock.time += 100
    assert read.get_if_present((1,)) is None


def test_what_was_read_long_ago_expires_by_then_however_late_it_is_cached() -> None:
    clock = VirtualClock()
    tested = cache(clock, expire_after_write=100)
    read_at = clock.elapsed()
    clock.time += 80
    tested.store([(1,)], keyed_rows([[(1, "a")]], SCHEMA, where="test"), np.array([read_at]))
    clock.time += 19
    assert tested.get_if_present((1,)) == [(1, "a")]
    clock.time += 1
    assert tested.get_if_present((1,)) is None


def test_a_missing_key_is_an_answer_unless_it_is_not_to_be_kept() -> None:
    clock = VirtualClock()
    kept, dropped = cache(clock), cache(clock, cache_missing_key=False)
    for tested in (kept, dropped):
        tested.put((1,), [(1, "old")])
        tested.put((1,), [])
    assert kept.get_if_present((1,)) == []
    assert dropped.get_if_present((1,)) is None, "the old rows must not stay either"


def test_put_returns_what_was_there_and_invalidate_forgets_it() -> None:
    tested = cache(VirtualClock())
    assert tested.put((1,), [(1, "a")]) is None
    assert tested.put((1,), [(1, "b")]) == [(1, "a")]
    tested.invalidate((1,))
    tested.invalidate((2,))
    assert (tested.get_if_present((1,)), tested.size()) == (None, 0)


def test_memory_is_bounded_when_entries_come_and_go() -> None:
    clock = VirtualClock()
    bounded, expiring = cache(clock, max_rows=1000), cache(clock, expire_after_write=100)
    peak = 0
    for step in range(300):
        clock.time += 10
        found = {(key,): [(key, "x" * 100)] for key in range(step * 100, step * 100 + 100)}
        store(bounded, clock, found)
        store(expiring, clock, found)
        peak = max(peak, bounded.size_in_bytes(), expiring.size_in_bytes())
    assert bounded.size() <= 1000
    assert expiring.size() <= 100 * (10 + 3), "ten steps live, and a quarter of that may wait for the next purge"
    # 1,300 rows of some 120 bytes, at most twice for those that are gone, and some 200 bytes of index for each key.
    assert 100_000 < peak < 1_300 * (2 * 130 + 200) + 50_000


def test_the_gauges_show_keys_and_bytes() -> None:
    tested, gauges, counters = cache(VirtualClock()), CacheGauges(), LookupCounters()
    tested.open(gauges)
    tested.put((1,), [(1, "a" * 1000), (1, "b")])
    tested.put((2,), [])
    gauges.report(counters)
    assert counters.numCachedRecords == 2
    assert 1000 < counters.numCachedBytes < 20_000
    with pytest.raises(ValueError, match="no gauge 'hits'"):
        gauges.gauge("hits", lambda: 1)
