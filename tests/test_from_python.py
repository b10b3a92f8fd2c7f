"""From Python: what functions take, what is printed, and what errors say and show."""

from __future__ import annotations

import ast
import re
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hintplan
from hintplan.plans.connectors.policy import KEYS, SWITCHES, Policy, policy_for
from hintplan.plans.errors import HintplanError, RunError, SqlError
from hintplan.plans.extras import refuse_lacking
from hintplan.plans.python_words import ARGUMENTS, for_a_command, in_python
from hintplan.runtime.batch.execution import BatchExecution
from hintplan.runtime.inspect.contents import CheckpointState
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.worker_faults import worker_fault
from tests.plans.in_process import hintplan as command

ROOT = Path(__file__).parent.parent
SQL = """
CREATE TABLE o (id BIGINT, c BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (c BIGINT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT /*+ STATE_TTL('o' = '6 h') */ c, COUNT(*) FROM o GROUP BY c;
"""
STATE = "aggregate_o.state.groupAggregateState.ttl"


@pytest.fixture
def plan() -> hintplan.Plan:
    return hintplan.compile_sql(SQL, name="job")


@pytest.fixture
def file(tmp_path: Path, plan: hintplan.Plan) -> Path:
    hintplan.dump(plan, tmp_path / "plan.json")
    return tmp_path / "plan.json"


