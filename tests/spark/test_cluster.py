"""Runs on a standalone cluster whose workers lack hintplan, and through Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import plans
from tests.functions.test_functions_on_spark import FOUND, TEXTS, job, texts, tuples
from tests.spark.cluster import on_cluster, running_cluster
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.cluster

DEADLINE_SECONDS = 240
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a master with two workers of one core each on loopback, and the Python of their workers."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def run(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plans.cli", "run", "plan.json", "--once", "--checkpoint", "state", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def check_run_and_restart(directory: Path, *arguments: str, **environment: str) -> None:
    orders = sample(0, 40)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", orders[:20])
    plans.dump(revenue_plan(directory), directory / "plan.json")
    first = run(directory, *arguments, **environment)
    assert first.returncode == 0, first.stderr
    assert fold(changes(directory)) == expected(orders[:20])
    assert "aggregate_t 3 rows" in first.stderr
    add_rows(directory, "late", orders[20:])
    again = run(directory, *arguments, **environment)
    assert again.returncode == 0, again.stderr
    assert fold(changes(directory)) == expected(orders)


def test_a_cluster_whose_workers_lack_hintplan_runs_a_plan(cluster: tuple[str, Path], tmp_path: Path) -> None:
    check_run_and_restart(tmp_path, *on_cluster(*cluster))


def test_a_cluster_takes_the_module_of_a_function_along(cluster: tuple[str, Path], tmp_path: Path) -> None:
    texts(tmp_path, *TEXTS)
    module = tmp_path / "words_of_text.py"
    module.write_text((ROOT / "tests" / "functions" / "samples.py").read_text(encoding="utf-8"), encoding="utf-8")
    plan = job(tmp_path, "AsyncWords")
    moved = replace(plan.functions["words"], class_name="words_of_text.AsyncWords")
    plans.dump(replace(plan, functions={"words": moved}), tmp_path / "plan.json")
    options = on_cluster(*cluster, **{"spark.submit.pyFiles": str(module)})
    done = run(tmp_path, "--allow-module", "words_of_text", *options)
    assert done.returncode == 0, done.stderr
    assert tuples(tmp_path) == FOUND
    assert "correlate_w: 10 calls · 5 rows out · 5 failures · 5 retries" in done.stderr


@pytest.mark.usefixtures("connect_port")
def test_spark_connect_runs_a_plan(tmp_path: Path) -> None:
    check_run_and_restart(tmp_path, "--remote", "local[2]")


def test_a_cluster_needs_a_checkpoint_that_all_workers_reach(cluster: tuple[str, Path], tmp_path: Path) -> None:
    master, _ = cluster
    plans.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    done = subprocess.run(
        [sys.executable, "-m", "plans.cli", "run", "plan.json", "--once", "--master", master],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "keeps its state in a checkpoint that all workers can reach" in done.stderr
