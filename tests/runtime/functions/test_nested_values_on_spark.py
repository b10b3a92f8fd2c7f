"""ROW, ARRAY and MAP as arguments and results of functions of the user's, and fields of ROWs as keys of lookups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planner import compile_sql
from plans.connectors.policy import Policy
from runtime.run.execute import execute
from tests.runtime.functions.nested_samples import Cities, Counted, Moved, Priced
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
POLICY = Policy(modules=("tests.runtime.functions.nested_samples", "tests.connectors.lookup.rates"))
BUYER = "ROW<name STRING, address ROW<city STRING, zip INT>>"
CARTS: list[dict[str, Any]] = [
    {
        "id": 1,
        "buyer": {"name": "ann", "address": {"city": "Rom", "zip": 5}},
        "tags": ["a", "b", "a"],
        "prices": {"a": 1.5},
    },
    {"id": 2, "buyer": {"name": None, "address": None}, "tags": [], "prices": {}},
    {"id": 3},
    {
        "id": 4,
        "buyer": {"name": "bo", "address": {"city": "Rom", "zip": 2}},
        "tags": ["c", None],
        "prices": {"c": None, "d": 2.0},
    },
    {"id": 5, "buyer": {"name": "cy", "address": {"city": "Oslo", "zip": None}}, "tags": ["x"], "prices": {"y": 0.5}},
]


def job(directory: Path, query: str, columns: str, **more: str) -> Any:
    for name in ("carts", "result"):
        (directory / name).mkdir(exist_ok=True)
    files = "'connector' = 'filesystem', 'format' = 'json'"
    script = f"""
    CREATE TABLE carts (id BIGINT, buyer {BUYER}, tags ARRAY<STRING>, prices MAP<STRING, DOUBLE>)
    WITH ({files}, 'path' = '{directory / "carts"}'{more.get("source", "")});
    CREATE TABLE cities (city STRING, country STRING, facts ROW<size INT, names ARRAY<STRING>>) WITH (
      'connector' = 'python',
      'class' = 'tests.connectors.lookup.rates.Rates', 'properties.path' = '{directory / "cities.json"}'
    );
    CREATE TABLE r ({columns}) WITH ({files}, 'path' = '{directory / "result"}'{more.get("sink", "")});
    INSERT INTO r {query};"""
    functions: dict[str, type | str] = {"moved": Moved, "counted": Counted, "priced": Priced, "cities_of": Cities}
    return compile_sql(script, {"parallelism.default": "2"}, functions=functions)


def run(plan: Any, spark: SparkSession, directory: Path) -> list[dict[str, Any]]:
    execution = execute(plan, spark, once=True, checkpoint=str(directory / "checkpoint"), policy=POLICY)
    assert execution.await_termination(DEADLINE_SECONDS)
    return [without_nulls(row) for row in changes(directory)]


def without_nulls(value: Any) -> Any:
    """``value`` without the fields that are NULL, as it may be written."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return value


def test_scalar_functions_take_and_return_nested_values(spark: SparkSession, tmp_path: Path) -> None:
    plan = job(
        tmp_path,
        "SELECT id, moved(buyer, 'Bonn'), counted(tags), moved(ROW('x', ROW('y', 3)), buyer.address.city).address.zip, "
        "counted(ARRAY[buyer.name, 'x'])['x'] FROM carts",
        f"id BIGINT, m {BUYER}, n MAP<STRING, INT>, z INT, c INT",
    )
    add_rows(tmp_path, "carts", CARTS)
    found = {row.pop("id"): row for row in run(plan, spark, tmp_path)}
    assert found == {
        1: {"m": {"name": "ann", "address": {"city": "Bonn", "zip": 5}}, "n": {"a": 2, "b": 1}, "z": 3, "c": 1},
        2: {"m": {"address": {"city": "Bonn"}}, "n": {}, "z": 3, "c": 1},
        3: {"z": 3, "c": 1},
        4: {"m": {"name": "bo", "address": {"city": "Bonn", "zip": 2}}, "n": {"c": 1}, "z": 3, "c": 1},
        5: {"m": {"name": "cy", "address": {"city": "Bonn"}}, "n": {"x": 1}, "z": 3, "c": 1},
    }


