"""A job whose process, with its JVM and workers, is killed again and again while it writes to a database server."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import hintplan
from tests.connectors.servers.databases import Database
from tests.faults.job import Feed, compiled, expected
from tests.faults.killed import DEADLINE_SECONDS, KILLS, running
from tests.sample import in_turn, sampled

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def rows(database: Database, table: str) -> list[tuple]:
    return sorted(database.rows(f"SELECT * FROM {table}"), key=str) if table in database.tables() else []


@in_turn(1, of=3)
@pytest.mark.parametrize("database", sampled(["postgres", "mariadb"], keep=1), indirect=True)
def test_a_job_that_is_killed_while_it_writes_has_each_row_once(database: Database, tmp_path: Path) -> None:
    chance = random.Random(3)
    feed = Feed(tmp_path, seed=3)
    options = ", ".join(f"'{name}' = '{value}'" for name, value in database.options.items())
    hintplan.dump(compiled(tmp_path, files_per_batch=1, database=options), tmp_path / "plan.json")
    in_the_middle = 0
    for _ in range(KILLS):
        for _ in range(6):
            feed.add()
        before = len(rows(database, "copies"))
        with running(tmp_path, "--trigger", "10 ms") as process:
            until = time.monotonic() + DEADLINE_SECONDS
            batches = chance.randrange(3)
            while True:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                staging = any(name.startswith("hintplan_stage") for name in database.tables())
                if staging and len(rows(database, "copies")) >= before + 15 * batches:
                    break
                time.sleep(0.002)
        in_the_middle += any(name.startswith("hintplan_stage") for name in database.tables())
    with running(tmp_path, "--once") as process:
        assert process.wait(DEADLINE_SECONDS) == 0, (tmp_path / "log").read_text()
    assert {name: rows(database, name) for name in ("totals", "copies")} == {
        name: sorted(found, key=str) for name, found in expected(tmp_path).items()
    }
    assert in_the_middle > 0
    assert database.tables() == ["copies", "hintplan_commits", "totals"]
