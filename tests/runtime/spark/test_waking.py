"""The source that wakes a job when rows are due: what it finds in manifests, and what it asks an object store for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from hintplan.runtime.spark.waking import WakingReader
from hintplan.runtime.storage.manifest import Manifest, encode_manifest
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


def test_it_lists_state_and_reads_only_manifests_that_are_new(store: ObjectStore) -> None:
    root = "s3a://lake/query/state/lookup_r.1"
    reader = WakingReader(root, 10)
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
