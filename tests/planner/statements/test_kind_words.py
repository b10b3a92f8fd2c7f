"""Sentences for what people write by habit: each says what is the matter and what to write, and that compiles."""

from __future__ import annotations

import pytest

from planner import compile_sql
from planner.compile import compile_script
from plans.errors import SqlError

TABLES = """
CREATE TABLE o (k INT, s STRING, ts TIMESTAMP(3), f ROW<a INT>, p AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE d (k INT, v INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/d', 'table-name' = 'd');
CREATE TABLE b (k INT) WITH ('connector' = 'filesystem', 'path' = 'b', 'format' = 'json');
CREATE TABLE r (k INT) WITH ('connector' = 'print');
"""
LOOKUP = "o.k FROM o JOIN d FOR SYSTEM_TIME AS OF o.p AS d ON o.k = d.k"
EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"

ERRORS = {
    "a field of a ROW": (
        "INSERT INTO r SELECT f.a FROM o",
        "'f' is a column of 'o', and fields of a column cannot be read yet",
        "have the source write the field into a column of its own",
    ),
    "a field of a ROW of a sub-query": (
        "INSERT INTO r SELECT f.a FROM (SELECT f FROM o)",
        "'f' is a column, and fields of a column cannot be read yet",
        "have the source write the field into a column of its own",
    ),
    "the name of a table that has an alias and a column of the name": (
        "INSERT INTO r SELECT o.k FROM (SELECT k, s AS o FROM o) AS x",
        "'o' is a column of 'x', and fields of a column cannot be read yet",
        "have the source write the field into a column of its own",
    ),
    "FLOOR to a unit": (
        "INSERT INTO r SELECT k FROM o WHERE FLOOR(ts TO HOUR) > ts",
        "FLOOR or CEIL of a time to a unit is not supported",
        "TIMESTAMPADD(HOUR, TIMESTAMPDIFF(HOUR, t0, x), t0)",
    ),
    "CEIL to a unit": (
        "INSERT INTO r SELECT k FROM o WHERE CEIL(ts TO DAY) > ts",
        "FLOOR or CEIL of a time to a unit is not supported",
        "TIMESTAMPADD",
    ),
    "OVERLAY": (
        "INSERT INTO r SELECT k FROM o WHERE OVERLAY(s PLACING 'x' FROM 2) = 'a'",
        "OVERLAY is not supported",
        "write CONCAT(SUBSTRING(x FROM 1 FOR n - 1), y, SUBSTRING(x FROM n + CHAR_LENGTH(y)))",
    ),
    "LIKE a view": (
        "CREATE VIEW v AS SELECT k FROM o; CREATE TABLE x LIKE v",
        "'v' is a view, and LIKE takes tables",
        "write CREATE TABLE ... AS SELECT",
    ),
}
WARNINGS = {
    "a TTL for a lookup": (
        f"INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ {LOOKUP}",
        "STATE_TTL has no effect: this query block has no join but lookups, which keep no state",
        "remove it; how long answers of a lookup are kept says its cache: see 'lookup.cache'",
    ),
    "a TTL for INTERSECT": (
        "INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ k FROM o INTERSECT SELECT k FROM b",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
        "states of INTERSECT cannot be hinted; set their TTLs in the plan, or for the job",
    ),
    "a TTL for EXCEPT": (
        "INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ k FROM o EXCEPT SELECT k FROM b",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
        "states of EXCEPT cannot be hinted; set their TTLs in the plan, or for the job",
    ),
    "a TTL for UNION": (
        "INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ k FROM o UNION SELECT k FROM b",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
        "UNION's removal of duplicates cannot be hinted; write SELECT DISTINCT over a UNION ALL sub-query",
    ),
    "BROADCAST": (
        "INSERT INTO r SELECT /*+ BROADCAST(b) */ o.k FROM o JOIN b ON o.k = b.k",
        "BROADCAST has no effect: it is for batch jobs of Flink, and here Spark chooses how they join",
        "remove it",
    ),
}
UNITLESS = {
    "SET": ("SET 'table.exec.state.ttl' = '12'; INSERT INTO r SELECT k FROM o", "'12' has no unit and means 12 ms"),
    "STATE_TTL": (
        "INSERT INTO r SELECT /*+ STATE_TTL('o' = '12') */ DISTINCT k FROM o",
        "'12' has no unit and means 12 ms",
    ),
    "LOOKUP": (
        f"INSERT INTO r SELECT /*+ LOOKUP('table' = 'd', 'async' = 'true', 'timeout' = '30') */ {LOOKUP}",
        "'30' has no unit and means 30 ms",
    ),
}


@pytest.mark.parametrize(("sql", "message", "hint"), [pytest.param(*e, id=name) for name, e in ERRORS.items()])
def test_what_is_not_supported_says_what_to_write(sql: str, message: str, hint: str) -> None:
    with pytest.raises(SqlError) as refused:
        compile_sql(f"{TABLES}{sql};")
    (found,) = refused.value.diagnostics
    assert (found.message, found.line) == (message, 7)
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    "condition",
    [
        f"TIMESTAMPADD(HOUR, TIMESTAMPDIFF(HOUR, {EPOCH}, ts), {EPOCH}) > ts",
        "CONCAT(SUBSTRING(s FROM 1 FOR 2 - 1), 'x', SUBSTRING(s FROM 2 + CHAR_LENGTH('x'))) = 'a'",
    ],
)
def test_what_is_advised_compiles(condition: str) -> None:
    assert compile_sql(f"{TABLES} INSERT INTO r SELECT k FROM o WHERE {condition};").operators


def findings(sql: str, config: dict[str, str] | None = None) -> list[tuple[str, str | None]]:
    found = compile_script(f"{TABLES}{sql};", config or {}, file="job.sql").findings
    return [(one.diagnostic.message, one.diagnostic.hint) for one in found]


@pytest.mark.parametrize(("sql", "message", "hint"), [pytest.param(*w, id=name) for name, w in WARNINGS.items()])
def test_a_hint_without_effect_says_why_and_what_to_do(sql: str, message: str, hint: str) -> None:
    assert (message, hint) in findings(sql)


@pytest.mark.parametrize(("sql", "message"), [pytest.param(*u, id=name) for name, u in UNITLESS.items()])
def test_a_duration_without_a_unit_is_told_what_it_means(sql: str, message: str) -> None:
    notes = [text for text, _ in findings(sql)]
    assert f"{message}, as in Flink" in notes
    spelled = sql.replace("'12'", "'12 ms'").replace("'30'", "'30 ms'")
    assert not [text for text, _ in findings(spelled) if "no unit" in text]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(
    ("said", "config", "warned"), [("true", "", True), ("false", "", False), ("true", "false", False)]
)
def test_results_that_are_not_to_be_cached_are_no_news(mode: str, said: str, config: str, warned: bool) -> None:
    key = "table.exec.cached-results.enabled"
    sql = f"SET 'execution.runtime-mode' = '{mode}'; SET '{key}' = '{said}'; INSERT INTO r SELECT k FROM b"
    found = [text for text, _ in findings(sql, {key: config} if config else None) if key in text]
    assert bool(found) == warned
