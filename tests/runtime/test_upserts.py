"""Upserts from files, several at once and split into pieces, into a database by another key, across restarts."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import planner
from plans.model.plan import Plan
from runtime.run.execute import execute
from tests.spark.programs import add_rows

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
EARLIER = 1_700_000_000_000_000_000


@pytest.fixture
def small_pieces(spark: SparkSession) -> Iterator[None]:
    """Files are read in pieces of 32 KiB, each by a task of its own."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "32768")
    yield
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


def plan_of(directory: Path) -> Plan:
    (directory / "users").mkdir(exist_ok=True)
    return planner.compile_sql(
        "CREATE TABLE users (id BIGINT, v BIGINT, seat STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
        f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / 'users'}', "
        "'source.changelog' = 'upsert');"
        "CREATE TABLE seats (seat STRING, id BIGINT, v BIGINT, PRIMARY KEY (seat) NOT ENFORCED) WITH ("
        f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory / 'result.db'}', 'table-name' = 'seats');"
        "INSERT INTO seats SELECT seat, id, v FROM users WHERE v <> 7 ON CONFLICT DO DEDUPLICATE;",
        name="upserts",
    )


def write(directory: Path, name: str, milliseconds: int, rows: list[dict[str, Any]]) -> None:
    """A file of the table with a modification time of its own."""
    path = directory / "users" / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    os.utime(path, ns=(EARLIER + milliseconds * 1_000_000,) * 2)


def run(directory: Path, spark: SparkSession) -> dict[str, tuple[int, int]]:
    """Read what is new; the seats as the database has them then."""
    execution = execute(plan_of(directory), spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    connection = sqlite3.connect(directory / "result.db")
    try:
        return {seat: (id_, v) for seat, id_, v in connection.execute("SELECT seat, id, v FROM seats")}
    finally:
        connection.close()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.integration
def test_files_are_upserts_in_the_order_of_their_arrival_and_rows_that_share_a_seat_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan_of(tmp_path)
    chance = random.Random(11)
    # In the order of arrival: by time, then by path; the first is the last by name, and the largest stands between.
    arriving = [("z.json", 1, 40), ("m.json", 2, 3000), ("b.json", 3, 60), ("c.json", 3, 60), ("a.json", 4, 5)]
    users: dict[int, dict[str, Any]] = {}
    v = 100
    for name, time, count in arriving:
        rows = []
        for _ in range(count):
            id_, v = chance.randrange(200), v + 1
            rows.append({"id": id_, "v": v, "seat": f"seat {id_}"})
            users[id_] = rows[-1]
            if chance.random() < 0.1:
                rows.append({"id": id_, "op": "-D"})
                del users[id_]
        write(tmp_path, name, time, rows)
    pieces = spark.read.schema("id BIGINT").json(str(tmp_path / "users")).rdd.getNumPartitions()
    assert pieces > len(arriving) + 1
    assert run(tmp_path, spark) == {row["seat"]: (row["id"], row["v"]) for row in users.values()}

    # Two users take the seats of others, whose rows stay behind theirs.
    first, second, third = sorted(users)[:3]
    seats = {id_: users[id_]["seat"] for id_ in (first, second, third)}
    add_rows(
        tmp_path, "users", [{"id": 1000, "v": 1, "seat": seats[first]}, {"id": 1001, "v": 2, "seat": seats[second]}]
    )
    found = run(tmp_path, spark)
    assert (found[seats[first]], found[seats[second]]) == ((1000, 1), (1001, 2))
    assert len(found) == len(users)

    # They go, one by a delete and one by an update that the filter drops; a user below gives up the third seat.
    gone = [{"id": 1000, "op": "-D"}, {"id": 1001, "v": 7, "seat": "none"}, {"id": third, "v": 3, "seat": "new"}]
    add_rows(tmp_path, "users", gone)
    found = run(tmp_path, spark)
    users[third] = {"id": third, "v": 3, "seat": "new"}
    assert found == {row["seat"]: (row["id"], row["v"]) for row in users.values()}
