"""``hintplan sql script.sql`` as its user sees it: output, errors, plan files, exit codes. Nothing here needs Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from hintplan.planner.compile import compile_sql
from hintplan.plans import cli
from hintplan.plans.edit.edit import set_value
from tests.runtime.client.conftest import SUMS, TABLES, Done, Engine

ROOT = Path(__file__).parents[3]
Run = Callable[..., Done]


def test_declarations_are_told_on_stderr_and_rows_shown_on_stdout(sql: Run, engine: Engine) -> None:
    done = sql(
        f"SET 'table.exec.state.ttl' = '60 min';\n{TABLES}SHOW TABLES;\nDESCRIBE sums;\nSHOW CREATE TABLE sums;\n"
    )
    assert done.code == 0
    assert done.err == "table.exec.state.ttl = 1 h\ntable orders created\ntable sums created\n2 rows\n2 rows\n"
    assert done.out == (
        "+------------+\n"
        "| table name |\n"
        "+------------+\n"
        "| orders     |\n"
        "| sums       |\n"
        "+------------+\n"
        "+----------+--------+------+--------+--------+-----------+\n"
        "| name     | type   | null | key    | extras | watermark |\n"
        "+----------+--------+------+--------+--------+-----------+\n"
        "| customer | STRING | TRUE | <NULL> | <NULL> | <NULL>    |\n"
        "| total    | DOUBLE | TRUE | <NULL> | <NULL> | <NULL>    |\n"
        "+----------+--------+------+--------+--------+-----------+\n"
        "CREATE TABLE `sums` (\n"
        "  `customer` STRING,\n"
        "  `total` DOUBLE\n"
        ") WITH (\n"
        "  'connector' = 'print'\n"
        ");\n"
    )
    assert engine.options == {}, "Spark is opened only by statements that need it"


def test_rows_of_a_stream_carry_their_kind(sql: Run, engine: Engine) -> None:
    engine.rows = [("+I", ("DE", "1.5")), ("-U", (None, "1.5")), ("+U", ("a\x1b[31m\nb", "12.25"))]
    done = sql(f"{TABLES}SELECT customer, total FROM orders;")
    assert done.out == (
        "+----+--------------+-------+\n"
        "| op | customer     | total |\n"
        "+----+--------------+-------+\n"
        "| +I | DE           |   1.5 |\n"
        "| -U | <NULL>       |   1.5 |\n"
        "| +U | a\\x1b[31m\\nb | 12.25 |\n"
        "+----+--------------+-------+\n"
    )
    assert done.err.endswith("3 rows\n")
    assert (done.code, engine.closed) == (0, 1)


def test_rows_of_a_batch_job_have_no_kind(sql: Run, engine: Engine) -> None:
    engine.rows = [(None, ("DE",))]
    done = sql(
        f"SET 'execution.runtime-mode' = 'batch'; {TABLES}SELECT customer FROM orders ORDER BY customer LIMIT 1;"
    )
    assert done.out == "+----------+\n| customer |\n+----------+\n| DE       |\n+----------+\n"
    assert done.err.endswith("\n1 row\n")


def test_json_has_an_object_per_row_and_nothing_else_on_stdout(sql: Run, engine: Engine) -> None:
    engine.rows = [("+I", ("DE", 1.5)), ("-D", (None, None))]
    done = sql(f"{TABLES}SHOW TABLES LIKE 's%';\nSELECT customer, total AS t FROM orders;\nEXPLAIN {SUMS};", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows[:3] == [
        {"statement": 3, "row": {"table name": "sums"}},
        {"statement": 4, "op": "+I", "row": {"customer": "DE", "t": 1.5}},
        {"statement": 4, "op": "-D", "row": {"customer": None, "t": None}},
    ]
    assert rows[3]["statement"] == 5
    assert rows[3]["explain"]["operators"][0]["id"] == "scan_orders"


def test_an_error_shows_its_line_with_a_caret_and_ends_the_script(sql: Run, engine: Engine) -> None:
    done = sql(f"{TABLES}\nSELECT customr FROM orders;\n{SUMS};")
    assert done.code == 1
    assert done.err.endswith(
        "job.sql:5:8: error: unknown column 'customr' in 'orders'\n"
        "  SELECT customr FROM orders;\n"
        "         ^\n"
        "  hint: did you mean 'customer'?\n"
    )
    assert engine.ran == []


def test_a_script_goes_on_after_an_error_only_if_told_to(sql: Run, engine: Engine) -> None:
    script = f"{TABLES}SELECT nothing FROM orders;\n{SUMS};\nSHOW VIEWS LIKE;\nSELECT ';\n"
    done = sql(script, "--continue-on-error")
    assert [kind for kind, _ in engine.ran] == ["insert"]
    assert done.code == 1
    assert [line for line in done.err.splitlines() if "error" in line] == [
        "job.sql:4:8: error: unknown column 'nothing' in 'orders'",
        "job.sql:6:16: error: expected a pattern, found the end of the statement",
        "job.sql:7:8: error: this string is never closed",
    ]
    assert done.err.endswith("3 of 6 statements failed, at lines 4, 6, 7\n")
    assert sql(TABLES, "--continue-on-error").code == 0


def test_a_warning_is_shown_and_is_an_error_if_hints_are_strict(sql: Run, engine: Engine) -> None:
    script = f"{TABLES}SELECT /*+ STATE_TTL('orders' = '1 d') */ id FROM orders;"
    warned = sql(script)
    assert warned.code == 0
    assert "job.sql:4:22: warning: STATE_TTL has no effect" in warned.err
    strict = sql(script, "--strict-hints")
    assert strict.code == 1
    assert "job.sql:4:22: error: STATE_TTL has no effect" in strict.err
    assert [kind for kind, _ in engine.ran] == ["select"]


def test_an_insert_is_waited_for_and_a_signal_ends_the_script(sql: Run, engine: Engine) -> None:
    assert sql(f"{TABLES}{SUMS};\n{SUMS};").code == 0
    assert [kind for kind, _ in engine.ran] == ["insert", "insert"]
    engine.ran.clear()
    engine.code = 130
    assert sql(f"{TABLES}{SUMS};\n{SUMS};").code == 130
    assert [kind for kind, _ in engine.ran] == ["insert"]


def test_jobs_in_the_background_are_listed_stopped_and_waited_for(sql: Run, engine: Engine) -> None:
    background = "SET 'table.dml-sync' = 'false';\n"
    done = sql(f"{background}{TABLES}{SUMS};\nSTOP JOB 'sums';\n{SUMS};")
    assert [kind for kind, _ in engine.ran] == ["start", "stop", "start"]
    assert "job sums started; SHOW JOBS lists jobs, STOP JOB 'sums' stops this one\njob sums stopped\n" in done.err
    assert done.err.endswith("waiting for sums; Ctrl-C stops\n")
    assert (done.code, engine.waited) == (0, 1)
    engine.code = 130
    assert sql(f"{background}{TABLES}{SUMS};").code == 130


def test_what_started_in_the_background_is_stopped_by_an_error(sql: Run, engine: Engine) -> None:
    done = sql(f"SET 'table.dml-sync' = 'false';\n{TABLES}{SUMS};\nSELECT;")
    assert (done.code, engine.waited, engine.closed) == (1, 0, 1)


def test_compile_plan_writes_what_hintplan_compile_writes(sql: Run, folder: Path) -> None:
    done = sql(f"{TABLES}COMPILE PLAN 'new/folder/plan.json' FOR {SUMS};")
    assert done.err.endswith("new/folder/plan.json written: 4 operators, 1 with state\n")
    assert (folder / "new/folder/plan.json").read_bytes() == hintplan.dumps(compile_sql(f"{TABLES}{SUMS};"))
    assert [path.name for path in (folder / "new/folder").iterdir()] == ["plan.json"]


def test_a_plan_file_that_is_there_is_not_written_over(sql: Run, folder: Path) -> None:
    mine = '{"format": "0.1", "operators": []}'
    (folder / "plan.json").write_text(mine)
    refused = sql(f"{TABLES}COMPILE PLAN 'plan.json' FOR {SUMS};")
    assert refused.code == 1
    assert refused.err.endswith(
        "job.sql:4:14: error: the plan file 'plan.json' already exists\n"
        f"  COMPILE PLAN 'plan.json' FOR {SUMS};\n"
        "               ^\n"
        "  hint: remove it, write COMPILE PLAN ... IF NOT EXISTS FOR, or "
        "SET 'table.plan.force-recompile' = 'true'\n"
    )
    kept = sql(f"{TABLES}COMPILE PLAN 'plan.json' IF NOT EXISTS FOR {SUMS};")
    assert (kept.code, (folder / "plan.json").read_text()) == (0, mine)
    assert kept.err.endswith("plan.json already exists, and is kept; it is no plan that can be read\n")
    forced = f"SET 'table.plan.force-recompile' = 'true'; {TABLES}COMPILE PLAN 'plan.json' IF NOT EXISTS FOR {SUMS};"
    assert sql(forced).code == 0
    assert hintplan.load(folder / "plan.json").name == "sums"


def test_if_not_exists_says_when_the_file_belongs_to_other_sql(sql: Run, folder: Path) -> None:
    hintplan.dump(compile_sql(f"{TABLES}INSERT INTO sums SELECT customer, total FROM orders;"), folder / "plan.json")
    kept = sql(f"{TABLES}COMPILE PLAN 'plan.json' IF NOT EXISTS FOR {SUMS};")
    assert kept.err.endswith(
        "plan.json already exists, and is kept; it belongs to other SQL: operator sink_sums differs, "
        "operator aggregate_orders is in the statement only, operator calc_orders is in the statement only\n"
    )


def test_compile_and_execute_executes_a_file_that_belongs_to_the_statement_with_its_edits(
    sql: Run, engine: Engine, folder: Path
) -> None:
    script = f"{TABLES}COMPILE AND EXECUTE PLAN 'plan.json' FOR {SUMS};"
    assert sql(script).err.endswith("plan.json written: 4 operators, 1 with state\n")
    path = "aggregate_orders.state.groupAggregateState.ttl"
    edited, _ = set_value(hintplan.load(folder / "plan.json"), path, "3 d")
    hintplan.dump(edited, folder / "plan.json")
    again = sql(script)
    assert again.err.endswith("plan.json already exists, and is executed\n")
    assert [plan for _, plan in engine.ran] == [compile_sql(f"{TABLES}{SUMS};"), edited]


def test_compile_and_execute_refuses_a_file_of_other_sql(sql: Run, engine: Engine, folder: Path) -> None:
    other = f"{TABLES}INSERT INTO sums SELECT customer, COUNT(*) * 1.0E0 FROM orders GROUP BY customer;"
    hintplan.dump(compile_sql(other), folder / "plan.json")
    before = (folder / "plan.json").read_bytes()
    done = sql(f"{TABLES}COMPILE AND EXECUTE PLAN 'plan.json' FOR {SUMS};")
    assert done.code == 1
    assert (
        "job.sql:4:26: error: the plan file 'plan.json' belongs to other SQL: operator aggregate_orders differs"
        in done.err
    )
    assert (engine.ran, (folder / "plan.json").read_bytes()) == ([], before)
    forced = f"SET 'table.plan.force-recompile' = 'true'; {TABLES}COMPILE AND EXECUTE PLAN 'plan.json' FOR {SUMS};"
    assert sql(forced).code == 0
    assert engine.ran == [("insert", compile_sql(f"{TABLES}{SUMS};"))]


def test_execute_plan_checks_the_file_as_run_does(sql: Run, engine: Engine, folder: Path) -> None:
    missing = sql("EXECUTE PLAN 'plan.json';")
    assert missing.code == 1
    assert missing.err == (
        "job.sql:1:14: error: plan.json: cannot be read: No such file or directory\n"
        "  EXECUTE PLAN 'plan.json';\n"
        "               ^\n"
    )
    plan = compile_sql(f"{TABLES}{SUMS};")
    text = hintplan.dumps(plan).decode()
    (folder / "plan.json").write_text(text.replace('"ttl": "0 ms"', '"tll": "0 ms"'))
    wrong = sql("EXECUTE PLAN 'plan.json';")
    assert wrong.code == 1
    assert "job.sql:1:14: error: plan.json:" in wrong.err
    assert "did you mean 'ttl'?" in wrong.err
    (folder / "plan.json").write_text(text.replace("SUM", "MAX"))
    assert "its facts were changed" in sql("EXECUTE PLAN 'plan.json';").err
    assert sql("EXECUTE PLAN 'plan.json';", "--allow-fact-edits").code == 0
    (folder / "plan.json").write_text(text)
    assert sql(f"EXECUTE PLAN 'file://{folder}/plan.json';").code == 0
    assert engine.ran[-1] == ("insert", plan)
    assert "'s3://bucket/plan.json' is not a local file" in sql("EXECUTE PLAN 's3://bucket/plan.json';").err


STATEMENTS = [
    "COMPILE PLAN '{}' FOR {}",
    "COMPILE PLAN '{}' IF NOT EXISTS FOR {}",
    "COMPILE AND EXECUTE PLAN '{}' FOR {}",
    "EXECUTE PLAN '{}'",
    "EXPLAIN PLAN FOR '{}'",
]
FORCED = "SET 'table.plan.force-recompile' = 'true'; "


@pytest.mark.parametrize("forced", ["", FORCED], ids=["", "forced"])
@pytest.mark.parametrize("there", ["nothing", "plan", "link"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_plan_files_are_only_where_the_client_may_reach(
    sql: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory, statement: str, there: str, forced: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    path = outside / "plan.json"
    if there != "nothing":
        assert sql(f"{TABLES}COMPILE PLAN '{path}' FOR {SUMS};").code == 0
    before = {file.name: file.read_bytes() for file in outside.iterdir()}
    if there == "link":
        (folder / "below").symlink_to(outside)
        path = folder / "below" / "plan.json"
    done = sql(f"{forced}{TABLES}{statement.format(path, SUMS)};", "--allow-path", str(folder))
    assert done.code == 1
    assert f"the run may not reach {path}" in done.err
    assert f"--allow-path {outside}/plan.json" in done.err
    assert {file.name: file.read_bytes() for file in outside.iterdir()} == before
    inside = sql(f"{forced}{TABLES}COMPILE PLAN '{folder}/x/plan.json' FOR {SUMS};", "--allow-path", str(folder))
    assert inside.code == 0, inside.err


@pytest.mark.parametrize(
    "text", ["secret-token 1\n", '"secret-token": 1', '["secret-token"]', '{"secret-token": 2}', ""]
)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_file_that_is_no_plan_is_neither_written_over_nor_told(
    sql: Run, folder: Path, statement: str, text: str
) -> None:
    (folder / "notes").write_text(text)
    done = sql(f"{FORCED}{TABLES}{statement.format('notes', SUMS)};")
    assert done.code == 1, done.err
    assert re.search("is no plan|is not a plan", done.err)
    assert "secret" not in done.err + done.out
    assert (folder / "notes").read_text() == text
    told = sql(f"{TABLES}{statement.format('notes', SUMS)};")
    assert "secret" not in told.err + told.out
    assert (folder / "notes").read_text() == text


def test_explain_shows_the_tree_of_a_statement_and_of_a_file(sql: Run, folder: Path) -> None:
    hintplan.dump(compile_sql(f"{TABLES}{SUMS};"), folder / "plan.json")
    of_file = sql("EXPLAIN PLAN FOR 'plan.json';")
    of_statement = sql(f"{TABLES}EXPLAIN {SUMS};")
    assert of_file.out == of_statement.out
    assert "└─ aggregate_orders" in of_file.out
    of_json = sql(f"{TABLES}EXPLAIN JSON_EXECUTION_PLAN {SUMS};")
    assert hintplan.loads(of_json.out) == compile_sql(f"{TABLES}{SUMS};")


def test_a_wrong_option_is_wrong_usage(sql: Run) -> None:
    assert sql("", "-c", "x").code == 64
    assert sql("", "--trigger", "5").code == 64
    both = sql("", "--master", "local", "--remote", "sc://x")
    assert both.code == 64
    assert "--master starts Spark and --remote, or SPARK_REMOTE, connects to it; give one of them" in both.err


def test_a_wrong_key_and_a_missing_script_are_told(sql: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'table.exec.state.ttl'?" in sql("", "-c", "table.exec.state.tl=1 h").err
    with pytest.raises(SystemExit) as exited:
        cli.main(["sql", "nothing.sql"])
    assert exited.value.code == 1
    assert capfd.readouterr().err.startswith("nothing.sql: cannot be read")


def test_standard_input_is_a_script_and_no_spark_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['hintplan', 'sql']\n"
        "from hintplan.plans.cli import main\n"
        "try: main()\n"
        "except SystemExit as done: assert done.code == 0, done.code\n"
        "heavy = {'pyspark', 'pyarrow', 'pandas', 'numpy', 'hintplan.runtime', 'prompt_toolkit'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=f"{TABLES}SHOW VIEWS;\nSELEC",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "<stdin>:5:1: error: SELEC is not a supported statement" in done.stderr
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=f"{TABLES}SHOW VIEWS LIKE 'x';\nCOMPILE PLAN 'p.json' FOR {SUMS}",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.endswith("[]\n"), done.stderr
    assert (tmp_path / "p.json").is_file()
