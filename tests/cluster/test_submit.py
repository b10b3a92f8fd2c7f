"""Runs that spark-submit starts, and what Spark is configured to: the master, the name and settings of others count."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from tests.cluster.conftest import DEADLINE_SECONDS, Run
from tests.cluster.installed import environment, installed
from tests.cluster.jobs import check_run_and_restart
from tests.cluster.standalone import Cluster
from tests.sample import sampled
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.part(of=2)

Submit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def submit(tmp_path: Path) -> Submit:
    """``submit(["--master", ...], "plan.json", ...)`` runs the plan by the spark-submit of the installed pyspark."""
    (program,) = installed().python.parents[1].glob("lib/python3*/site-packages/hintplan/__main__.py")

    def submit(options: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        driver = ["--conf", f"spark.pyspark.driver.python={installed().python}"]
        return subprocess.run(
            [installed().spark_home / "bin" / "spark-submit", *driver, *options, program, "run", *arguments],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False,
        )  # fmt: skip

    return submit


def prepared(directory: Path) -> None:
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", sample(0, 20))
    hintplan.dump(revenue_plan(directory), directory / "plan.json")


def test_the_submitters_master_name_and_settings_are_kept(cluster: Cluster, submit: Submit, tmp_path: Path) -> None:
    prepared(tmp_path)
    events = tmp_path / "events"
    events.mkdir()
    log = ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events}"]
    log += ["--conf", "spark.eventLog.compress=false"]
    options = [*cluster.options(), "--name", "revenue of today", "--conf", "spark.sql.shuffle.partitions=7", *log]
    done = submit(options, "plan.json", "--once", "--checkpoint", "state")
    assert done.returncode == 0, done.stderr
    assert fold(changes(tmp_path)) == expected(sample(0, 20))
    said = "".join(path.read_text(encoding="utf-8") for path in events.rglob("*") if path.is_file())
    for found in ('"App Name":"revenue of today"', f'"spark.master":"{cluster.master}"', '"Executor ID":"0"'):
        assert found in said, found
    assert '"spark.sql.restrictedMode.enabled":"true"' in said
    assert "spark.sql.shuffle.partitions=7 has no effect on this run" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("submitted", "asked", "message"),
    sampled(
        [
            ([], ["--master", "local[3]"], "local[3] comes too late: spark-submit has started Spark with local[1]"),
            ([], ["--conf", "spark.driver.memory=3g"], "to spark-submit: spark-submit --conf spark.driver.memory=3g"),
            (
                ["--conf", "spark.sql.restrictedMode.enabled=false"],
                [],
                "Spark is configured with spark.sql.restrictedMode.enabled=false",
            ),
        ],
        keep=1,
    ),
)
def test_what_contradicts_the_submitter_or_is_not_safe_is_refused(
    submit: Submit, tmp_path: Path, submitted: list[str], asked: list[str], message: str
) -> None:
    prepared(tmp_path)
    done = submit(["--master", "local[1]", *submitted], "plan.json", "--once", *asked)
    assert done.returncode == 1
    said = done.stdout + done.stderr  # spark-submit writes both to its standard output
    assert message in said
    assert "Traceback" not in said


def test_the_master_of_spark_defaults_is_kept(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    _, master, *settings = cluster.options()
    pairs = [word.split("=", 1) for word in settings if word != "--conf"]
    (tmp_path / "conf").mkdir()
    lines = [("spark.master", master), *pairs]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in lines))
    prepared(tmp_path)
    done = run("plan.json", "--once", SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert "keeps its state in a checkpoint that all workers can reach" in done.stderr
    done = run("plan.json", "--once", "--checkpoint", "state", SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert done.returncode == 0, done.stderr
    assert fold(changes(tmp_path)) == expected(sample(0, 20))


def test_a_local_run_needs_nothing_but_the_wheel(run: Run, tmp_path: Path) -> None:
    check_run_and_restart(run, tmp_path)
