"""A job whose process, with its JVM and workers, is killed again and again while it writes to Delta tables."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

import plans
from tests.connectors.lakes.readers import delta_rows, transactions, versions
from tests.connectors.servers.test_killed_sinks import DEADLINE_SECONDS, KILLS, running
from tests.faults.job import Feed, compiled, expected

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_a_job_that_is_killed_has_each_row_once_and_each_batch_in_one_version(tmp_path: Path) -> None:
    chance = random.Random(3)
    feed = Feed(tmp_path, seed=3)
    lake = f"'connector' = 'delta', 'table-path' = '{tmp_path}/lake/"
    plans.dump(compiled(tmp_path, files_per_batch=1, lake=lake), tmp_path / "plan.json")
    copies, totals = tmp_path / "lake" / "copies", tmp_path / "lake" / "totals"
    for _ in range(KILLS):
        for _ in range(6):
            feed.add()
        enough = len(versions(copies)) + chance.randrange(1, 4)
        files = len(list(copies.glob("*.parquet")))
        with running(tmp_path, "--trigger", "10 ms") as process:
            until = time.monotonic() + DEADLINE_SECONDS
            # A file that is there before its version is the moment between writing and committing.
            more = files + chance.randrange(1, 5)
            while len(versions(copies)) < enough and len(list(copies.glob("*.parquet"))) < more:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.001)
    with running(tmp_path, "--once") as process:
        assert process.wait(DEADLINE_SECONDS) == 0, (tmp_path / "log").read_text()
    found = {"totals": sorted(delta_rows(totals), key=str), "copies": sorted(delta_rows(copies), key=str)}
    assert found == {name: sorted(rows, key=str) for name, rows in expected(tmp_path).items()}
    # Every version of what is appended to is whole batches of 15 rows, and has those of the version before.
    counts = [len(delta_rows(copies, version)) for version in range(len(versions(copies)))]
    assert counts == sorted(counts)
    assert {count % 15 for count in counts} == {0}
    assert max(Counter(counts).values()) == 1
    assert set(transactions(copies).values()) == {len(counts) - 2}
