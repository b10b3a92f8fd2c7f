"""A cached result is a snapshot: whatever happens to what it was computed from, in whatever order, it stays as it was.

The reference is :class:`Model`: a number of rows, and how many of them a snapshot has.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import hintplan.runtime.batch.session
from hintplan import Session
from hintplan.planner.session import CompileSession as Script
from hintplan.plans.client.client import Client
from hintplan.plans.connectors.policy import OPEN
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import HintplanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink
from hintplan.runtime.batch.execution import BatchExecution
from hintplan.runtime.run.sql_client import Engine
from tests.runtime.batch.programs import batch_plan, cached, read_rows, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 180
FIRST = 3
STATEMENTS = {
    "cache": "CACHE TABLE c;",
    "cache lazily": "CACHE LAZY TABLE c;",
    "read": "SELECT COUNT(*) AS n FROM c;",
    "insert": "INSERT INTO t SELECT id FROM more;",
    "uncache": "UNCACHE TABLE c;",
}


@dataclass(frozen=True)
class Model:
    """``rows`` of the table; ``kept`` of them in the snapshot, -1 if the next read makes it, None without one."""

    rows: int = FIRST
    kept: int | None = None

    def after(self, step: str) -> Model:
        if step in ("insert", "another inserts"):
            return replace(self, rows=self.rows + 1)
        if step == "uncache":
            return replace(self, kept=None)
        if step == "cache":
            return replace(self, kept=self.rows) if self.kept is None else self
        if step == "cache lazily":
            return replace(self, kept=-1) if self.kept is None else self
        return replace(self, kept=self.rows) if self.kept == -1 else self

    @property
    def seen(self) -> int:
        return self.rows if self.kept in (None, -1) else self.kept

    @property
    def kind(self) -> str:
        if self.kept in (None, -1):
            return str(self.kept)
        return "fresh" if self.kept == self.rows else "stale"


STEPS = ("cache", "cache lazily", "read", "insert", "another inserts", "uncache")


def every_step_in_every_state() -> list[str]:
    """A walk that takes each step in each state, and reads after each, for what came of it."""
    walk: list[str] = []
    model, open_steps = Model(), {(kind, step) for kind in ("None", "-1", "fresh", "stale") for step in STEPS}
    while open_steps:
        paths = deque([(model, [])])
        seen = {model.kind}
        while True:  # the shortest way to something new
            at, path = paths.popleft()
            new = next((step for step in STEPS if (at.kind, step) in open_steps), None)
            if new is not None:
                break
            for step in STEPS:
                if (there := at.after(step)).kind not in seen:
                    seen.add(there.kind)
                    paths.append((there, [*path, step]))
        for step in (*path, new):
            open_steps.discard((model.kind, step))
            model = model.after(step)
            walk.append(step)
    return [*walk, "read"]


SHORT = ["cache", "insert", "read", "another inserts", "read", "uncache", "read", "cache lazily", "insert", "read"]


def write_file(directory: Path, kind: str, name: str, ids: list[int]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path)
    else:
        line = "{}\n" if kind == "csv" else '{{"id": {}}}\n'
        path.write_text("".join(line.format(number) for number in ids), encoding="utf-8")


@pytest.fixture
def client(spark: SparkSession, tmp_path: Path) -> Iterator[Client]:
    engine = Engine(
        master=None, remote=None, conf={}, checkpoint=None, trigger=None, policy=OPEN,
        allow_state_drop=False, allow_older_sink=False, allow_missing_files=False,
        as_json=True, debug=False, _spark=spark,
    )  # fmt: skip
    opened = Client(
        session=Script.open(file="job.sql"), open_engine=lambda: engine, as_json=True, allow_fact_edits=False,
        typed=False,
    )  # fmt: skip
    feed(opened, "SET 'execution.runtime-mode' = 'batch'; SET 'parallelism.default' = '2';")
    try:
        yield opened
    finally:
        opened.close()
        assert persisted(spark) == 0


def feed(client: Client, text: str) -> None:
    for unit in client.units(text):
        assert client.run(unit) == 0


def persisted(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())  # type: ignore[union-attr]


def read(client: Client, capfd: pytest.CaptureFixture[str], query: str) -> list[dict[str, object]]:
    capfd.readouterr()
    feed(client, query)
    records = map(json.loads, capfd.readouterr().out.splitlines())
    return [record["row"] for record in records if "row" in record]


@pytest.mark.parametrize(
    ("kind", "walk"),
    [
        ("json", SHORT),
        ("csv", SHORT),
        ("parquet", SHORT),
        pytest.param("json", every_step_in_every_state(), marks=pytest.mark.integration),
    ],
    ids=["json", "csv", "parquet", "every step in every state"],
)
def test_what_is_read_is_what_was_there_when_it_was_cached(
    client: Client, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, walk: list[str]
) -> None:
    write_file(tmp_path / "t", kind, "0", list(range(FIRST)))
    write_file(tmp_path / "more", kind, "0", [99])
    for table in ("t", "more"):
        where = f"'connector' = 'filesystem', 'format' = '{kind}', 'path' = '{tmp_path / table}'"
        feed(client, f"CREATE TABLE {table} (id BIGINT) WITH ({where});")
    feed(client, "CREATE VIEW c AS SELECT id FROM t;")
    model = Model()
    for place, step in enumerate(walk):
        model = model.after(step)
        if step == "another inserts":
            write_file(tmp_path / "t", kind, f"another-{place}", [100])
        elif step == "read":
            assert read(client, capfd, STATEMENTS[step]) == [{"n": model.seen}], walk[: place + 1]
        else:
            feed(client, STATEMENTS[step])


@pytest.mark.cluster
@pytest.mark.integration
@pytest.mark.usefixtures("connect_port")
def test_it_is_so_on_spark_connect(tmp_path: Path) -> None:
    """Also for files whose names are patterns, or look encoded."""
    for name in ("0", "1 [a]", "100%25"):
        write_rows(tmp_path / "t", [{"id": 1}], f"{name}.json")
    write_rows(tmp_path / "more", [{"id": 99}])
    tables = "".join(
        f"CREATE TABLE {table} (id BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / table}');\n"
        for table in ("t", "more")
    )
    view = "CREATE VIEW c AS SELECT id FROM t;\n"
    batch = "SET 'execution.runtime-mode' = 'batch'; SET 'parallelism.default' = '2';\n"
    steps = [step for step in SHORT if step != "another inserts"]
    script = batch + tables + view + "\n".join(STATEMENTS[step] for step in steps)
    (tmp_path / "job.sql").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *["-m", "hintplan", "sql", "job.sql", "--json", "--remote", "local[2]", "--checkpoint", "c"]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    model, expected = Model(), []
    for step in steps:
        model = model.after(step)
        if step == "read":
            expected.append({"n": model.seen})
    assert [record["row"] for record in map(json.loads, done.stdout.splitlines()) if "row" in record] == expected


def test_rows_that_were_looked_up_in_a_database_stay_as_they_were(
    client: Client, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_file(tmp_path / "t", "json", "0", [1, 2])
    with sqlite3.connect(tmp_path / "names.db") as database:
        database.execute("CREATE TABLE names (id BIGINT PRIMARY KEY, name TEXT)")
        database.execute("INSERT INTO names VALUES (1, 'one')")
    database.close()
    feed(
        client,
        f"""
        CREATE TABLE t (id BIGINT, at AS PROCTIME())
          WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / "t"}');
        CREATE TABLE names (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
          WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "names.db"}', 'table-name' = 'names');
        CREATE VIEW c AS SELECT t.id, n.name FROM t LEFT JOIN names FOR SYSTEM_TIME AS OF t.at AS n ON t.id = n.id;
        """,
    )
    names = "SELECT name FROM c ORDER BY id;"
    for cache in ("CACHE TABLE c;", "CACHE LAZY TABLE c; SELECT id FROM c;"):
        feed(client, cache)
        before = read(client, capfd, names)
        new = "two" if before == [{"name": "one"}, {"name": None}] else "three"
        feed(client, f"INSERT INTO names SELECT id, '{new}' FROM t WHERE id = 2;")
        assert read(client, capfd, names) == before
        feed(client, "UNCACHE TABLE c;")
        assert read(client, capfd, names) == [{"name": "one"}, {"name": new}]


def test_cache_table_that_fails_says_why_and_the_next_reader_computes(
    client: Client, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_file(tmp_path / "t", "json", "0", [1, 2])
    (tmp_path / "t" / "bad.json").write_text("{no json\n", encoding="utf-8")
    where = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 't'}'"
    feed(client, f"CREATE TABLE t (id BIGINT) WITH ({where});")
    with pytest.raises(HintplanError, match=r"bad\.json"):
        feed(client, "CACHE TABLE c AS SELECT id FROM t;")
    (tmp_path / "t" / "bad.json").unlink()
    assert read(client, capfd, STATEMENTS["read"]) == [{"n": 2}]


# --- plans in a session -----------------------------------------------------------------------------------------------


def counting(directory: Path, sink: str, *, limit: bool = False) -> Plan:
    """The number of rows of ``t`` that the cached ``scan`` has, into ``sink``; or one of them."""
    query = "SELECT id FROM (SELECT id FROM t LIMIT 1)" if limit else "SELECT COUNT(*) FROM t"
    files = "'connector' = 'filesystem', 'format' = 'json'"
    plan = batch_plan(
        f"""
        CREATE TABLE t (id BIGINT) WITH ({files}, 'path' = '{directory / "t"}');
        CREATE TABLE result (n BIGINT) WITH ({files}, 'path' = '{directory / sink}');
        INSERT INTO result {query};
        """
    )
    return cached(plan, "scan_t")


def counted(directory: Path, sink: str) -> list[int]:
    return [row["n"] for row in read_rows(directory / sink)]


def run(session: Session, plan: Plan) -> None:
    assert session.execute(plan).await_termination(DEADLINE_SECONDS)


def test_files_that_are_changed_or_gone_do_not_change_it_nor_does_a_write_of_others_in_the_application(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(FIRST):
        write_rows(tmp_path / "t", [{"id": number}], f"{number}.json")
    with Session(spark) as session:
        run(session, counting(tmp_path, "first"))
        write_rows(tmp_path / "t", [{"id": 7}, {"id": 8}], "0.json")
        (tmp_path / "t" / "1.json").unlink()
        spark.range(5).coalesce(1).write.mode("append").json(str(tmp_path / "t"))
        run(session, counting(tmp_path, "second"))
        assert counted(tmp_path, "second") == [FIRST]
        (result,) = session.cached_results()
        assert (result.rows, result.hits) == (FIRST, 1), "read, and not computed again"
        result.invalidate()
        run(session, counting(tmp_path, "third"))
        assert counted(tmp_path, "third") == [3 + 5]


def test_a_result_that_was_read_in_part_is_completed_from_the_files_of_its_first_reader(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(FIRST):
        write_rows(tmp_path / "t", [{"id": number}], f"{number}.json")
    with Session(spark) as session:
        run(session, counting(tmp_path, "first", limit=True))
        write_rows(tmp_path / "t", [{"id": 99}], "99.json")
        spark.range(5).coalesce(1).write.mode("append").json(str(tmp_path / "t"))
        run(session, counting(tmp_path, "second"))
    assert counted(tmp_path, "second") == [FIRST]


def test_a_computation_that_failed_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "t", [{"id": 1}])
    (tmp_path / "t" / "bad.json").write_text("{no json\n", encoding="utf-8")
    with Session(spark) as session:
        with pytest.raises(RunError, match=r"bad\.json"):
            run(session, counting(tmp_path, "first"))
        assert session.cached_results() == ()
        assert persisted(spark) == 0
        (tmp_path / "t" / "bad.json").unlink()
        run(session, counting(tmp_path, "second"))
        assert counted(tmp_path, "second") == [1]
        # A result that is there as a whole outlives the failure of a job that reads it.
        (tmp_path / "third").write_text("no directory", encoding="utf-8")
        with pytest.raises(RunError):
            run(session, counting(tmp_path, "third"))
        (result,) = session.cached_results()
        assert (result.rows, result.hits) == (1, 0)


def test_a_plan_that_cannot_be_built_leaves_no_list_of_files(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "t", [{"id": 1}])
    plan = counting(tmp_path, "first")
    scan = next(o for o in plan.operators if isinstance(o, Scan))
    missing = replace(plan.tables["t"], options={**plan.tables["t"].options, "path": str(tmp_path / "missing")})
    sink = next(o for o in plan.operators if isinstance(o, Sink))
    operators = (
        *plan.operators,
        replace(scan, id="scan_m", table="m", settings={}),
        replace(sink, id="sink_m", inputs=("scan_m",), table="s"),
    )
    drop = Table(columns=plan.tables["t"].columns, options={"connector": "blackhole"})
    broken = replace(plan, operators=operators, tables={**plan.tables, "m": missing, "s": drop})
    with Session(spark) as session:
        with pytest.raises(RunError, match="there is nothing at"):
            session.execute(broken)
        assert session.cached_results() == ()
        write_rows(tmp_path / "t", [{"id": 2}], "1.json")
        run(session, plan)
    assert counted(tmp_path, "first") == [2]


def test_threads_that_want_one_result_have_it_computed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, both = [], threading.Barrier(4)
    build = hintplan.runtime.batch.session.build_sinks

    def counted_builds(*given: Any) -> Any:
        jobs = build(*given)
        built.append([entry for job in jobs for entry in job.reads if not entry.computed])
        return jobs

    monkeypatch.setattr(hintplan.runtime.batch.session, "build_sinks", counted_builds)
    write_rows(tmp_path / "t", [{"id": number} for number in range(FIRST)])
    with Session(spark) as session:

        def work(number: int) -> None:
            both.wait(DEADLINE_SECONDS)
            run(session, counting(tmp_path, f"sink{number}"))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        assert [counted(tmp_path, f"sink{number}") for number in range(4)] == [[FIRST]] * 4
        assert sorted(len(fresh) for fresh in built) == [0, 0, 0, 1]
        (result,) = session.cached_results()
        assert (result.rows, result.hits) == (FIRST, 3)
    assert persisted(spark) == 0


def test_when_the_first_of_two_threads_fails_the_other_computes(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "t", [{"id": 1}])
    (tmp_path / "t" / "bad.json").write_text("{no json\n", encoding="utf-8")
    with Session(spark) as session, ThreadPoolExecutor(1) as thread:
        failing = session.execute(counting(tmp_path, "first"))
        second = thread.submit(session.execute, counting(tmp_path, "second"))
        with pytest.raises(RunError, match=r"bad\.json"):
            failing.await_termination(DEADLINE_SECONDS)
        with pytest.raises(RunError, match=r"bad\.json"):
            second.result(DEADLINE_SECONDS).await_termination(DEADLINE_SECONDS)
        (tmp_path / "t" / "bad.json").unlink()
        run(session, counting(tmp_path, "third"))
    assert counted(tmp_path, "third") == [1]


def test_what_is_dropped_while_a_job_reads_it_is_freed_when_the_job_has_ended(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "t", [{"id": 1}])
    at_work, go_on = threading.Event(), threading.Event()
    written = BatchExecution._written

    def held_up(execution: BatchExecution, job: Any) -> Any:
        at_work.set()
        assert go_on.wait(DEADLINE_SECONDS)
        return written(execution, job)

    monkeypatch.setattr(BatchExecution, "_written", held_up)
    with Session(spark) as session:
        execution = session.execute(counting(tmp_path, "first"))
        assert at_work.wait(DEADLINE_SECONDS)
        assert session.uncache("scan_t") == 1
        assert session.cached_results() == ()
        go_on.set()
        assert execution.await_termination(DEADLINE_SECONDS)
        assert persisted(spark) == 0
    assert counted(tmp_path, "first") == [1]


def test_close_leaves_nothing_whatever_threads_do_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "t", [{"id": 1}])
    building, go_on = threading.Event(), threading.Event()
    build = hintplan.runtime.batch.session.build_sinks

    def held_up(*given: Any) -> Any:
        building.set()
        assert go_on.wait(DEADLINE_SECONDS)
        return build(*given)

    monkeypatch.setattr(hintplan.runtime.batch.session, "build_sinks", held_up)
    session = Session(spark)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(session.execute, counting(tmp_path, "first"))
        assert building.wait(DEADLINE_SECONDS)
        second = threads.submit(session.execute, counting(tmp_path, "second"))
        closing = threads.submit(session.close)
        go_on.set()
        closing.result(DEADLINE_SECONDS)
        assert not first.result(DEADLINE_SECONDS).active
        refused = second.exception(DEADLINE_SECONDS)
        assert refused is None or "the session is closed" in str(refused)
    assert session.cached_results() == ()
    assert persisted(spark) == 0
    with pytest.raises(RunError, match="the session is closed"):
        session.execute(counting(tmp_path, "third"))
