"""Bundles on clusters whose machines have Python, numpy and pyarrow, and nothing of hintplan; the driver's, too."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from hintplan import compile_sql
from tests.cluster.conftest import DEADLINE_SECONDS
from tests.cluster.installed import NEEDED_BY_WORKERS, environment, installed, python_with
from tests.cluster.jobs import prepare_words
from tests.cluster.standalone import Cluster
from tests.cluster.yarn import QUEUE, Yarn
from tests.connectors.messages.broker import Broker, spark_conf
from tests.connectors.messages.conftest import broker, compiled  # noqa: F401
from tests.faults.processes import descendants
from tests.runtime.functions.test_functions_on_spark import FOUND, tuples
from tests.sample import in_turn, sampled
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.part(of=3)

ROWS = sample(0, 40)
OURS_IN_A_TRACEBACK = re.compile(r'File "[^"]*(?:/planner/|/plans/|/runtime/|_main\.py|hintplan)[^"]*"')


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A directory that has nothing to do with the job."""
    (tmp_path / "away").mkdir()
    return tmp_path / "away"


def prepare(directory: Path) -> None:
    """Rows, and the plan ``revenue.json``, whose name is another: that of the team."""
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", ROWS[:20])
    hintplan.dump(revenue_plan(directory), directory / "revenue.json")


def bundle(directory: Path, *options: str, **more: str) -> str:
    """Bundle ``revenue.json`` as the installed command does; what it prints."""
    done = subprocess.run(
        [installed().hintplan, "bundle", "revenue.json", "-o", "dist", "--", *options],
        cwd=directory, env=environment(**more), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit(away: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed().spark_home / "bin" / "spark-submit", *words],
        cwd=away, env=environment(**more), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False,
    )  # fmt: skip


def wait_until(what: str, holds: Callable[[], bool], said: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}\n{said()}"
        threading.Event().wait(0.3)


def events(directory: Path) -> list[str]:
    """The options that make Spark note in ``directory`` what it was started with."""
    directory.mkdir()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(directory), "spark.eventLog.compress": "false"}
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def noted(directory: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in directory.rglob("*") if path.is_file())


def test_in_client_mode_state_goes_on_and_the_application_is_called_as_the_plan(
    cluster: Cluster, tmp_path: Path, away: Path
) -> None:
    prepare(tmp_path)
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    shutil.move(tmp_path / "revenue.json", tmp_path / "revenue.json.away")
    dist = tmp_path / "dist"
    log = events(tmp_path / "events")
    conf = ["--conf", "spark.cleaner.periodicGC.interval=17min"]
    program = ["--py-files", str(dist / "revenue.zip"), str(dist / "revenue_main.py")]
    done = submit(away, *cluster.options(), *log, *conf, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert fold(changes(tmp_path)) == expected(ROWS[:20])
    found = noted(tmp_path / "events")
    kept = {"App Name": "revenue", "spark.master": cluster.master, "spark.cleaner.periodicGC.interval": "17min"}
    for name, value in {**kept, "spark.sql.restrictedMode.enabled": "true"}.items():
        assert f'"{name}":"{value}"' in found

    add_rows(tmp_path, "late", ROWS[20:])
    # Without --py-files, the archive is found beside the program; and the submitter may call it otherwise.
    more = events(tmp_path / "more")
    again = submit(away, *cluster.options(), *more, "--name", "revenue of today", str(dist / "revenue_main.py"))
    assert again.returncode == 0, again.stdout + again.stderr
    assert fold(changes(tmp_path)) == expected(ROWS)
    assert '"App Name":"revenue of today"' in noted(tmp_path / "more")
    assert list(away.iterdir()) == []


def test_in_cluster_mode_a_standalone_cluster_runs_the_driver(cluster: Cluster, tmp_path: Path, away: Path) -> None:
    """As the command says it: Spark itself refuses programs in Python there, but starts its own class that runs one."""
    prepare(tmp_path)
    printed = bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    shutil.copy(tmp_path / "dist" / "revenue.zip", tmp_path / "dist" / "revenue.jar")
    (line,) = re.findall(r"^  spark-submit (.*PythonRunner) dist/revenue.jar revenue.jar ''$", printed, re.MULTILINE)
    words = line.replace("--master URL", "").split()
    _, _, *settings = cluster.options(**{"spark.driver.memory": "500m"})
    jar = str(tmp_path / "dist" / "revenue.jar")
    done = submit(away, "--master", cluster.master, *settings, *words, jar, "revenue.jar", "")
    assert done.returncode == 0, done.stdout + done.stderr
    driver = re.search(r"driver-\d+-\d+", done.stdout + done.stderr)
    assert driver is not None, done.stderr

    def printed_there() -> str:
        logs = sorted((cluster.directory / "work" / driver[0]).glob("std*"))
        return "\n".join(log.read_text(encoding="utf-8") for log in logs)

    wait_until("the driver", lambda: state_of(cluster, driver[0]) in ("FINISHED", "FAILED"), printed_there)
    assert state_of(cluster, driver[0]) == "FINISHED", printed_there()
    assert "finished after" in printed_there()
    assert fold(changes(tmp_path)) == expected(ROWS[:20])
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.ui}/json/", timeout=5) as answer:
        assert "revenue" in [app["name"] for app in json.load(answer)["completedapps"]]


