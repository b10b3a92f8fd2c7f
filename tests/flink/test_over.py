"""Functions of the rows around a row leave the rows that Flink recorded for them in batch mode."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from tests.flink.over import COLUMNS, QUERIES, ROWS
from tests.flink.values import plain

RECORDED: dict[str, list[list[Any]]] = json.loads(Path(__file__).with_name("over.json").read_text(encoding="utf-8"))
DEADLINE_SECONDS = 300
NAMES = [column.split()[0] for column in COLUMNS.replace("(10, 2)", "").split(", ")]


def script(folder: Path, names: list[str]) -> str:
    """The queries, each into a table of its own."""
    declared = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{folder / 'o.json'}'"
    parts = ["SET 'execution.runtime-mode' = 'batch';", f"CREATE TABLE o ({COLUMNS}) WITH ({declared});"]
    for number, (columns, query) in enumerate(QUERIES[name] for name in names):
        options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{folder / str(number)}'"
        parts += [f"CREATE TABLE r{number} ({columns}) WITH ({options});", f"INSERT INTO r{number} {query};"]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def results(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Counter[str]]:
    from hintplan.runtime.run.execute import execute

    folder = tmp_path_factory.mktemp("over")
    asked = (item for item in request.session.items if item.path == request.path)
    names = [item.callspec.params["name"] for item in asked if hasattr(item, "callspec")]
    rows = (json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS)
    (folder / "o.json").write_text("".join(rows), encoding="utf-8")
    assert execute(hintplan.compile_sql(script(folder, names)), spark).await_termination(DEADLINE_SECONDS)
    found = {}
    for number, name in enumerate(names):
        frame = spark.read.parquet(str(folder / str(number)))
        found[name] = Counter(text(list(row)) for row in frame.collect())
    return found


def text(row: list[Any]) -> str:
    """A row to compare; doubles up to what the order of additions decides."""
    return json.dumps([f"{each:.10g}" if isinstance(each, float) else plain(each) for each in row])


def wanted(name: str) -> Counter[str]:
    columns = QUERIES[name][0].replace(", 2)", ")").replace(", 6)", ")").split(", ")
    doubles = [column.endswith("DOUBLE") for column in columns]
    return Counter(
        json.dumps([f"{float(v):.10g}" if d and v is not None else v for v, d in zip(row, doubles, strict=True)])
        for row in RECORDED[name]
    )


def test_there_is_an_answer_for_each_query_and_none_else() -> None:
    assert RECORDED.keys() == QUERIES.keys()


@pytest.mark.spark
@pytest.mark.part(of=4)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_leaves_the_rows_that_flink_left(name: str, results: dict[str, Counter[str]]) -> None:
    assert results[name] == wanted(name)