def texts_in(path: Path) -> list[str]:
    """The texts in a module, but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


def test_every_field_of_a_policy_has_an_option_and_each_is_named_in_python_as_it_is_there() -> None:
    assert {*KEYS.values(), *SWITCHES.values()} == set(Policy.__dataclass_fields__)
    for flag, field in KEYS.items():
        hint = f"whoever starts the run can allow it: --{flag} a.b"
        with pytest.raises(RunError) as raised:
            raise RunError("refused", hint=hint)
        (found,) = raised.value.diagnostics
        assert found.hint is not None
        call = found.hint.removeprefix("whoever starts the run can allow it: policy=")
        assert eval(call, {"hintplan": hintplan}) == Policy(**{field: ("a.b",)})
        assert str(SqlError("refused", hint=f"allow it: --{flag} a.b")).endswith(f"allow it: allow_{field}=('a.b',)")
        assert in_python(f"see --{flag}, which") == f"see Policy({field}=...), which"
        with for_a_command():
            assert RunError("refused", hint=hint).diagnostics[0].hint == hint
    for flag, field in SWITCHES.items():
        assert in_python(f"or --{flag}") == f"or policy=hintplan.Policy({field}=True)"


def test_every_consent_in_a_message_has_a_counterpart_in_python() -> None:
    """A message that names an option which allows something, and that Python has no word for, would lead nowhere."""
    known = {*KEYS, *SWITCHES, *ARGUMENTS}
    found = {
        option
        for package in ("planner", "plans", "runtime")
        for path in (ROOT / package).rglob("*.py")
        if "commands" not in path.parts and path.name not in ("cli.py", "command.py", "upkeep.py")
        for text in texts_in(path)
        for option in re.findall(r"--(allow-[a-z-]+|take-over|once|checkpoint|trigger|lease|wait)\b", text)
    }
    assert found >= {"allow-host", "allow-env", "allow-path", "allow-scheme", "allow-state-drop", "take-over", "once"}
    assert found - known == set()
    arguments = {word.partition("=")[0] for word in ARGUMENTS.values()} - {"allow_fact_edits"}
    assert arguments <= set(hintplan.execute.__annotations__)
    assert "allow_fact_edits" in hintplan.load.__annotations__


@pytest.mark.parametrize(
    ("said", "in_words"),
    [
        ("run without --once", "run without once=True"),
        ("hintplan run --take-over stops it", "hintplan.execute(..., take_over=True) stops it"),
        ("let it wait: --wait '5 min'", "let it wait: waiting='5 min'"),
        ("hintplan run --checkpoint DIR", "hintplan.execute(..., checkpoint='DIR')"),
        ("--conf spark.driver.memory=4g gives", 'SparkSession.builder.config("spark.driver.memory", "4g") gives'),
        ("hintplan bundle a.json -- --checkpoint x", "hintplan bundle a.json -- --checkpoint x"),
        ("start the server with --packages a:b:1", "start the server with --packages a:b:1"),
    ],
)
def test_options_are_told_as_arguments(said: str, in_words: str) -> None:
    assert in_python(said) == in_words


def test_the_same_refusal_is_worded_for_whoever_asked(tmp_path: Path) -> None:
    script = SQL.replace("'path' = 'o'", "'path' = 's3a://lake/o'")
    plan = hintplan.compile_sql(script)
    hintplan.dump(plan, tmp_path / "plan.json")
    with pytest.raises(RunError, match=r"policy=hintplan\.Policy\(schemes=\('s3a://lake',\)\)"):
        hintplan.execute(plan)
    done = command("run", "plan.json", folder=tmp_path)
    assert "whoever starts the run can allow it: --allow-scheme s3a://lake" in done.stderr
    batch = hintplan.compile_sql("SET 'execution.runtime-mode' = 'batch';" + script)
    running = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)))
    with pytest.raises(RunError, match=r"policy=hintplan\.Policy\(schemes="):
        hintplan.execute(batch, SimpleNamespace(sparkContext=running), checkpoint=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": "db"}, "expected several texts\n  hint: write Policy(hosts=('db',))"),
        ({"hosts": ["http://x/y"]}, "is no host"),
        ({"hosts": [5]}, "5 is no text"),
        ({"host": ["db"]}, "a policy has no field 'host'\n  hint: did you mean 'hosts'?"),
        ({"allow-host": ["db"]}, "a policy has no field 'allow-host'\n  hint: write 'hosts'"),
        ({"unrestricted_spark": "yes"}, "expected True or False"),
        (["db"], "the policy is a list\n  hint: give hintplan.Policy(...), or a mapping with schemes, hosts"),
    ],
)
def test_a_policy_may_be_a_mapping_and_says_what_it_wants(given: Any, said: str, plan: hintplan.Plan) -> None:
    with pytest.raises(RunError) as raised:
        hintplan.execute(plan, policy=given)
    assert said in str(raised.value)
    assert Policy.of({"hosts": ["db:1"], "unrestricted_spark": True}) == Policy(
        hosts=("db:1",), unrestricted_spark=True
    )


def test_consent_to_an_unrestricted_session_is_an_option_and_a_key_of_the_policy_file(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[run]\nallow-unrestricted-spark = true\nallow-host = ['db']\n")
    assert policy_for(str(tmp_path / "p.toml"), {}) == Policy(hosts=("db",), unrestricted_spark=True)
    assert Policy() | Policy(unrestricted_spark=True) == Policy(unrestricted_spark=True)
    (tmp_path / "p.toml").write_text("[run]\nallow-unrestricted-spark = ['yes']\n")
    with pytest.raises(hintplan.PlanError, match="must be true or false"):
        policy_for(str(tmp_path / "p.toml"), {})
    assert "--allow-unrestricted-spark" in command("run", "--help", folder=tmp_path).stdout


def test_a_path_stands_for_its_plan(file: Path, plan: hintplan.Plan) -> None:
    for path in (file, str(file)):
        assert str(hintplan.explain(path)) == str(hintplan.explain(plan))
        assert str(hintplan.why(path, STATE)) == str(hintplan.why(plan, STATE))
        assert len(hintplan.diff(path, hintplan.set(plan, STATE, "1 d"))) == 1
        assert hintplan.check(path, file.parent / "none").verdict == "new"
        assert str(hintplan.show(path)) == str(hintplan.explain(plan))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (SQL, "hintplan.compile_sql(text) makes a plan of a script"),
        ("job.sql", "job.sql is a SQL script"),
        (5, "expected a plan or the path of its file, found int"),
        ("nowhere.json", "nowhere.json: "),
    ],
)
def test_what_is_no_plan_is_told(given: Any, said: str) -> None:
    for function in (hintplan.execute, hintplan.explain):
        with pytest.raises(HintplanError) as raised:
            function(given)
        assert said in str(raised.value)


def test_lint_why_and_show_say_what_the_commands_print(
    file: Path, plan: hintplan.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = file.parent, file.name
    monkeypatch.chdir(folder)
    hintplan.dump(hintplan.compile_sql(SQL.replace("/*+ STATE_TTL('o' = '6 h') */", ""), name="job"), "kept.json")
    printed = command("lint", "kept.json", "--all", "--fail-on", "never", folder=folder)
    findings = hintplan.lint("kept.json")
    assert str(findings) == (printed.stdout + printed.stderr).rstrip("\n")
    assert len(findings) == len(hintplan.lint(hintplan.load("kept.json"))) == len(list(findings)) > 0
    for path in (STATE, "aggregate_o"):
        assert str(hintplan.why(plan, path)) == command("why", name, path, folder=folder).stdout.rstrip("\n")
    assert hintplan.why(plan, STATE).value == "6 h"
    assert hintplan.why(plan, STATE).json()["set-by"] == "hint"
    for ending in ("html", "svg", "mmd", "dot"):
        hintplan.show(plan).save(folder / f"python.{ending}")
        assert command("show", name, "-o", f"command.{ending}", folder=folder).returncode == 0
        written = (folder / f"python.{ending}").read_text()
        assert len(written) > 200
        assert ending == "html" or written == (folder / f"command.{ending}").read_text()
    assert "<img" in hintplan.show(plan)._repr_html_()
    with pytest.raises(hintplan.PlanError, match="has no known suffix"):
        hintplan.show(plan).save("plan.gif")
    with pytest.raises(hintplan.PlanError, match="there is no operator 'scan_x'"):
        hintplan.show(plan, around=["scan_x"])


def test_an_error_shows_its_line_in_a_notebook() -> None:
    with pytest.raises(SqlError) as raised:
        hintplan.compile_sql(SQL.replace("GROUP BY c", "GROUP BY cc"))
    lines = raised.value._render_traceback_()
    assert lines[0].startswith("SqlError: line 4:")
    (at,) = (number for number, line in enumerate(lines) if line.startswith("    4 | INSERT INTO r"))
    column = lines[at + 1].index("^")
    assert lines[at][column:].startswith("cc;")
    assert len(lines) < 10


def test_an_error_of_a_plan_file_shows_its_line_in_a_notebook(file: Path) -> None:
    file.write_text(file.read_text().replace('"6 h"', '"6 hoors"', 1))
    with pytest.raises(hintplan.PlanError) as raised:
        hintplan.load(file)
    lines = raised.value._render_traceback_()
    assert any("6 hoors" in line and " | " in line for line in lines)


def test_a_line_with_a_literal_password_is_not_shown_again(tmp_path: Path) -> None:
    server = (
        "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/d', 'table-name' = 't', 'password' = 'shibboleth'"
    )
    script = SQL.replace("'connector' = 'print'", server)
    with pytest.raises(SqlError) as raised:
        hintplan.compile_sql(script)
    shown = "\n".join(raised.value._render_traceback_())
    assert "shibboleth" not in shown
    assert "line 3:" in shown
    hostile = RunError("a\x1b[2Jb\u202e", hint="c\td")._render_traceback_()
    assert hostile == ["RunError: a [2Jb ", "  hint: c d"]


def test_an_error_without_a_place_is_its_text() -> None:
    assert RunError("no", hint="yes", path="a.b")._render_traceback_() == ["RunError: a.b: no", "  hint: yes"]


def test_ipython_shows_the_lines_and_no_frames(capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_cell(f"import hintplan\nhintplan.compile_sql({SQL.replace('COUNT', 'CUONT')!r})")
    shown = "".join(capsys.readouterr())
    assert "SqlError: line 4:" in shown
    assert "    4 | INSERT INTO r" in shown
    assert "Traceback" not in shown
    assert "site-packages" not in shown


def run_of(**queries: Any) -> Execution:
    return Execution(queries=queries, checkpoint="/state", temporary=False, partitions=1)


def test_a_run_prints_its_table_and_stops_at_the_end_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    query = SimpleNamespace(isActive=True, lastProgress=None, recentProgress=[], exception=lambda: None)
    with run_of(sink_r=query) as run:
        monkeypatch.setattr(
            "hintplan.runtime.run.execution.stop_query", lambda query: setattr(query, "isActive", False)
        )
        assert str(run).splitlines()[0] == "running · checkpoint /state"
        assert run.active
    assert not run.active
    jobs = BatchExecution(
        plan="p",
        spark=SimpleNamespace(),
        jobs=(),
        cache=SimpleNamespace(),
        finished=lambda well: None,  # type: ignore[arg-type]
    )
    assert str(jobs).splitlines() == ["running", "sink  rows out  time"]
    jobs._future.set_result(None)
    with jobs:
        pass
    assert not jobs.active


def test_a_state_prints_as_the_command_does() -> None:
    found = CheckpointState(
        plan="p", written_by="p", checkpoint="/c", at=0, partitions=2, time_zone="UTC", queries=()
    )  # fmt: skip
    assert str(found) == "p · /c · 2 partitions · as of 1970-01-01 00:00:00 UTC"


def test_functions_are_in_a_module_of_hintplan() -> None:
    from hintplan.runtime.functions import ScalarFunction as Documented
    from hintplan.runtime.functions.api import ScalarFunction

    assert ScalarFunction is Documented is hintplan.functions.ScalarFunction
    assert set(hintplan.functions.__all__) == set(__import__("hintplan.runtime.functions", fromlist=["_"]).__all__)


def test_only_what_is_offered_is_listed() -> None:
    batch_run = BatchExecution.__new__(BatchExecution)
    for run in (run_of(), batch_run):
        listed = {name for name in dir(run) if not name.startswith("__")}
        assert listed >= {"active", "await_termination", "new_batches", "notes", "progress", "stop"}
        assert not listed & {"raise_failure", "read_batches", "times_read", "followed", "cache", "temporary", "told"}
        assert {name for name in listed if not hasattr(type(run), name)} == set()
    assert {name for name in dir(hintplan) if not name.startswith("__")} == set(hintplan.__all__)


def test_packages_that_lack_are_told_before_spark_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    monkeypatch.chdir(tmp_path)
    started: list[str] = []
    monkeypatch.setattr("hintplan.runtime.run.needs.start_session", lambda *given, **more: started.append("Spark"))
    monkeypatch.setattr("hintplan.runtime.run.needs.runs_here", lambda master: True)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr("hintplan.plans.extras._is_installed", lambda name: name not in ("psycopg", "httpx"))
    server = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/d', 'table-name' = 't'"
    script = SQL.replace("'connector' = 'print'", server).replace(
        "n BIGINT)", "n BIGINT, PRIMARY KEY (c) NOT ENFORCED)"
    )
    with pytest.raises(RunError, match=r"need psycopg, which this Python .* lacks: pip install 'hintplan\[postgres\]'"):
        hintplan.execute(hintplan.compile_sql(script))
    assert started == []
    refuse_lacking(["delta"])


def test_workers_without_hintplan_are_told_apart_from_a_server() -> None:
    text = "ModuleNotFoundError: No module named 'hintplan'"
    here, of_server = worker_fault(text), worker_fault(text, connected=True)
    assert here is not None
    assert of_server is not None
    assert "server" not in here[0] + here[1]
    assert "generated" not in here[1]
    assert f"set it to {sys.executable} before Spark starts" in here[1]
    assert of_server[0] == "the Python of the Spark Connect server has no 'hintplan'"


@pytest.mark.spark
def test_variables_of_a_cell_reach_workers_and_workers_run_this_python(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that were set after Spark had started, and a PATH with another Python, as a notebook has them."""
    import pyarrow as pa

    from hintplan.runtime.spark.map_in_arrow import map_in_arrow
    from hintplan.runtime.spark.session import prepare_session

    monkeypatch.setenv("HINTPLAN_SET_LATE", "shibboleth")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    kept = {name: value for name, value in spark.sparkContext.environment.items() if "MALLOC" not in name}
    monkeypatch.setattr(spark.sparkContext, "environment", kept)
    batch = "SET 'execution.runtime-mode' = 'batch'; CREATE TABLE r (a INT) WITH ('connector' = 'blackhole');"
    plan = hintplan.compile_sql(f"{batch} INSERT INTO r VALUES (1)")
    hintplan.execute(plan, spark, policy={"environment": ["HINTPLAN_SET_LATE"]}).await_termination()
    own = prepare_session(spark, time_zone="UTC", once=True)

    def seen(batches: Any) -> Any:
        import os
        import sys

        for _ in batches:
            names = ("HINTPLAN_SET_LATE", "MALLOC_TRIM_THRESHOLD_", "MIMALLOC_PURGE_DELAY")
            values = {name: [os.environ.get(name)] for name in names}
            yield pa.RecordBatch.from_pydict({**values, "p": [sys.executable]})

    ddl = "HINTPLAN_SET_LATE STRING, MALLOC_TRIM_THRESHOLD_ STRING, MIMALLOC_PURGE_DELAY STRING, p STRING"
    (row,) = map_in_arrow(own.range(0, 1, 1, 1), seen, ddl).collect()
    # Workers keep free memory of Arrow for a minute. Of glibc they do as they are configured, here by default.
    assert tuple(row) == ("shibboleth", None, "60000", sys.executable)


