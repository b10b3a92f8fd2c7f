"""Keys of Flink in a script: those that cannot change results are noted, others are known or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import hintplan
from hintplan.planner.cli import compile_command
from hintplan.planner.compile import compile_script
from hintplan.planner.session import CompileSession
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import canonical_key, known_keys
from hintplan.plans.settings.flink_keys import refused_key, why_idle

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
    "sql-client.execution.result-mode": "tableau",
    "taskmanager.numberOfTaskSlots": "4",
    "pipeline.max-parallelism": "128",
    "table.optimizer.join-reorder-enabled": "true",
    "table.optimizer.reuse-sub-plan-enabled": "true",
    "pipeline.auto-watermark-interval": "200 ms",
    "execution.target": "yarn-session",
}
REFUSED = {
    "execution.savepoint.path": "/savepoint",
    "execution.state-recovery.path": "/savepoint",
    "table.exec.legacy-cast-behaviour": "enabled",
    "table.sql-dialect": "hive",
}
UNKNOWN = ("table.exec.mini-batchs.enabled", "state.backends", "table.sql-dialects")
KEYS_OF_FLINK = json.loads((Path(__file__).parents[2] / "flink" / "keys.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", IDLE)
def test_a_key_without_meaning_is_noted_where_it_stands(key: str) -> None:
    done = compile_script(f"SET '{key}' = '{IDLE[key]}';{SQL}", file="job.sql")
    (finding,) = done.findings
    assert finding.severity == "note"
    assert (finding.diagnostic.line, finding.diagnostic.column) == (1, 5)
    assert finding.diagnostic.message.startswith(f"'{key}' has no effect: ")
    assert hintplan.dumps(done.plan) == hintplan.dumps(compile_script(SQL, file="job.sql").plan)


def test_the_command_counts_keys_without_meaning_below_the_warnings(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    keys = "".join(f"SET '{key}' = '{value}';\n" for key, value in IDLE.items())
    warned = "SET 'table.exec.async-lookup.timeout' = '5 s';\n"
    script.write_text(f"ADD JAR '/x.jar';\n{keys}{warned}{SQL}", encoding="utf-8")
    done = CliRunner().invoke(compile_command, [str(script)]).stderr.splitlines()
    assert "warning: 'table.exec.async-lookup.timeout' has no effect" in done[0]
    count = f"note: {len(IDLE) + 1} settings have no effect here (--verbose lists them)"
    assert [line for line in done if "note: " in line] == [count] == done[-1:]
    verbose = CliRunner().invoke(compile_command, ["--verbose", str(script)]).stderr.splitlines()
    assert verbose[: len(done) - 1] == done[:-1]
    assert sum("note: " in line for line in verbose) == len(IDLE) + 1
    script.write_text(f"SET 'web.timeout' = '5 s';\n{SQL}", encoding="utf-8")
    alone = CliRunner().invoke(compile_command, [str(script)]).stderr
    assert alone == "note: 1 setting has no effect here (--verbose lists it)\n"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        *(
            (key, "--checkpoint names")
            for key in ("execution.checkpointing.dir", "state.checkpoints.dir", "state.backend.fs.checkpointdir")
        ),
        *(
            (key, "hintplan state CHECKPOINT --snapshot DIR")
            for key in (
                "execution.checkpointing.savepoint-dir",
                "state.savepoints.dir",
                "savepoints.state.backend.fs.dir",
            )
        ),
        ("execution.checkpointing.interval", "--trigger"),
    ],
)
def test_the_reason_names_what_says_it_here(key: str, reason: str) -> None:
    assert reason in (why_idle(key) or "")


@pytest.mark.parametrize("key", REFUSED)
def test_a_key_that_could_change_results_is_refused(key: str) -> None:
    with pytest.raises(SqlError, match=f"'{key}' is not supported: ") as caught:
        compile_script(f"SET '{key}' = '{REFUSED[key]}';{SQL}", file="job.sql")
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (1, 5)
    assert found.hint


@pytest.mark.parametrize("key", UNKNOWN)
def test_a_key_that_flink_has_not_either_is_unknown(key: str) -> None:
    with pytest.raises(SqlError, match=f"unknown configuration key '{key}'"):
        compile_script(f"SET '{key}' = 'x';{SQL}", file="job.sql")


@pytest.mark.parametrize("key", KEYS_OF_FLINK)
def test_each_key_of_flink_is_known_or_without_meaning_or_refused(key: str) -> None:
    refused = refused_key(key)
    assert [canonical_key(key) in known_keys(), why_idle(key) is not None, refused is not None].count(True) == 1
    if refused is not None and "now" not in KEYS_OF_FLINK[key]:
        default = KEYS_OF_FLINK[key]["default"]
        assert (refused.default or "").lower() == (default or "").lower()


def test_a_refused_key_may_be_set_to_what_is_the_case_anyway() -> None:
    done = compile_script(f"SET 'table.sql-dialect' = 'default'; RESET 'table.sql-dialect';{SQL}", file="job.sql")
    assert [f.diagnostic.message for f in done.findings] == ["'table.sql-dialect' has no effect: it is so anyway"]
    assert hintplan.dumps(done.plan) == hintplan.dumps(compile_script(SQL, file="job.sql").plan)


def test_no_key_is_both_known_and_without_meaning() -> None:
    assert [key for key in known_keys() if why_idle(key) is not None or refused_key(key) is not None] == []


def test_strict_hints_do_not_mind_and_a_reset_is_taken() -> None:
    text = "SET 'execution.checkpointing.interval' = '1 min'; RESET 'execution.checkpointing.interval';"
    assert compile_script(text + SQL, strict_hints=True).findings[0].severity == "note"
    assert CompileSession.open().configuration.values == {}


@pytest.mark.parametrize("key", IDLE)
def test_the_command_line_may_set_what_means_nothing_here(key: str) -> None:
    done = compile_script(SQL, {key: IDLE[key]}, file="job.sql")
    (finding,) = done.findings
    assert finding.severity == "note"
    assert (finding.diagnostic.file, finding.diagnostic.line) == (None, None)
    assert finding.diagnostic.message.startswith(f"'{key}' has no effect: ")
    assert hintplan.dumps(done.plan) == hintplan.dumps(compile_script(SQL, file="job.sql").plan)


@pytest.mark.parametrize("key", REFUSED)
def test_the_command_line_is_refused_what_could_change_results(key: str) -> None:
    with pytest.raises(SqlError, match=f"'{key}' is not supported: ") as caught:
        compile_script(SQL, {key: REFUSED[key]}, file="job.sql")
    assert caught.value.diagnostics[0].hint


def test_the_command_line_may_say_what_is_the_case_anyway() -> None:
    done = compile_script(SQL, {"table.sql-dialect": "default"}, file="job.sql")
    assert [f.diagnostic.message for f in done.findings] == ["'table.sql-dialect' has no effect: it is so anyway"]
