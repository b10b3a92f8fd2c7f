"""Sentences for what people write by habit: each says what is the matter and what to write, and that compiles."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError

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
    "a field that a ROW has not": (
        "INSERT INTO r SELECT f.b FROM o",
        "unknown field 'b' of ROW<a INT>",
        "fields: a",
    ),
    "a field of what is no ROW": (
        "INSERT INTO r SELECT x.o.k FROM (SELECT k, s AS o FROM o) AS x",
        "'k' cannot be read of STRING: only a ROW has fields",
        "use arr[1] for an element, and m['k'] for the value of a key",
    ),
    "the name of a table that has an alias and a column of the name": (
        "INSERT INTO r SELECT o.k FROM (SELECT k, s AS o FROM o) AS x",
        "'k' cannot be read of STRING: only a ROW has fields",
        "use arr[1] for an element",
    ),
    "the element before the first": (
        "INSERT INTO r SELECT ARRAY[k][0] FROM o",
        "elements of an array count from 1, found 0",
        "write arr[1]",
    ),
    "an element by a BIGINT": (
        "INSERT INTO r SELECT ARRAY[k][CAST(k AS BIGINT)] FROM o",
        "the position of an element must be INT, found BIGINT",
        "CAST(... AS INT)",
    ),
    "a key of another type": (
        "INSERT INTO r SELECT MAP[s, k][k] FROM o",
        "the keys of this MAP are STRING, found INT",
        "CAST(... AS STRING)",
    ),
    "elements without a common type": (
        "INSERT INTO r SELECT ARRAY[k, s][1] FROM o",
        "the elements of this ARRAY have no common type: INT, STRING",
        "convert them with CAST",
    ),
    "an ARRAY of nothing": (
        "INSERT INTO r SELECT CARDINALITY(ARRAY[]) FROM o",
        "an ARRAY needs at least one element",
        "ARRAY[a",
    ),
    "a MAP without a value": (
        "INSERT INTO r SELECT MAP[s]['x'] FROM o",
        "a MAP needs keys and values in turn",
        "MAP['k'",
    ),
    "NULL in a ROW": ("INSERT INTO r SELECT ROW(k, NULL)[1] FROM o", "NULL in a ROW needs a type", "CAST(NULL AS"),
    "the order of arrays": (
        "INSERT INTO r SELECT k FROM o WHERE ARRAY[k] < ARRAY[2]",
        "'<' does not take ARRAY values",
        "compare scalar columns",
    ),
    "the order of rows": ("INSERT INTO r SELECT k FROM o WHERE f > f", "'>' does not take ROW values", "the fields"),
    "a cast of the elements that Spark has otherwise": (
        "INSERT INTO r SELECT CARDINALITY(CAST(ARRAY_DISTINCT(ARRAY[k]) AS ARRAY<TINYINT>)) FROM o",
        "CAST from ARRAY<INT> to ARRAY<TINYINT> is not supported",
        "cast to another type",
    ),
    "rows that are written out, by IS DISTINCT FROM": (
        "INSERT INTO r SELECT k FROM o WHERE ROW(k, s) IS DISTINCT FROM ROW(1, s)",
        "IS DISTINCT FROM of rows such as (a, b) is not supported",
        "compare each column",
    ),
    "the one element of a text": (
        "INSERT INTO r SELECT ELEMENT(s) FROM o",
        "argument 1 of ELEMENT must be an ARRAY, found STRING",
        "give it an ARRAY",
    ),
    "a MAP as text": (
        "INSERT INTO r SELECT k FROM o WHERE CAST(ROW(k, MAP['a', 1]) AS STRING) = s",
        "CAST from ROW<`EXPR$0` INT, `EXPR$1` MAP<STRING, INT>> to STRING is not supported",
        "cast to another type",
    ),
    "a value of another type than the elements": (
        "INSERT INTO r SELECT k FROM o WHERE ARRAY_CONTAINS(ARRAY[k], CAST(k AS BIGINT))",
        "argument 2 of ARRAY_CONTAINS must be INT, found BIGINT",
        "CAST(... AS INT)",
    ),
    "the size of text": (
        "INSERT INTO r SELECT CARDINALITY(s) FROM o",
        "argument 1 of CARDINALITY must be an ARRAY or a MAP, found STRING",
        "CHAR_LENGTH",
    ),
    "a unit that no time is cut to": (
        "INSERT INTO r SELECT k FROM o WHERE FLOOR(ts TO CENTURY) > ts",
        "FLOOR TO CENTURY is not supported",
        "units are MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR",
    ),
    "a function of Flink that is refused": (
        "INSERT INTO r SELECT k FROM o WHERE PARSE_JSON(s) IS NOT NULL",
        "PARSE_JSON is not supported: there is no type VARIANT",
        "keep the document as STRING",
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
        "remove it; the cache of a lookup sets how long its answers are kept: see 'lookup.cache'",
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
