"""The flights example: its data, and its result against Spark's batch answer and plain Python."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import sqlite3
from collections import defaultdict
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"


@pytest.fixture(scope="session")
def prepare() -> dict:
    return runpy.run_path(str(EXAMPLE / "prepare.py"))


@pytest.fixture(scope="session")
def data(prepare, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("flights") / "data"
    prepare["main"](target)
    return target


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_year_is_there_week_by_week_in_order_of_departure(data):
    files = sorted((data / "flights").iterdir())
    assert len(files) == 53
    flights = [flight for file in files for flight in lines(file)]
    # The sizes that the data set's own documentation gives.
    assert len(flights) == 336_776
    assert len(lines(data / "planes" / "planes.json")) == 3_322
    assert len(lines(data / "airlines" / "airlines.json")) == 16
    departures = [flight["sched_dep"] for flight in flights]
    assert departures == sorted(departures)
    ages = [file.stat().st_mtime for file in files]
    assert ages == sorted(set(ages))


def test_the_first_flight_is_as_the_package_has_it(data):
    first = lines(data / "flights" / "flights-2013-w01.json")[0]
    assert first == {
        "sched_dep": "2013-01-01 05:15:00", "carrier": "UA", "flight": 1545, "tailnum": "N14228", "origin": "EWR",
        "dest": "IAH", "dep_delay": 2, "arr_delay": 11, "air_time": 227, "distance": 1400,
    }  # fmt: skip


def test_preparing_again_elsewhere_yields_the_same_bytes(prepare, data, tmp_path):
    def digests(root: Path) -> dict[str, str]:
        files = (path for path in root.rglob("*") if path.is_file())
        return {str(f.relative_to(root)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}

    prepare["main"](tmp_path / "data")
    assert digests(tmp_path / "data") == digests(data)


def test_what_is_prepared_is_left_alone(prepare, tmp_path):
    (tmp_path / "data").mkdir()
    prepare["main"](tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_preparing_that_fails_leaves_nothing_behind(prepare, tmp_path, monkeypatch):
    def broken(path):
        raise OSError("disk full")

    monkeypatch.setitem(prepare["main"].__globals__, "weeks", broken)
    with pytest.raises(OSError, match="disk full"):
        prepare["main"](tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def expected(prepare) -> dict[tuple[str, str], tuple[int, float | None, int]]:
    """The result of flights.sql in plain Python: flights, mean delay and distance by airline and maker."""
    source = prepare["package_data"]()
    makers = {row["tailnum"]: row["manufacturer"] for row in prepare["rows"](source / "planes.csv")}
    airlines = {row["carrier"]: row["name"] for row in prepare["rows"](source / "airlines.csv")}
    delays, distances, counts = defaultdict(list), defaultdict(int), defaultdict(int)
    for row in prepare["rows"](source / "flights.csv.zip"):
        group = airlines[row["carrier"]], makers.get(row["tailnum"], "unknown")
        counts[group] += 1
        distances[group] += int(row["distance"])
        if row["arr_delay"] != "NA":
            delays[group].append(float(row["arr_delay"]))
    return {
        group: (count, sum(delays[group]) / len(delays[group]) if delays[group] else None, distances[group])
        for group, count in counts.items()
    }


def by_spark_batch(spark, sql: str, data: Path) -> dict[tuple[str, str], tuple[int, float | None, int]]:
    """The query of the script, hints taken out, by Spark's own SQL over all files at once."""
    for table in ("flights", "planes", "airlines"):
        spark.read.json(str(data / table)).createOrReplaceTempView(table)
    query = re.sub(r"/\*\+.*?\*/", "", sql[sql.index("INSERT INTO delays") + len("INSERT INTO delays") :])
    return {tuple(row)[:2]: tuple(row)[2:] for row in spark.sql(query.rstrip().rstrip(";")).collect()}


@pytest.mark.each_gate
@pytest.mark.integration
@pytest.mark.spark
def test_the_stream_ends_with_what_spark_batch_and_plain_python_compute(spark, prepare, data, tmp_path):
    from hintplan import compile_sql, execute

    sql = (EXAMPLE / "flights.sql").read_text()
    assert sql.count("'data/") == 3
    sql = sql.replace("'data/", f"'{data}/").replace("sqlite:delays.db", f"sqlite:{tmp_path}/delays.db")
    execution = execute(compile_sql(sql), spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    assert execution.await_termination(timeout=600)
    connection = sqlite3.connect(tmp_path / "delays.db")
    found = {row[:2]: row[2:] for row in connection.execute("SELECT * FROM delays")}
    connection.close()
    for wanted in (by_spark_batch(spark, sql, data), expected(prepare)):
        assert len(wanted) == 70
        assert found.keys() == wanted.keys()
        for group, (flights, delay, distance) in wanted.items():
            assert found[group] == (flights, delay if delay is None else pytest.approx(delay, rel=1e-12), distance)
