"""The source that wakes a job when rows are due: what it finds in manifests, and what it asks an object store for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from hintplan.runtime.spark.waking import WakingReader
from hintplan.runtime.storage.manifest import Manifest, StoredWatermark, encode_manifest
from hintplan.runtime.storage.remote_files import remote_files
from tests.connectors.object_store.server import ObjectStore, running_store


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_store() as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.environment.items():
            patch.setenv(name, value)
        found.make_bucket("lake")
        yield found


def park(root: str, partition: int, batch: int, *looked_up: int) -> None:
    """The manifest of a batch after which rows wait that were last looked up at these times."""
    tables = json.dumps({"segments": [{"at": at} for at in looked_up]}).encode()
    found = Manifest(operator="lookup_r", batch=batch, run=7, partition=partition, partitions=2, tables=tables)
    assert remote_files(root).publish(f"0/{partition}/{batch}.7.manifest", encode_manifest(found, []))


def stored(root: str, batch: int, due: int | None) -> None:
    """The manifest of a batch after which an operator that goes by time has something to do at ``due``."""
    watermark = StoredWatermark(after=0, since=0, marks=(), due=due)
    found = Manifest(operator="window_s", batch=batch, run=7, watermark=watermark)
    assert remote_files(root).publish(f"0/0/{batch}.7.manifest", encode_manifest(found, []))


class Clock:
    """A clock in seconds that moves on so much that a batch may have run."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


def test_it_lists_state_and_reads_only_manifests_that_are_new(store: ObjectStore) -> None:
    root = "s3a://lake/query/state/lookup_r.1"
    clock = Clock()
    reader = WakingReader(root, 10, clock)
    assert reader.latestOffset() == {"due": 0}, "there is no state yet"
    park(root, 0, 1, 1_000, 2_000)
    park(root, 1, 1, 3_000)

    def asked() -> tuple[dict[str, int], dict[str, int]]:
        store.asked.clear()
        return reader.latestOffset(), dict(Counter(request.method for request in store.asked))

    assert asked() == ({"due": 1_010}, {"LIST": 1, "HEAD": 2, "GET": 2})
    assert asked() == ({"due": 1_010}, {"LIST": 1}), "nothing is new"
    park(root, 0, 2, 4_000)
    assert asked() == ({"due": 3_010}, {"LIST": 1, "HEAD": 1, "GET": 1})


def test_between_batches_it_asks_for_nothing(store: ObjectStore) -> None:
    root = "s3a://lake/query/state/window_s.1"
    stored(root, 1, due=5_000)
    now = [1.0]
    reader = WakingReader(root, None, lambda: now[0])
    start = {"due": 0}
    assert reader.latestOffset(start) == start
    store.asked.clear()
    for _ in range(20):
        now[0] += 0.01
        assert reader.latestOffset(start) == start
    assert not store.asked
    now[0] = 5.0
    assert reader.latestOffset(start) == {"due": 5_000}
    stored(root, 2, due=None)
    assert reader.latestOffset({"due": 5_000}) == {"due": 5_000}, "the batch has done what was due"
    now[0] += 60
    assert reader.latestOffset({"due": 5_000}) == {"due": 5_000}, "nothing is due"


def test_a_restarted_query_waits_for_the_next_time_also_if_it_is_earlier(store: ObjectStore) -> None:
    root = "s3a://lake/query/state/window_s.2"
    stored(root, 1, due=7_000)
    now = [6.0]
    reader = WakingReader(root, None, lambda: now[0])
    assert reader.latestOffset({"due": 9_000}) == {"due": 9_000}
    now[0] = 7.0
    assert reader.latestOffset({"due": 9_000}) == {"due": 7_000}


def test_a_run_that_ends_with_its_input_waits_for_nothing(store: ObjectStore) -> None:
    root = "s3a://lake/query/state/window_s.3"
    stored(root, 1, due=7_000)
    now = [6.0]
    early, late = (WakingReader(root, None, lambda: now[0]) for _ in range(2))
    early.prepareForTriggerAvailableNow()
    now[0] = 8.0
    late.prepareForTriggerAvailableNow()
    stored(root, 2, due=7_500)
    now[0] = 60.0
    start = {"due": 3_000}
    assert early.latestOffset(start) == start
    assert late.latestOffset(start) == late.latestOffset({"due": 7_000}) == {"due": 7_000}