def test_every_function_takes_the_path_of_a_plan_or_says_what_it_wants(file: Path, plan: hintplan.Plan) -> None:
    assert hintplan.set(file, STATE, "2 d") == hintplan.set(str(file), STATE, "2 d") == hintplan.set(plan, STATE, "2 d")
    assert hintplan.rebase(str(file), onto=file).plan == plan
    newer = file.with_name("plan.sql")
    calls = (
        lambda given: hintplan.set(given, STATE, "2 d"),
        lambda given: hintplan.rebase(given, onto=plan),
        lambda given: hintplan.rebase(plan, onto=given),
        hintplan.validate, hintplan.explain, hintplan.lint, hintplan.show, hintplan.execute,
        lambda given: hintplan.diff(given, plan),
        lambda given: hintplan.why(given, STATE),
        lambda given: hintplan.check(given, "state"),
        lambda given: hintplan.read_state(given, "state"),
    )  # fmt: skip
    for call in calls:
        for given, said, hint in (
            (5, "found int", "hintplan.load(path) make plans"),
            (None, "found NoneType", "hintplan.load(path) make plans"),
            (newer, "plan.sql is a SQL script", f"hintplan.compile_sql(pathlib.Path('{newer}').read_text())"),
            ("SELECT 1;", "found a text such as a script", "hintplan.compile_sql(text)"),
        ):
            try:
                (found,) = call(given) or ()  # type: ignore[operator, misc]
            except HintplanError as error:
                (found,) = error.diagnostics
            assert said in found.message
            assert hint in found.hint
    for write in (hintplan.dumps, lambda given: hintplan.dump(given, newer)):
        with pytest.raises(
            hintplan.PlanError, match=r"expected a plan, found str\n  hint: hintplan.load\(path\) reads"
        ):
            write("plan.json")  # type: ignore[operator]


