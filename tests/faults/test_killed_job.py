"""The job that is killed at random elsewhere: undisturbed, and with a database that is full for a while."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.connectors.jdbc import sqlite as connector
from hintplan.runtime.run.execute import execute
from tests.faults.job import Feed, compiled, expected, rows_of

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180


class Full:
    """SQLite whose databases may not grow: beyond so many pages, it says what it says when its disk is full."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = sqlite3.connect(*arguments, **options)
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return connection


def run_once(plan: Plan, spark: SparkSession, directory: Path) -> None:
    run = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert run.await_termination(DEADLINE_SECONDS)


@pytest.mark.integration
def test_a_full_database_is_named_and_gets_what_it_lacks_once_there_is_room(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path, seed=26)
    plan = compiled(tmp_path, files_per_batch=100)
    for _ in range(30):
        feed.add()
    run_once(plan, spark, tmp_path)
    undisturbed = rows_of(tmp_path)
    assert undisturbed == expected(tmp_path)

    for _ in range(30):
        feed.add()
    with monkeypatch.context() as patched:
        patched.setattr(connector, "sqlite3", Full(pages=1))
        with pytest.raises(RunError) as caught:
            run_once(plan, spark, tmp_path)
    said = f"SQLite refused to write to table 'copies' in {tmp_path}/result.db: database or disk is full"
    assert said in str(caught.value)
    assert "make room on its disk, then run again" in str(caught.value)
    assert "\tat " not in str(caught.value)
    assert rows_of(tmp_path)["copies"] == undisturbed["copies"]

    run_once(plan, spark, tmp_path)
    assert rows_of(tmp_path) == expected(tmp_path)
