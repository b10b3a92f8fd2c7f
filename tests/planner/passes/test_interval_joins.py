"""A join that Flink makes an interval join is compiled to a regular one with a warning that says so."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import Compilation, compile_script

FILES = "WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json')"
TABLES = f"""
CREATE TABLE a (k BIGINT, ts TIMESTAMP(3), plain TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) {FILES};
CREATE TABLE b (k BIGINT, ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), ts TIMESTAMP(6),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) {FILES};
CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');
"""
WARNING = (
    "this join bounds the time between 'ts' and 'ts', but interval joins are not supported: it is a regular join, and "
    "its state never expires"
)
HINT = "write SELECT /*+ STATE_TTL('a' = '{ttl}', 'b' = '{ttl}') */, or longer times for rows that come late"


def compiled(query: str, ttl: str | None = None, mode: str = "streaming") -> Compilation:
    config = f"SET 'table.exec.state.ttl' = '{ttl}';" if ttl else ""
    text = f"SET 'execution.runtime-mode' = '{mode}';{config}{TABLES}INSERT INTO r\n{query};"
    return compile_script(text, file="job", strict_hints=True)


BOUNDS = {
    "a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts": "1 h",
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL '2' HOUR": "2 h",
    "a.ts >= b.ts - INTERVAL '90' MINUTE AND a.ts < b.ts": "90 min",
    "b.ts - INTERVAL '1' HOUR <= a.ts AND b.ts + INTERVAL '2' DAY > a.ts": "2 d",
    "a.ts + INTERVAL '1.5' SECOND > b.ts AND a.ts <= b.ts": "1500 ms",
    "a.ts = b.ts": "1 s",
}


@pytest.mark.parametrize(("bounds", "ttl"), BOUNDS.items())
@pytest.mark.parametrize(
    "form",
    [
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND {}",
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {}",
        "SELECT a.k FROM a, b WHERE a.k = b.k AND {}",
        "SELECT a.k FROM (SELECT k, ts FROM a WHERE k > 0) a JOIN b ON a.k = b.k WHERE {}",
    ],
)
def test_time_bounds_of_both_sides_are_warned_of_with_the_hint_to_write(form: str, bounds: str, ttl: str) -> None:
    (found,) = compiled(form.format(bounds)).findings
    assert found.severity == "warning"
    assert found.diagnostic.message == WARNING
    assert found.diagnostic.hint == HINT.format(ttl=ttl)
    assert found.diagnostic.line is not None


def test_a_configured_ttl_is_named_and_hints_of_both_sides_answer_the_warning() -> None:
    query = "SELECT{} a.k FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts"
    (found,) = compiled(query.format(""), "36 h").findings
    assert found.diagnostic.message.endswith("its state is kept for 36 h of processing time")
    (one,) = compiled(query.format(" /*+ STATE_TTL('a' = '1 h') */")).findings
    assert one.diagnostic.message == WARNING
    assert compiled(query.format(" /*+ STATE_TTL('a' = '1 h', 'b' = '1 h') */")).findings == ()
    assert compiled(query.format(""), mode="batch").findings == ()


def test_a_side_without_a_name_is_told_to_get_one() -> None:
    query = (
        "SELECT a.k FROM a JOIN b AS c ON a.k = c.k JOIN b ON a.k = b.k "
        "AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' DAY"
    )
    (found,) = compiled(query).findings
    assert found.diagnostic.message == WARNING
    assert found.diagnostic.hint is not None
    assert "sub-query with an alias" in found.diagnostic.hint


@pytest.mark.parametrize(
    "condition",
    [
        "a.ts > b.ts",
        "a.plain BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts",
        "a.ts BETWEEN a.plain AND a.plain + INTERVAL '1' HOUR",
        "a.ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2025-01-01 00:00:00'",
    ],
)
def test_other_conditions_on_time_are_no_interval_joins(condition: str) -> None:
    assert compiled(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {condition}").findings == ()
