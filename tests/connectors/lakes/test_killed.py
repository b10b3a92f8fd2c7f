"""A job whose process, with its JVM and workers, is killed again and again while it writes to tables of a lake."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

import hintplan
from tests.connectors.lakes.lakes import LAKES, in_with
from tests.faults.job import Feed, compiled, expected
from tests.faults.killed import DEADLINE_SECONDS, KILLS, running
from tests.sample import in_turn, sampled

pytestmark = [pytest.mark.spark, pytest.mark.integration]


@in_turn(0, of=3)
@pytest.mark.parametrize("kind", sampled(LAKES, keep=1))
def test_a_job_that_is_killed_has_each_row_once_and_each_batch_in_one_version(kind: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    feed = Feed(tmp_path, seed=3)
    lake = LAKES[kind](tmp_path / "lake")
    options = lake.options("")
    (last,) = (name for name in ("table-path", "catalog-table") if name in options)
    place = in_with({**{name: value for name, value in options.items() if name != last}, last: options[last]})
    hintplan.dump(compiled(tmp_path, files_per_batch=1, lake=place.removesuffix("'")), tmp_path / "plan.json")
    for _ in range(KILLS):
        for _ in range(6):
            feed.add()
        enough = lake.commits("copies") + chance.randrange(1, 4)
        files = lake.files("copies")
        with running(tmp_path, "--trigger", "10 ms") as process:
            until = time.monotonic() + DEADLINE_SECONDS
            # A file that is there before its version is the moment between writing and committing.
            more = files + chance.randrange(1, 5)
            while lake.commits("copies") < enough and lake.files("copies") < more:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.001)
    with running(tmp_path, "--once") as process:
        assert process.wait(DEADLINE_SECONDS) == 0, (tmp_path / "log").read_text()
    found = {name: sorted(lake.rows(name), key=str) for name in ("totals", "copies")}
    assert found == {name: sorted(rows, key=str) for name, rows in expected(tmp_path).items()}
    # Every version of what is appended to is whole batches of 15 rows, and has those of the version before.
    counts = [len(lake.rows("copies", commit)) for commit in range(lake.commits("copies") + 1)]
    assert counts == sorted(counts)
    assert {count % 15 for count in counts} == {0}
    assert max(Counter(counts).values()) == 1
    assert set(lake.remembered("copies").values()) == {len(counts) - 2}
