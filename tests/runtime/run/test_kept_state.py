"""State that is kept by consent is read, written, compacted and copied like any; results were worked out by hand."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.compact import compact_state
from hintplan.runtime.inspect.read import read_state
from hintplan.runtime.inspect.snapshot import take_snapshot
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import in_with

pytestmark = [pytest.mark.spark]

KEPT = ("deduplicate_o", "join_t_c", "aggregate_r")


def job(directory: Path, countries: str) -> Plan:
    """The first row of each id, of these countries, with the name of its k: of each name the number and the sum."""
    tables = "".join(
        f"CREATE TABLE {name} ({columns}) WITH ({in_with(options)});"
        for name, columns, options in (
            ("o", "id INT, k INT, country STRING, v INT", files(directory / "o")),
            ("c", "k INT, name STRING", files(directory / "c")),
            (
                "r",
                "name STRING, n BIGINT, s INT, PRIMARY KEY (name) NOT ENFORCED",
                {"connector": "jdbc", "url": f"jdbc:sqlite:{directory}/r.db", "table-name": "r"},
            ),
        )
    )
    first = (
        "SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY PROCTIME()) AS n FROM o "
        f"WHERE country IN ({countries})) WHERE n = 1"
    )
    return hintplan.compile_sql(
        f"{tables} CREATE VIEW t AS {first};"
        "INSERT INTO r SELECT c.name, COUNT(*), SUM(t.v) FROM t JOIN c ON t.k = c.k GROUP BY c.name;",
        name="job",
    )


def files(path: Path) -> dict[str, str]:
    return {"connector": "filesystem", "format": "json", "path": str(path)}


def add(directory: Path, name: str, number: int, *rows: dict[str, object]) -> None:
    (directory / name).mkdir(exist_ok=True)
    (directory / name / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_rows_that_are_there_stay_and_rows_to_come_meet_them(spark: SparkSession, tmp_path: Path) -> None:
    def run(plan: Plan, checkpoint: str, **given: object) -> list[tuple[object, ...]]:
        assert execute(plan, spark, checkpoint=str(tmp_path / checkpoint), once=True, **given).await_termination(180)
        with sqlite3.connect(tmp_path / "r.db") as connection:
            return connection.execute("SELECT * FROM r ORDER BY name").fetchall()

    add(tmp_path, "c", 0, {"k": 1, "name": "x"}, {"k": 2, "name": "y"})
    add(
        tmp_path, "o", 0,
        {"id": 1, "k": 1, "country": "DE", "v": 10},
        {"id": 2, "k": 2, "country": "FR", "v": 20},
        {"id": 3, "k": 1, "country": "IT", "v": 40},
    )  # fmt: skip
    german, italian = job(tmp_path, "'DE', 'FR'"), job(tmp_path, "'DE', 'IT'")
    assert {operator.id for operator in german.operators if operator.id.startswith(("dedup", "join", "agg"))} == set(
        KEPT
    )
    assert run(german, "c1") == [("x", 1, 10), ("y", 1, 20)]
    # The first row of id 1 is known; that of id 3 was not let in, so its next one is its first. That of id 2 stays.
    add(
        tmp_path, "o", 1,
        {"id": 1, "k": 1, "country": "IT", "v": 100},
        {"id": 3, "k": 1, "country": "IT", "v": 200},
        {"id": 4, "k": 2, "country": "DE", "v": 400},
        {"id": 5, "k": 2, "country": "FR", "v": 800},
    )  # fmt: skip
    with pytest.raises(hintplan.RunError, match="holds state that this plan does not continue"):
        run(italian, "c1")
    assert run(italian, "c1", keep_state=KEPT) == [("x", 2, 210), ("y", 2, 420)]
    state = {each.id: each for query in read_state(italian, str(tmp_path / "c1")).queries for each in query.operators}
    assert {name: state[name].entries[0].amount.rows for name in KEPT} == {KEPT[0]: 4, KEPT[1]: 4, KEPT[2]: 2}

    assert compact_state(str(tmp_path / "c1")).states
    take_snapshot(str(tmp_path / "c1"), str(tmp_path / "c2"))
    add(tmp_path, "o", 2, {"id": 2, "k": 2, "country": "IT", "v": 1}, {"id": 6, "k": 2, "country": "IT", "v": 1000})
    assert run(italian, "c1", keep_state=KEPT) == [("x", 2, 210), ("y", 3, 1420)]
    # The copy reads the same rows again, and the sink has them; and the plan before continues by consent, too.
    assert run(italian, "c2") == [("x", 2, 210), ("y", 3, 1420)]
    add(tmp_path, "o", 3, {"id": 7, "k": 1, "country": "FR", "v": 5}, {"id": 8, "k": 1, "country": "IT", "v": 7})
    assert run(german, "c1", keep_state=KEPT) == [("x", 3, 215), ("y", 3, 1420)]