def test_a_table_function_takes_and_returns_nested_values(spark: SparkSession, tmp_path: Path) -> None:
    plan = job(
        tmp_path,
        "SELECT id, p.entry.k, p.entry.v, p.tags FROM carts LEFT JOIN LATERAL TABLE(priced(prices, tags)) AS p ON TRUE",
        "id BIGINT, k STRING, v DOUBLE, tags ARRAY<STRING>",
    )
    add_rows(tmp_path, "carts", CARTS)
    found = run(plan, spark, tmp_path)
    assert sorted(found, key=lambda row: (row["id"], row.get("k", ""))) == [
        {"id": 1, "k": "a", "v": 1.5, "tags": ["a", "a"]},
        {"id": 2},
        {"id": 3},
        {"id": 4, "k": "c", "tags": ["c"]},
        {"id": 4, "k": "d", "v": 2.0, "tags": []},
        {"id": 5, "k": "y", "v": 0.5, "tags": []},
    ]


def test_an_aggregate_function_takes_back_and_returns_nested_values(spark: SparkSession, tmp_path: Path) -> None:
    options = {"source": ", 'source.changelog' = 'true'", "sink": ", 'sink.changelog' = 'true'"}
    plan = job(
        tmp_path,
        "SELECT id > 3, cities_of(buyer) FROM carts GROUP BY id > 3",
        "late BOOLEAN, c ROW<cities ARRAY<STRING>, zips MAP<STRING, ARRAY<INT>>>",
        **options,
    )
    add_rows(tmp_path, "carts", [{**cart, "op": "+I"} for cart in CARTS])
    more = {"id": 6, "buyer": {"name": "x", "address": {"city": "Bonn", "zip": 1}}}
    last = {"id": 7, "buyer": {"name": "y", "address": {"city": "Rom", "zip": 1}}}
    run(plan, spark, tmp_path)
    add_rows(tmp_path, "carts", [{**CARTS[3], "op": "-D"}, {**more, "op": "+I"}, {**last, "op": "+I"}])
    left: dict[str, int] = {}
    for row in run(plan, spark, tmp_path):
        weight = 1 if row.pop("op") in ("+I", "+U") else -1
        text = json.dumps(row, sort_keys=True)
        left[text] = left.get(text, 0) + weight
    found = [json.loads(text) for text, weight in left.items() for _ in range(weight)]
    assert sorted(found, key=lambda row: str(row["late"])) == [
        {"late": False, "c": {"cities": ["Rom"], "zips": {"Rom": [5]}}},
        {"late": True, "c": {"cities": ["Bonn", "Rom"], "zips": {"Bonn": [1], "Rom": [1]}}},
    ]


def test_a_lookup_asks_by_a_field_and_finds_nested_values(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"city": "Rom", "country": "IT", "facts": {"size": 3, "names": ["Rome", "Roma"]}},
        {"city": "Oslo", "country": "NO", "facts": {"size": 1, "names": None}},
        {"city": "Rom", "country": "US", "facts": None},
    ]
    (tmp_path / "cities.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = job(
        tmp_path,
        "SELECT c.id, d.country, d.facts.names[1], d.facts FROM carts AS c LEFT JOIN cities FOR SYSTEM_TIME AS OF "
        "PROCTIME() AS d ON d.city = c.buyer.address.city AND (d.facts.size > 2 OR CARDINALITY(c.tags) < 2)",
        "id BIGINT, country STRING, name STRING, facts ROW<size INT, names ARRAY<STRING>>",
    )
    add_rows(tmp_path, "carts", CARTS)
    found = run(plan, spark, tmp_path)
    rom = {"country": "IT", "name": "Rome", "facts": {"size": 3, "names": ["Rome", "Roma"]}}
    expected: list[dict[str, Any]] = [
        {"id": 1, **rom},
        {"id": 2},
        {"id": 3},
        {"id": 4, **rom},
        {"id": 5, "country": "NO", "facts": {"size": 1}},
    ]
    assert sorted(found, key=lambda row: row["id"]) == expected
