"""Who reads a scan: the same reasons in `explain` and in runs."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.scan_readers import scan_readers
from hintplan.plans.connectors.connector import Readable
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.show.explain import explain_json, plan_tree

SUM = "SELECT k, SUM(v) FROM t GROUP BY k"


def files(columns: str = "k BIGINT, v BIGINT", by: str = "", **options: str) -> str:
    given = {"connector": "filesystem", "format": "parquet", "path": "t", **options}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE t ({columns}) {by} WITH ({listed});"


def readers(table: str, query: str = SUM, mode: str = "streaming") -> dict[str, str]:
    script = f"""SET 'execution.runtime-mode' = '{mode}'; {table}
    CREATE TABLE d (k BIGINT, n STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:d.db', 'table-name' = 'd');
    CREATE TABLE r (k BIGINT, v BIGINT) WITH ('connector' = 'print');
    INSERT INTO r {query};"""
    return dict(scan_readers(compile_sql(script)))


DAYS = files("k BIGINT, v BIGINT, day STRING", "PARTITIONED BY (day)")
KAFKA = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:9",
    "scan.startup.mode": "earliest-offset",
}


def topic(**options: str) -> str:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**KAFKA, **options}.items())
    return f"CREATE TABLE t (k BIGINT, v BIGINT) WITH ({listed});"


@pytest.mark.parametrize(
    ("table", "reader"),
    [
        (files(), "read in Arrow"),
        (DAYS, "read in Arrow"),
        (files("k BIGINT, v BIGINT METADATA FROM 'file.size'"), "read in Arrow"),
        (files(**{"source.changelog": "true"}), "read in Arrow"),
        (files("k BIGINT, v BIGINT, a ARRAY<INT>"), "read in Arrow"),
        (files(path="s3a://lake/t"), "read in Arrow"),
        (files(path="hdfs://namenode/t"), "read in Arrow"),
        (files(path="gs://lake/t"), "read by Spark: gs://"),
        (files(format="orc"), "read in Arrow"),
        (files("k BIGINT, v BIGINT, day DATE, at TIMESTAMP(3)", format="orc"), "read in Arrow"),
        (files("k BIGINT, v BIGINT, day DATE", "PARTITIONED BY (day)", format="orc"), "read in Arrow"),
        (files(format="avro"), "read by Spark: Avro"),
        (topic(format="json"), "read in Arrow"),
        (topic(format="debezium-json"), "read by Spark: changelog"),
    ],
)
def test_the_declaration_of_a_table_decides_who_reads_it(table: str, reader: str) -> None:
    assert readers(table) == {"scan_t": reader}


@pytest.mark.parametrize(
    ("table", "query", "reader"),
    [
        (
            files("k BIGINT, v BIGINT, a ARRAY<INT>", format="json"),
            "SELECT k, SUM(a[1]) FROM t GROUP BY k",
            "nested column a",
        ),
        (
            DAYS,
            "SELECT k, SUM(v) FROM t WHERE day > '2020-01-01' GROUP BY k",
            "a condition on partition column day leaves out files",
        ),
        (
            files("k BIGINT, v BIGINT, day DATE", format="orc"),
            "SELECT k, COUNT(day) FROM t GROUP BY k",
            "DATE column day",
        ),
        (
            files("k BIGINT, v BIGINT, r ROW<a ARRAY<TIMESTAMP(3)>>", format="orc"),
            "SELECT k, SUM(CARDINALITY(r.a)) FROM t GROUP BY k",
            "TIMESTAMP column r",
        ),
        (
            files("k BIGINT, v BIGINT, `a.b` INT", format="orc"),
            "SELECT k, SUM(`a.b`) FROM t GROUP BY k",
            "column a.b",
        ),
        (
            files(),
            "SELECT k, SUM(v) FROM (SELECT k, v FROM t UNION ALL SELECT v, k FROM t) GROUP BY k",
            "Spark computes union",
        ),
    ],
)
def test_a_query_decides_too(table: str, query: str, reader: str) -> None:
    assert all(found.startswith(f"read by Spark: {reader}") for found in readers(table, query).values())
    assert readers(table, query)


def test_workers_read_nested_columns_of_parquet() -> None:
    table = files("k BIGINT, v BIGINT, a ARRAY<ROW<x INT>>, m MAP<STRING, BIGINT>")
    join = "SELECT x.k, y.v FROM t AS x JOIN t AS y ON x.k = y.v AND CARDINALITY(x.a) > CARDINALITY(y.a)"
    assert set(readers(table, join).values()) == {"read in Arrow"}
    assert readers(table, "SELECT k, SUM(m['x']) FROM t GROUP BY k") == {
        "scan_t": "read in Arrow if Arrow computes calc_t"
    }


def test_a_condition_on_another_column_is_for_arrow_if_it_can() -> None:
    query = "SELECT k, SUM(v) FROM t WHERE v > 1 GROUP BY k"
    assert readers(DAYS, query) == {"scan_t": "read in Arrow if Arrow computes calc_t"}


@pytest.mark.parametrize(("mode", "query"), [("batch", SUM), ("streaming", "SELECT k, v FROM t")])
def test_without_an_operator_with_state_spark_reads_every_table(mode: str, query: str) -> None:
    assert readers(files(), query, mode) == {}


def test_explain_shows_who_reads_a_scan() -> None:
    script = (
        f"{files(format='avro')} CREATE TABLE r (k BIGINT, v BIGINT) WITH ('connector' = 'print'); INSERT INTO r {SUM};"
    )
    plan = compile_sql(script)
    (line,) = [line for line in plan_tree(plan).splitlines() if "scan_t" in line]
    assert line.endswith("filesystem · 2 of 2 columns · read by Spark: Avro")
    (scan,) = [operator for operator in explain_json(plan)["operators"] if operator["op"] == "scan"]
    assert scan["description"] == "filesystem · 2 of 2 columns · read by Spark: Avro"


def test_connectors_have_a_reader_in_arrow_where_their_code_has_one() -> None:
    pytest.importorskip("pyspark")
    from hintplan.runtime.connectors.connector import ArrowSource
    from hintplan.runtime.connectors.table import CODE

    described = {name for name, found in CONNECTORS.items() if isinstance(found, Readable) and found.read_in_arrow}
    assert described == {name for name, code in CODE.items() if isinstance(code, ArrowSource)}
