"""TIME in scripts: its literals, where a column of it may stand, and what is refused by name, with its place."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan

FILES = "'connector' = 'filesystem', 'path' = 'x', 'format'"
TOPIC = "'topic' = 'x', 'properties.bootstrap.servers' = 'h:1'"
KEYED = f"'connector' = 'upsert-kafka', {TOPIC}"


def compiled(column: str, options: str, query: str = "SELECT CAST(a AS STRING) FROM t", more: str = "") -> Plan:
    return compile_sql(
        f"CREATE TABLE t (k STRING, {column}{more}) WITH ({options});\n"
        f"CREATE TABLE r (x STRING) WITH ('connector' = 'print');\nINSERT INTO r {query};"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [("time", "TIME(0)"), ("TIME(3) not null", "TIME(3) NOT NULL"), ("TIME(1) WITHOUT TIME ZONE", "TIME(1)")],
)
def test_a_type_is_read(text: str, kind: str) -> None:
    assert str(parse_type(text)) == kind


@pytest.mark.parametrize(
    "text", ["TIME(4)", "TIME(9)", "TIME(1, 2)", "TIME WITH TIME ZONE", "TIME(3) WITH LOCAL TIME ZONE"]
)
def test_another_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TIME"):
        parse_type(text)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (f"{FILES} = 'json'", ""),
        (f"{FILES} = 'csv'", ""),
        (f"'connector' = 'kafka', {TOPIC}, 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'", ""),
        (f"'connector' = 'kafka', {TOPIC}, 'scan.startup.mode' = 'earliest-offset', 'value.format' = 'csv'", ""),
        (f"{KEYED}, 'key.format' = 'json', 'value.format' = 'json'", ", PRIMARY KEY (k) NOT ENFORCED"),
    ],
)
def test_a_table_of_texts_has_columns_of_time(options: str, more: str) -> None:
    plan = compiled("a TIME(3)", options, more=more)
    assert plan.tables["t"].columns[1].type == "TIME(3)"
    assert plan_problems(plan) == ()


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        *(("a TIME", f"{FILES} = '{f}'", f"with the format {f} has no TIME") for f in ("parquet", "orc", "avro")),
        ("a TIME", "'connector' = 'datagen'", "the datagen connector has no TIME"),
        (
            "a TIME",
            "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:x', 'table-name' = 't'",
            "the jdbc connector has no TIME",
        ),
        ("a TIME", "'connector' = 'delta', 'table-path' = 'x'", "the delta connector has no TIME"),
        ("a TIME", f"'connector' = 'kafka', {TOPIC}, 'format' = 'avro'", "with the format avro has no TIME"),
        (
            "a TIME",
            f"'connector' = 'kafka', {TOPIC}, 'format' = 'debezium-json'",
            "with the format debezium-json has no",
        ),
        ("a ARRAY<TIME>", f"{FILES} = 'json'", "the contents of a value of the filesystem connector has no TIME"),
        ("a ROW<b TIME(3)>", f"{FILES} = 'json'", "the contents of a value of the filesystem connector has no TIME"),
    ],
)
def test_any_other_table_is_refused_where_the_column_stands(column: str, options: str, said: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(column, options, "SELECT k FROM t")
    problems = caught.value.diagnostics
    assert any(said in problem.message for problem in problems) or "scan.startup" in problems[0].message
    assert problems[0].line == 1


def test_a_looked_up_table_and_a_partition_have_none() -> None:
    script = f"""CREATE TABLE t (k STRING, p AS PROCTIME()) WITH ({FILES} = 'json');
    CREATE TABLE d (k STRING, a TIME) WITH ({FILES} = 'json');
    CREATE TABLE r (x STRING) WITH ('connector' = 'print');
    INSERT INTO r SELECT d.k FROM t JOIN d FOR SYSTEM_TIME AS OF t.p ON t.k = d.k;"""
    with pytest.raises(SqlError, match="table 'd' cannot be looked up: column 'a' is TIME"):
        compile_sql(script)
    with pytest.raises(SqlError, match="partition column 'a' is TIME"):
        compile_sql(f"CREATE TABLE t (k STRING, a TIME) PARTITIONED BY (a) WITH ({FILES} = 'json');")


@pytest.mark.parametrize(
    ("text", "said"),
    [("24:00:00", "is not a TIME"), ("10:11", "is not a TIME"), ("x", "is not a TIME"), ("23:59:60", "is not a TIME")],
)
def test_a_literal_that_is_no_time_is_refused(text: str, said: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled("a TIME", f"{FILES} = 'json'", f"SELECT k FROM t WHERE a = TIME '{text}'")
    (problem,) = caught.value.diagnostics
    assert said in problem.message
    assert problem.line == 3


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("a = ts", "does not take TIME"),
        ("a + 1 IS NULL", "does not take TIME"),
        ("a + INTERVAL '1' MONTH IS NULL", "does not take TIME"),
        ("a || 'x' = ''", "does not take TIME"),
        ("DATE_FORMAT(a, 'HH') = ''", "must be a DATE or TIMESTAMP, found TIME"),
        ("FLOOR(a TO DAY) = a", "a TIME has no DAY"),
        ("CEIL(a TO HOUR) = a", "CEIL of a TIME is not supported: in Flink it may be 24:00:00"),
        ("TIMESTAMPADD(MONTH, 1, a) = a", "a TIME has no MONTH"),
        ("TIMESTAMPDIFF(HOUR, a, ts) = 1", "must be a DATE or TIMESTAMP, found TIME"),
        ("TIMESTAMPDIFF(MONTH, a, a) = 1", "must be a DATE or TIMESTAMP, found TIME"),
        ("EXTRACT(YEAR FROM a) = 1", "a TIME has no YEAR"),
        ("CAST(a AS INT) = 1", "CAST from TIME(0) to INT is not supported"),
        ("CAST(a AS DATE) IS NULL", "CAST from TIME(0) to DATE is not supported"),
        ("a IN (1)", "does not take TIME"),
    ],
)
def test_what_a_time_is_not_taken_for_is_refused(expression: str, said: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled("a TIME, ts TIMESTAMP(3)", f"{FILES} = 'json'", f"SELECT k FROM t WHERE {expression}")
    assert said in caught.value.diagnostics[0].message


def test_the_time_of_the_batch_is_refused_over_rows_that_change() -> None:
    query = "SELECT CAST(LOCALTIME AS STRING) || CAST(n AS STRING) FROM (SELECT COUNT(*) AS n FROM t)"
    with pytest.raises(SqlError, match="the current time over a query whose rows can change"):
        compiled("a TIME", f"{FILES} = 'json'", query)
