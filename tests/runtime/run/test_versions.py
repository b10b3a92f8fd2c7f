"""What differs between versions of Spark: the table of them is true of the one that is installed, and a checkpoint of
one is continued by another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.spark.versions import VERSIONS, facts, require_pandas, version_notes
from tests.cluster.jobs import check_run_and_restart, closed_windows
from tests.links import link_package
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample
from tests.spark.timed_plan import add_events, with_windows

ROOT = Path(__file__).parents[3]
IS_NEWEST = pyspark.__version__.startswith(f"{[*VERSIONS][-1]}.")
DEADLINE_SECONDS = 300


def run_with(python: Path, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``hintplan run`` of the checkout, on the Spark that ``python`` has."""
    return subprocess.run(
        [python, "-m", "hintplan", "run", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def test_the_versions_are_those_that_are_installed_and_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert list(VERSIONS) == ["4.0", "4.1", "4.2", "4.3"]
    assert "pyspark>=4.0,<4.4" in project["optional-dependencies"]["spark"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^SPARKS := (.*)$", makefile, re.MULTILINE) == [" ".join(VERSIONS)]


@pytest.mark.parametrize("version", ["3.5.8", "4.4.0", "5.0"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(RunError, match=rf"hintplan runs on Spark 4\.0 to 4\.3, and this is Spark {version}"):
        facts(version)


@pytest.mark.parametrize(
    ("spark", "pandas", "said"),
    [
        ("4.0.5", None, "Spark 4.0 needs pandas 2.0 or newer in the driver's Python, which has none"),
        ("4.1.4", "2.1.4", "Spark 4.1 needs pandas 2.2 or newer in the driver's Python, which has 2.1.4"),
        ("4.2.1", "1.10.0", "which has 1.10.0"),
        ("4.0.5", "2.0.0", ""),
        ("4.2.1", "3.0.1", ""),
        ("4.3.0", None, ""),
    ],
)
def test_versions_that_need_pandas_say_so(tmp_path: Path, spark: str, pandas: str | None, said: str) -> None:
    if pandas is not None:
        (tmp_path / f"pandas-{pandas}.dist-info").mkdir()
        (tmp_path / f"pandas-{pandas}.dist-info" / "METADATA").write_text(f"Name: pandas\nVersion: {pandas}\n")
    program = (
        f"import sys; sys.path += [{str(link_package(tmp_path / 'own'))!r}, {str(tmp_path)!r}]\n"
        "from hintplan.runtime.spark.versions import require_pandas\n"
        f"require_pandas({spark!r})\n"
    )
    # Without what is installed here.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not said), done.stderr
    assert said in done.stderr
    assert ("-m pip install 'pandas>=" in done.stderr) == bool(said)


@pytest.mark.spark
def test_what_the_table_says_of_this_version_is_so(spark: SparkSession) -> None:
    known = facts(pyspark.__version__)
    require_pandas(pyspark.__version__)
    assert spark.sparkContext._jvm is not None
    assert spark.sparkContext._jvm.java.lang.Class.forName(known.log_files).getSimpleName()
    own = prepare_session(spark, time_zone="UTC", once=True)
    reflected = "reflect('java.lang.System', 'lineSeparator')"
    if known.restricted_mode:
        with pytest.raises((PySparkException, Py4JError)):
            own.range(1).selectExpr(reflected).collect()
    else:
        assert own.range(1).selectExpr(reflected).collect() == [("\n",)]
    assert bool(list(version_notes(own.version))) == (not known.restricted_mode)


@pytest.mark.spark
@pytest.mark.integration
# The gate has this on the oldest Spark; on the newest, tests/cluster/test_connect.py runs more than it.
@(pytest.mark.nightly if IS_NEWEST else pytest.mark.spark)
@pytest.mark.usefixtures("connect_port")
def test_a_run_and_a_restart_on_spark_connect(tmp_path: Path) -> None:
    check_run_and_restart(partial(run_with, Path(sys.executable), tmp_path), tmp_path, "--remote", "local[2]")


@pytest.mark.spark
@pytest.mark.integration
def test_a_checkpoint_of_an_older_version_is_continued(tmp_path: Path) -> None:
    """This Python's Spark and that of another environment of the checkout, which ``make`` has made."""
    pythons = (Path(sys.executable), *ROOT.glob(".*/bin/python"))
    found = {number: python for python in pythons if (number := version_of(python))}
    older, newer = min(found), max(found)
    if older == newer:
        pytest.skip("there is no environment with another version of Spark; make test-spark SPARK=4.0 makes one")
    rows = sample(0, 40)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", rows[:20])
    add_events(tmp_path, "events", [(1, 1_000), (1, 2_500), (2, 2_000)], "json")
    hintplan.dump(with_windows(revenue_plan(tmp_path), tmp_path), tmp_path / "plan.json")
    first = run_with(found[older], tmp_path, "plan.json", "--once", "--checkpoint", "state")
    assert first.returncode == 0, first.stderr
    assert fold(changes(tmp_path)) == expected(rows[:20])
    add_rows(tmp_path, "late", rows[20:])
    add_events(tmp_path, "events", [(2, 13_000)], "json")
    again = run_with(found[newer], tmp_path, "plan.json", "--once", "--checkpoint", "state")
    assert again.returncode == 0, again.stderr
    assert fold(changes(tmp_path)) == expected(rows)
    assert closed_windows(tmp_path) == [(1, 2, 10), (2, 1, 10)]
    assert f"Spark {'.'.join(map(str, older))} wrote the checkpoint, Spark {'.'.join(map(str, newer))}" in again.stderr


def version_of(python: Path) -> tuple[int, ...]:
    """The version of PySpark that ``python`` has, as it is installed; () if it has none."""
    found = python.parents[1].glob("lib/python3*/site-packages/pyspark-*.dist-info")
    return next((tuple(map(int, re.findall(r"\d+", path.name)[:3])) for path in found), ())
