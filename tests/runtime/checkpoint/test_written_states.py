"""The record says which operators have written state, for as long as that state is continued."""

from __future__ import annotations

import hintplan
from hintplan.plans.checkpoint.continuation import continuation, record_after, record_of_written
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.model.plan import Plan

TABLES = """
CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (k BIGINT, t BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'r');
"""


def compiled(query: str) -> Plan:
    return hintplan.compile_sql(f"{TABLES}INSERT INTO r {query};")


def after(record: CheckpointRecord | None, plan: Plan) -> CheckpointRecord:
    found = record_after(continuation(record, plan, partitions=2), record, plan, partitions=2, spark="4.3.0")
    assert found is not None
    return found


def begun(record: CheckpointRecord) -> dict[str, bool]:
    return {state.operator: state.begun for query in record.queries for state in query.states}


SUM = compiled("SELECT k, SUM(v) AS t FROM o GROUP BY k")


def test_an_operator_that_has_written_state_is_noted_once() -> None:
    record = after(None, SUM)
    assert begun(record) == {"aggregate_o": False}
    assert record_of_written(record, {}) is None
    noted = record_of_written(record, {"sink_r": ["aggregate_o"]})
    assert noted is not None
    assert begun(noted) == {"aggregate_o": True}
    assert noted.run == record.run + 1
    assert record_of_written(noted, {"sink_r": ["aggregate_o"]}) is None
    assert parse_record([record_line(record), record_line(noted)], "checkpoint") == noted


def test_state_that_carries_over_stays_noted_and_state_that_starts_empty_does_not() -> None:
    noted = record_of_written(after(None, SUM), {"sink_r": ["aggregate_o"]})
    assert noted is not None
    named = compiled("SELECT k, SUM(v) AS total FROM o GROUP BY k")
    assert begun(after(noted, named)) == {"aggregate_o": True}
    assert begun(after(noted, compiled("SELECT k, MAX(v) AS t FROM o GROUP BY k"))) == {"aggregate_o": False}