def state_of(cluster: Cluster, driver: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.ui}/json/", timeout=5) as answer:
        known = json.load(answer)
    return next(each["state"] for each in (*known["activedrivers"], *known["completeddrivers"]) if each["id"] == driver)


@pytest.mark.parametrize("mode", sampled(["client", "cluster"], keep=1))
@in_turn(0, of=2)
def test_yarn_runs_it_in_the_submitters_queue(yarn: Yarn, tmp_path: Path, away: Path, mode: str) -> None:
    prepare(tmp_path)
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    dist = tmp_path / "dist"
    words = ["--deploy-mode", mode, "--name", "revenue", "--py-files", str(dist / "revenue.zip")]
    conf = {"HADOOP_CONF_DIR": str(yarn.directory / "conf")}
    done = submit(away, *yarn.options(), *words, str(dist / "revenue_main.py"), **conf)
    (application, *_) = yarn.applications()
    assert done.returncode == 0, done.stdout + done.stderr + yarn.said(application["id"])
    assert fold(changes(tmp_path)) == expected(ROWS[:20])
    assert (application["name"], application["finalStatus"]) == ("revenue", "SUCCEEDED")
    assert application["queue"].rpartition(".")[2] == QUEUE


@in_turn(0, of=2)
def test_the_users_module_goes_along(cluster: Cluster, tmp_path: Path, away: Path) -> None:
    module = prepare_words(tmp_path)
    shutil.move(tmp_path / "plan.json", tmp_path / "revenue.json")
    own = {"PYTHONPATH": str(tmp_path / "own")}
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once", "--allow-module", module, **own)
    shutil.rmtree(tmp_path / "own")
    dist = tmp_path / "dist"
    program = ["--py-files", str(dist / "revenue.zip"), str(dist / "revenue_main.py")]
    done = submit(away, *cluster.options(), *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tuples(tmp_path) == FOUND


@in_turn(1, of=2)
def test_the_definition_of_messages_goes_along(
    cluster: Cluster,
    broker: Broker,  # noqa: F811
    compiled: Path,  # noqa: F811
    tmp_path: Path,
    away: Path,
) -> None:
    topic, definition = broker.create(), tmp_path / "orders.desc"
    shutil.copy(compiled, definition)
    # By hand: field 3 (sint64, zigzag) and field 8 (text) of shop3.Order3.
    broker.send(topic, [(None, b"\x18\x06" + b"\x42\x02hi"), (None, b"\x18\x07" + b"\x42\x02ho")])
    plan = compile_sql(
        f"""CREATE TABLE orders (l BIGINT, s STRING) WITH ('connector' = 'kafka', 'topic' = '{topic}',
          'properties.bootstrap.servers' = '{broker.servers}', 'scan.startup.mode' = 'earliest-offset',
          'format' = 'protobuf', 'protobuf.message-class-name' = 'shop3.Order3',
          'protobuf.descriptor-file' = '{definition}');
        CREATE TABLE result (l BIGINT, s STRING) WITH ('connector' = 'filesystem', 'format' = 'json',
          'path' = '{tmp_path}/result');
        INSERT INTO result SELECT l, s FROM orders;""",
        name="orders",
    )
    hintplan.dump(plan, tmp_path / "revenue.json")
    printed = bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    assert f"  {definition}\n" in printed.partition("goes along:\n")[2].partition("must be there")[0]
    definition.unlink()
    settings = {**spark_conf(), "spark.pyspark.python": str(python_with(NEEDED_BY_WORKERS, "kafka"))}
    more = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    dist = tmp_path / "dist"
    program = ["--py-files", str(dist / "revenue.zip"), str(dist / "revenue_main.py")]
    done = submit(away, *cluster.options(), *more, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [
        json.loads(line) for path in (tmp_path / "result").glob("*.json") for line in path.read_text().splitlines()
    ]
    assert sorted(found, key=lambda row: row["l"]) == [{"l": -4, "s": "ho"}, {"l": 3, "s": "hi"}]


def test_sigterm_of_the_submitters_jvm_ends_the_run_after_its_batch(tmp_path: Path, away: Path) -> None:
    prepare(tmp_path)
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"))
    dist = tmp_path / "dist"
    python = ["--conf", f"spark.pyspark.python={installed().worker}"]
    command = [installed().spark_home / "bin" / "spark-submit", "--master", "local[2]", *python]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [*command, dist / "revenue_main.py"],
            cwd=away, env=environment(), stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    try:
        # Ten batches are there for each table, of which it has not read all when the first rows are out.
        wait_until("the first rows", lambda: len(changes(tmp_path)) > 0, (tmp_path / "said").read_text)
        process.send_signal(signal.SIGTERM)  # to the JVM alone, which is the first process
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        wait_until("the end of Python", lambda: "stopped after" in (tmp_path / "said").read_text())
    finally:
        for pid in descendants(process.pid):
            subprocess.run(["kill", "-9", str(pid)], check=False)
        process.kill()
        process.wait()
    printed = (tmp_path / "said").read_text()
    assert "stopping after this batch" in printed
    # Spark's own processes of Python may say that the JVM is gone: none of our code may be in what they print.
    assert OURS_IN_A_TRACEBACK.findall(printed) == []


def test_python_of_spark_finds_what_only_the_program_has_unpacked(tmp_path: Path, away: Path) -> None:
    """Local workers, and what reads generated rows beside the driver, without --py-files."""
    rows = "'connector' = 'datagen', 'number-of-rows' = '3', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1'"
    sql = f"""
    CREATE TABLE numbers (id BIGINT) WITH ({rows}, 'fields.id.end' = '3');
    CREATE TABLE sums (total BIGINT) WITH ('connector' = 'print');
    INSERT INTO sums SELECT SUM(id) FROM numbers;
    """
    hintplan.dump(compile_sql(sql, name="numbers"), tmp_path / "revenue.json")
    bundle(tmp_path, "--once")
    python = f"spark.pyspark.python={installed().worker}"
    done = submit(away, "--master", "local[1]", "--conf", python, str(tmp_path / "dist" / "revenue_main.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "+I[6]" in done.stdout


def test_a_plan_that_was_changed_in_the_archive_is_refused(tmp_path: Path, away: Path) -> None:
    prepare(tmp_path)
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    other = revenue_plan(tmp_path, ttl="1 d")
    hintplan.dump(other, tmp_path / "other.json")
    changed = tmp_path / "changed"
    changed.mkdir()
    shutil.copy(tmp_path / "dist" / "revenue_main.py", changed)
    archive = zipfile.ZipFile(tmp_path / "dist" / "revenue.zip")
    with archive as old, zipfile.ZipFile(changed / "revenue.zip", "w") as new:
        for name in old.namelist():
            data = (tmp_path / "other.json").read_bytes() if name == "revenue.json" else old.read(name)
            new.writestr(name, data)
    python = f"spark.pyspark.python={installed().worker}"
    done = submit(away, "--master", "local[1]", "--conf", python, str(changed / "revenue_main.py"))
    assert done.returncode == 1
    assert "it is not the plan that was reviewed" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "state").exists()


def test_a_driver_that_lacks_a_package_is_told_which(tmp_path: Path, away: Path) -> None:
    prepare(tmp_path)
    bundle(tmp_path, "--checkpoint", str(tmp_path / "state"), "--once")
    python = f"spark.pyspark.python={python_with(('numpy',))}"
    done = submit(away, "--master", "local[1]", "--conf", python, str(tmp_path / "dist" / "revenue_main.py"))
    assert done.returncode == 64
    said = done.stdout + done.stderr
    assert re.search(
        r"running on Spark needs pyarrow, which this Python \(.*\) lacks: pip install pyarrow$", said, re.M
    )
