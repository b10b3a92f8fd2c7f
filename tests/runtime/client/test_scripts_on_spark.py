"""Scripts on Spark: what queries show, what INSERTs write, and jobs in the background."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hintplan.runtime.run.sql_client
from hintplan.planner.session import CompileSession
from hintplan.plans.client.client import Client
from hintplan.plans.connectors.policy import OPEN
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.batch.session import Session as BatchSession
from hintplan.runtime.run.sql_client import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
ORDERS = [
    {"id": 1, "country": "DE", "total": 12.5, "at": "2024-07-01 10:30:00.5", "tags": ["a", None]},
    {"id": 2, "country": "FR", "total": 1e10, "at": None, "tags": []},
    {"id": 3, "country": None, "total": None, "at": "2024-01-01 00:00:00", "tags": None},
    {"id": 4, "country": "DE", "total": 0.1, "at": "2024-01-01 00:00:00", "tags": ["b"]},
]
TABLES = """
SET 'parallelism.default' = '2';
CREATE TABLE orders (id BIGINT, country STRING, total DOUBLE, `at` TIMESTAMP(3), tags ARRAY<STRING>)
  WITH ('connector' = 'filesystem', 'path' = 'FOLDER/orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE sums (country STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE written (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'FOLDER/written', 'format' = 'json');
"""
SUMS = "INSERT INTO sums SELECT country, COUNT(*) FROM orders GROUP BY country"


@pytest.fixture
def run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Runs statements after the tables: ``run(text)`` is (out, err)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    for index, rows in enumerate((ORDERS[:2], ORDERS[2:])):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "orders" / f"{index}.json").write_text(text, encoding="utf-8")

    def run(
        text: str, *, as_json: bool = False, checkpoint: str | None = None, allow_state_drop: bool = False
    ) -> tuple[str, str]:
        engine = Engine(
            master=None, remote=None, conf={}, checkpoint=checkpoint, trigger="100 ms", policy=OPEN,
            allow_state_drop=allow_state_drop, allow_older_sink=False, allow_missing_files=False,
            as_json=as_json, debug=False, _spark=spark,
        )  # fmt: skip
        client = Client(
            session=CompileSession.open(file="job.sql"),
            open_engine=lambda: engine,
            as_json=as_json,
            allow_fact_edits=False,
            typed=False,
        )
        try:
            for unit in client.units(f"{TABLES}{text}".replace("FOLDER", str(tmp_path))):
                assert client.run(unit) == 0
        finally:
            client.close()
        return capfd.readouterr()

    return run


def rows(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"statement"')]


def folded(found: list[Any]) -> list[tuple[Any, ...]]:
    """What the changes add up to."""
    result: list[tuple[Any, ...]] = []
    for record in found:
        values = tuple(record["row"].values())
        if record["op"] in ("+I", "+U"):
            result.append(values)
        else:
            result.remove(values)
    return sorted(result, key=str)


def test_a_query_shows_values_of_all_types_in_a_table(run: Callable[..., tuple[str, str]]) -> None:
    out, err = run("SELECT id, total, `at`, tags, id > 2 AS late FROM orders;")
    lines = out.splitlines()
    assert lines[1] == "| op | id |  total | at                      | tags      | late  |"
    assert sorted(lines[3:-1]) == [
        "| +I |  1 |   12.5 | 2024-07-01 10:30:00.500 | [a, NULL] | FALSE |",
        "| +I |  2 | 1.0E10 | <NULL>                  | []        | FALSE |",
        "| +I |  3 | <NULL> | 2024-01-01 00:00:00.000 | <NULL>    | TRUE  |",
        "| +I |  4 |    0.1 | 2024-01-01 00:00:00.000 | [b]       | TRUE  |",
    ]
    assert err.endswith("\n4 rows\n")


def test_the_changes_of_a_stream_add_up_to_the_rows_of_a_batch_job(run: Callable[..., tuple[str, str]]) -> None:
    query = "SELECT country, COUNT(*) AS n FROM orders GROUP BY country"
    out, _ = run(
        f"{query}; SET 'execution.runtime-mode' = 'batch'; {query} ORDER BY n DESC, country LIMIT 5;", as_json=True
    )
    found = rows(out)
    changes = [record for record in found if "op" in record]
    assert folded(changes) == [("DE", 2), ("FR", 1), (None, 1)]
    # One file of orders is one batch, and the second one changes what the first one counted.
    assert sorted(record["op"] for record in changes) == ["+I", "+I", "+I", "+U", "-U"]
    ordered = [tuple(record["row"].values()) for record in found if "op" not in record]
    assert ordered[0] == ("DE", 2)
    assert sorted(ordered, key=str) == [("DE", 2), ("FR", 1), (None, 1)]


def test_inserts_and_plan_files_run_one_after_the_other(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    out, err = run(f"""
        INSERT INTO written SELECT id FROM orders WHERE id > 2;
        COMPILE PLAN 'plan.json' FOR {SUMS};
        EXECUTE PLAN 'plan.json';
        COMPILE AND EXECUTE PLAN 'plan.json' FOR {SUMS};""")
    written = [json.loads(line)["id"] for path in (tmp_path / "written").glob("*.json") for line in path.open()]
    assert sorted(written) == [3, 4]
    assert out.count("+U[DE, 2]") == 2
    assert err.count("finished after ") == 3


def test_a_plan_goes_on_where_its_checkpoint_ends(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    assert run(f"{SUMS};", checkpoint="state")[0].count("\n") == 5
    assert (tmp_path / "state" / "sums" / "sink_sums").is_dir()
    (tmp_path / "orders" / "2.json").write_text('{"country": "FR"}\n')
    again, _ = run(f"{SUMS}; SELECT id FROM orders WHERE id = 1;", checkpoint="state")
    assert again.splitlines()[:2] == ["-U[FR, 1]", "+U[FR, 2]"]
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["sums"], "queries leave nothing behind"


def test_a_changed_query_goes_on_without_its_state_if_that_is_allowed(
    run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    run(f"{SUMS};", checkpoint="state")
    changed = SUMS.replace("FROM orders", "FROM orders WHERE id <> 2")
    with pytest.raises(SqlError, match="allow_state_drop=True"):
        run(f"{changed};", checkpoint="state")
    (tmp_path / "orders" / "2.json").write_text('{"id": 9, "country": "FR"}\n')
    # With its state, the FR of order 2 would count, too.
    assert run(f"{changed};", checkpoint="state", allow_state_drop=True)[0] == "+I[FR, 1]\n"


def test_a_job_in_the_background_takes_rows_that_come_later(
    run: Callable[..., tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_for_rows(count: int) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sum(len(path.read_text().splitlines()) for path in (tmp_path / "written").glob("*.json")) < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    stop = Engine.stop

    def stop_after_all(engine: Engine, name: str) -> None:
        wait_for_rows(4)
        (tmp_path / "draft.json").write_text('{"id": 5}\n')
        (tmp_path / "draft.json").rename(tmp_path / "orders" / "2.json")  # A file appears whole.
        wait_for_rows(5)
        assert [(job.name, job.status) for job in engine.jobs.values()] == [("written", "RUNNING")]
        stop(engine, name)

    monkeypatch.setattr(Engine, "stop", stop_after_all)
    _, err = run("SET 'table.dml-sync' = 'false'; INSERT INTO written SELECT id FROM orders; STOP JOB 'written';")
    assert "job written started" in err
    assert err.endswith("job written stopped\n")


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELECT * FROM endless;", "generates rows without end", "SET 'table.dml-sync' = 'false'"),
        ("SELECT * FROM absent;", "there is nothing at 'nowhere'", "create the directory"),
        ("SELECT 1 / (id - id) AS x FROM orders;", "DIVIDE_BY_ZERO", None),
        ("STOP JOB 'x';", "there is no job 'x'", "nothing runs in the background"),
    ],
)
def test_what_fails_on_spark_is_told_at_the_statement(
    run: Callable[..., tuple[str, str]], statement: str, message: str, hint: str | None
) -> None:
    declared = """CREATE TABLE endless (a INT) WITH ('connector' = 'datagen');
        CREATE TABLE absent (a INT) WITH ('connector' = 'filesystem', 'path' = 'nowhere', 'format' = 'json');"""
    with pytest.raises(SqlError) as caught:
        run(f"{declared}\n\n{statement}")
    (problem,) = caught.value.diagnostics
    assert (problem.file, problem.line, problem.column) == ("job.sql", 10, 1)
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_uncache_drops_what_was_cached(run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[int] = []
    drop = BatchSession.drop_cached
    monkeypatch.setattr(BatchSession, "drop_cached", lambda *given: dropped.append(drop(*given)))
    out, err = run(
        """SET 'execution.runtime-mode' = 'batch';
        CACHE TABLE v AS SELECT country, COUNT(*) AS n FROM orders GROUP BY country;
        SELECT country FROM v WHERE n > 1; UNCACHE TABLE v; SELECT n FROM v WHERE country = 'FR';""",
        as_json=True,
    )
    assert [record["row"] for record in rows(out)] == [{"country": "DE"}, {"n": 1}]
    assert "v is not cached from here on" in err
    assert dropped == [1]


def test_spark_is_started_before_a_run_listens_to_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    # PySpark replaces the handler of SIGINT when it starts.
    done: list[str] = []
    monkeypatch.setattr(Engine, "_session", lambda engine, plan: done.append("started"))
    monkeypatch.setattr(hintplan.runtime.run.supervised, "run_plan", lambda *given, **more: done.append("runs") or 0)
    engine = Engine(
        master=None, remote=None, conf={}, checkpoint=None, trigger=None, policy=OPEN,
        allow_state_drop=False, allow_older_sink=False, allow_missing_files=False,
            as_json=False, debug=False,
    )  # fmt: skip
    assert engine.insert(Plan(name="p")) == 0
    assert done == ["started", "runs"]