def test_a_plan_that_is_not_there_is_looked_for_by_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hintplan.PlanError, match=f"did you mean '{file}'"):
        hintplan.load(file.with_name("paln.json"))
    monkeypatch.chdir(file.parent)
    with pytest.raises(hintplan.PlanError, match=r"did you mean 'plan\.json'"):
        hintplan.explain("plan.jsn")
    with pytest.raises(hintplan.PlanError) as raised:
        hintplan.load("nowhere/plan.json")
    assert raised.value.diagnostics[0].hint is None


def test_a_duration_may_be_a_timedelta(plan: hintplan.Plan) -> None:
    for value, text in (
        (timedelta(hours=2), "2 h"),
        (timedelta(days=3), "3 d"),
        (timedelta(milliseconds=1500), "1500 ms"),
    ):
        assert hintplan.set(plan, STATE, value) == hintplan.set(plan, STATE, text)
        assert hintplan.set(plan, {STATE: value}) == hintplan.set(plan, STATE, text)
    for wrong in (timedelta(hours=-1), timedelta(microseconds=5)):
        with pytest.raises(hintplan.PlanError, match="is no duration of whole milliseconds"):
            hintplan.set(plan, STATE, wrong)


def test_a_select_alone_in_python_is_not_sent_to_a_shell() -> None:
    with pytest.raises(SqlError, match="SELECT has no sink") as raised:
        hintplan.compile_sql(SQL + "SELECT * FROM o;")
    assert "hintplan sql" not in str(raised.value)
    with for_a_command(), pytest.raises(SqlError, match="'hintplan sql' runs such scripts"):
        hintplan.compile_sql(SQL + "SELECT * FROM o;")
