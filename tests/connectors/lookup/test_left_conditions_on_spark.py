"""LEFT lookup joins whose conditions compute with the columns found: against Spark's LEFT JOIN of the same rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.sample import sampled
from tests.spark.programs import add_rows, changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180
POLICY = Policy(modules=("tests.connectors.lookup.rates",))
ITEMS = [
    {"id": 1, "k": "a", "x": "x", "n": 1, "m": "1"},
    {"id": 2, "k": "A", "x": "Y", "n": 2, "m": "2"},
    {"id": 3, "k": "b", "x": None, "n": 3, "m": "3"},
    {"id": 4, "k": "none", "x": "x", "n": 2, "m": "9"},
    {"id": 5, "k": None, "x": "x", "n": None, "m": None},
    {"id": 6, "k": "B", "x": "q", "n": 0, "m": "2"},
]
DIMS = [
    {"code": "A", "name": "x", "n": 1, "rate": 1.5},
    {"code": "A", "name": "Y", "n": 2, "rate": 2.5},
    {"code": "A", "name": "xx", "n": 5, "rate": None},
    {"code": "B", "name": None, "n": None, "rate": 0.5},
    {"code": "B", "name": "7", "n": 2, "rate": 7.5},
    {"code": "a", "name": " x ", "n": 4, "rate": 3.5},
]
COLUMNS = {
    "items": "id BIGINT, k STRING, x STRING, n INT, m STRING",
    "dims": "code STRING, name STRING, n INT, rate DOUBLE",
}
CONDITIONS = [
    "t.k = d.code AND UPPER(d.name) = 'X'",
    "d.code = UPPER(t.k) AND UPPER(d.name) = UPPER(t.x)",
    "d.code = UPPER(t.k) AND CHAR_LENGTH(d.name) > t.n AND d.rate > 1",
    "d.code = UPPER(t.k) AND t.n > 0 AND SUBSTRING(d.name FROM 1 FOR 1) = t.x",
    "d.code = UPPER(t.k) AND (LOWER(d.name) = 'y' OR t.n + d.n > 5)",
    "d.n = CAST(t.m AS INT) AND CAST(d.n AS STRING) || d.name = '2' || t.x",
    "d.code = UPPER(t.k) AND CASE WHEN d.name = '7' THEN CAST(d.name AS INT) ELSE 0 END = 7 - t.n * 0",
    "t.k = d.code AND d.n BETWEEN 1 AND 4 AND TRIM(d.name) = t.x",
    "d.code = 'A' AND ROUND(d.rate) = t.n + 1",
    "t.k = d.code AND UPPER(d.name) IS NULL",
]
LABELLED = list(enumerate(CONDITIONS))
HALVES = sampled([pytest.param(LABELLED[::2]), pytest.param(LABELLED[1::2])], keep=1)
MODES: dict[str, dict[str, str]] = {
    "sync": {"class": "tests.connectors.lookup.rates.Rates"},
    "async": {"async-class": "tests.connectors.lookup.rates.AsyncRates"},
    "partial": {
        "async-class": "tests.connectors.lookup.rates.AsyncRates",
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.max-rows": "10",
    },
    "full": {
        "scan-class": "tests.connectors.lookup.rates.AllRates",
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "CUSTOM",
        "lookup.full-cache.custom-reload.class": "tests.connectors.lookup.rates.Never",
    },
    "deferred": {"async-class": "tests.connectors.lookup.rates.AsyncRates"},
}
DEFERRED = (
    "/*+ LOOKUP('table'='d', 'output-mode'='allow_unordered', 'retry-predicate'='lookup_miss', "
    "'retry-strategy'='fixed_delay', 'fixed-delay'='1 ms', 'max-attempts'='1') */"
)


def query(conditions: list[tuple[int, str]], *, dims: str, hint: str = "") -> str:
    return " UNION ALL ".join(
        f"SELECT {hint} {number} AS q, t.id, d.name, d.rate FROM items AS t LEFT JOIN {dims} AS d ON {on}"
        for number, on in conditions
    )


def job(directory: Path, conditions: list[tuple[int, str]], options: dict[str, str], **more: str) -> Plan:
    """The conditions over the items below ``directory``; ``more`` are options of both files."""
    for name in ("items", "result"):
        (directory / name).mkdir(exist_ok=True)
    (directory / "dims.json").write_text("".join(json.dumps(row) + "\n" for row in DIMS))
    looked_up = {"connector": "python", "properties.path": str(directory / "dims.json"), **options}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in looked_up.items())
    hint = DEFERRED if options is MODES["deferred"] else ""
    return hintplan.compile_sql(
        f"""
        CREATE TABLE items ({COLUMNS["items"]}) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/items', 'format' = 'json'{more.get("source", "")}
        );
        CREATE TABLE dims ({COLUMNS["dims"]}) WITH ({listed});
        CREATE TABLE result (q INT, id BIGINT, name STRING, rate DOUBLE) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/result', 'format' = 'json'{more.get("sink", "")}
        );
        INSERT INTO result {query(conditions, dims="dims FOR SYSTEM_TIME AS OF PROCTIME()", hint=hint)}
        """,
        {"execution.runtime-mode": more.get("mode", "streaming")},
    )


def expected(spark: SparkSession, conditions: list[tuple[int, str]], items: list[dict[str, Any]]) -> Counter[Any]:
    for name, rows in (("items", items), ("dims", DIMS)):
        spark.createDataFrame([Row(**row) for row in rows], COLUMNS[name]).createOrReplaceTempView(name)
    found = spark.sql(query(conditions, dims="dims")).collect()
    assert {row.name is None for row in found} == {True, False}
    return Counter(tuple(row) for row in found)


def result(directory: Path) -> Counter[Any]:
    return Counter((row["q"], row["id"], row.get("name"), row.get("rate")) for row in changes(directory))


def run(plan: Plan, spark: SparkSession, directory: Path) -> None:
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True, policy=POLICY)
    assert execution.await_termination(DEADLINE_SECONDS)


@pytest.mark.parametrize("conditions", HALVES, ids=["even", "odd"])
@pytest.mark.parametrize("mode", MODES)
def test_a_row_without_a_match_that_satisfies_the_condition_is_padded(
    spark: SparkSession, tmp_path: Path, mode: str, conditions: list[tuple[int, str]]
) -> None:
    conditions = conditions if mode == "sync" else conditions[:3]
    plan = job(tmp_path, conditions, MODES[mode])
    add_rows(tmp_path, "items", ITEMS)
    run(plan, spark, tmp_path)
    assert result(tmp_path) == expected(spark, conditions, ITEMS)


def test_a_cache_keeps_the_rows_of_the_table_and_not_what_a_condition_left(spark: SparkSession, tmp_path: Path) -> None:
    # Both ask for code A: the second item finds a row that the condition drops for the first.
    items = [{"id": 1, "k": "A", "x": "x", "n": 1, "m": "1"}, {"id": 2, "k": "A", "x": "y", "n": 1, "m": "1"}]
    conditions = [(0, "t.k = d.code AND LOWER(d.name) = t.x")]
    plan = job(tmp_path, conditions, MODES["partial"])
    add_rows(tmp_path, "items", items[:1])
    run(plan, spark, tmp_path)
    add_rows(tmp_path, "items", items[1:])
    run(plan, spark, tmp_path)
    assert result(tmp_path) == Counter([(0, 1, "x", 1.5), (0, 2, "Y", 2.5)])


@pytest.mark.parametrize("conditions", HALVES, ids=["even", "odd"])
def test_updates_and_deletions_take_back_what_they_had_found(
    spark: SparkSession, tmp_path: Path, conditions: list[tuple[int, str]]
) -> None:
    options = {"source": ", 'source.changelog' = 'true'", "sink": ", 'sink.changelog' = 'true'"}
    plan = job(tmp_path, conditions, MODES["sync"], **options)
    add_rows(tmp_path, "items", [{**row, "op": "+I"} for row in ITEMS])
    run(plan, spark, tmp_path)
    changed = {**ITEMS[1], "x": "x", "n": 4}
    late = [{**ITEMS[0], "op": "-D"}, {**ITEMS[1], "op": "-U"}, {**changed, "op": "+U"}, {**ITEMS[3], "op": "-D"}]
    add_rows(tmp_path, "items", late)
    run(plan, spark, tmp_path)
    left: Counter[Any] = Counter()
    for row in changes(tmp_path):
        weight = 1 if row["op"] in ("+I", "+U") else -1
        left[row["q"], row["id"], row.get("name"), row.get("rate")] += weight
    assert all(weight >= 0 for weight in left.values())
    assert +left == expected(spark, conditions, [changed, ITEMS[2], *ITEMS[4:]])


@pytest.mark.parametrize("conditions", HALVES, ids=["even", "odd"])
def test_a_batch_job_gives_the_same(spark: SparkSession, tmp_path: Path, conditions: list[tuple[int, str]]) -> None:
    plan = job(tmp_path, conditions, MODES["sync"], mode="batch")
    add_rows(tmp_path, "items", ITEMS)
    assert execute(plan, spark, policy=POLICY).await_termination(DEADLINE_SECONDS)
    rows = [json.loads(line) for path in (tmp_path / "result").glob("*.json") for line in path.open()]
    found = Counter((row["q"], row["id"], row.get("name"), row.get("rate")) for row in rows)
    assert found == expected(spark, conditions, ITEMS)


def test_what_is_no_condition_is_refused_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    plan = job(tmp_path, LABELLED[:1], MODES["sync"])
    (lookup,) = [operator for operator in plan.operators if operator.id.startswith("lookup")]
    wrong = replace(lookup, filter="upper(name)")
    plan = replace(plan, operators=tuple(wrong if o is lookup else o for o in plan.operators))
    with pytest.raises(RunError, match="operator lookup_d: Spark cannot evaluate the expression"):
        execute(plan, spark, once=True, policy=POLICY)
