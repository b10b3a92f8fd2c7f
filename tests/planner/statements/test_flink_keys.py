"""Keys of Flink in a script: those that cannot change results are noted, others are known or refused."""

from __future__ import annotations

import pytest

import plans
from planner.compile import compile_script
from planner.session import Session
from plans.errors import SqlError
from plans.model.config import known_keys
from plans.settings.flink_keys import why_idle

SQL = """
CREATE TABLE o (k BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT k FROM o;
"""
# As Flink's documentation and its examples set them.
IDLE = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "5 s",
    "table.exec.mini-batch.size": "5000",
    "execution.checkpointing.interval": "3min",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "state.backend": "rocksdb",
    "state.backend.type": "rocksdb",
    "state.checkpoints.dir": "s3://lake/checkpoints",
    "restart-strategy": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "sql-client.execution.result-mode": "tableau",
    "taskmanager.numberOfTaskSlots": "4",
    "pipeline.max-parallelism": "128",
    "table.optimizer.join-reorder-enabled": "true",
    "table.optimizer.reuse-sub-plan-enabled": "true",
    "table.exec.source.idle-timeout": "10 s",
    "execution.target": "yarn-session",
}
REFUSED = {
    "execution.savepoint.path": "/savepoint",
    "execution.state-recovery.path": "/savepoint",
    "table.exec.legacy-cast-behaviour": "enabled",
    "table.exec.sink.not-null-enforcer": "DROP",
    "table.sql-dialect": "hive",
    "table.exec.mini-batchs.enabled": "true",
    "state.backends": "x",
}


@pytest.mark.parametrize("key", IDLE)
def test_a_key_without_meaning_is_noted_where_it_stands(key: str) -> None:
    done = compile_script(f"SET '{key}' = '{IDLE[key]}';{SQL}", file="job.sql")
    (finding,) = done.findings
    assert finding.severity == "note"
    assert (finding.diagnostic.line, finding.diagnostic.column) == (1, 5)
    assert finding.diagnostic.message.startswith(f"'{key}' has no effect: ")
    assert plans.dumps(done.plan) == plans.dumps(compile_script(SQL, file="job.sql").plan)


@pytest.mark.parametrize("key", REFUSED)
def test_a_key_that_could_change_results_is_refused(key: str) -> None:
    with pytest.raises(SqlError, match=f"unknown configuration key '{key}'"):
        compile_script(f"SET '{key}' = '{REFUSED[key]}';{SQL}", file="job.sql")


def test_no_key_is_both_known_and_without_meaning() -> None:
    assert [key for key in known_keys() if why_idle(key) is not None] == []


def test_strict_hints_do_not_mind_and_a_reset_is_taken() -> None:
    text = "SET 'execution.checkpointing.interval' = '1 min'; RESET 'execution.checkpointing.interval';"
    assert compile_script(text + SQL, strict_hints=True).findings[0].severity == "note"
    assert Session.open().configuration.values == {}
