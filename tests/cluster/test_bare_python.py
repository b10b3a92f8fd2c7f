"""A Python that lacks what Spark needs of it, of workers or of a client: the run names that, and what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import plans
from tests.cluster.conftest import Run
from tests.cluster.installed import environment, installed, python_with
from tests.cluster.standalone import Cluster
from tests.spark.programs import CUSTOMER_ROWS, add_rows, revenue_plan, sample

# A stream runs without pandas, too, which would bring numpy.
NEEDED = ("numpy", "protobuf", "pyarrow")
REST = {lacked: tuple(name for name in NEEDED if name != lacked) for lacked in NEEDED}


def _prepare(directory: Path) -> None:
    """Some rows, and a plan with state."""
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", sample(0, 20))
    plans.dump(revenue_plan(directory), directory / "plan.json")


@pytest.mark.parametrize("lacked", NEEDED)
def test_a_package_that_workers_lack_is_named(cluster: Cluster, run: Run, tmp_path: Path, lacked: str) -> None:
    python = python_with(REST[lacked])
    _prepare(tmp_path)
    conf = {"spark.pyspark.python": str(python)}
    done = run("plan.json", "--once", "--checkpoint", "state", *cluster.options(**conf))
    assert done.returncode == 1, done.stderr
    assert f"the Python of the workers has no '{lacked}'" in done.stderr
    assert "on every worker: PYTHON -m pip install numpy pandas protobuf pyarrow" in done.stderr


def test_a_python_that_workers_have_not_is_named(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    _prepare(tmp_path)
    conf = {"spark.pyspark.python": str(tmp_path / "python3.99")}
    done = run("plan.json", "--once", "--checkpoint", "state", *cluster.options(**conf))
    assert done.returncode == 1, done.stderr
    assert f"the Python of the workers, {tmp_path / 'python3.99'}, is not there on one of them" in done.stderr
    assert "PYSPARK_PYTHON, or --conf spark.pyspark.python=PATH" in done.stderr


def test_a_client_of_spark_connect_names_what_it_lacks(tmp_path: Path) -> None:
    """The wheel's code in an environment that has not all that the wheel asks for."""
    names = ("click", "numpy", "pandas", "prompt_toolkit", "protobuf", "pyarrow", "rich", "sqlglot", "pyspark")
    found = installed()
    (packages,) = found.python.parents[1].glob("lib/python3*/site-packages")
    (tmp_path / "packages").mkdir()
    lacked = ("google", "googleapis_common_protos", "grpc", "grpc_status", "grpcio", "grpcio_status", "zstandard")
    for entry in packages.iterdir():
        if not entry.name.startswith(lacked):
            (tmp_path / "packages" / entry.name).symlink_to(entry)
    assert all((tmp_path / "packages" / name).exists() for name in names if name != "protobuf")
    plans.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    command = "import sys; sys.path.append('packages'); from plans.cli import main; main()"
    arguments = ["run", "plan.json", "--checkpoint", "state", "--remote", "sc://127.0.0.1:1"]
    done = subprocess.run(
        [found.python, "-I", "-S", "-c", command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    lack = "grpcio and grpcio-status and googleapis-common-protos and zstandard"
    assert f"a client of Spark Connect needs {lack}, which this Python" in done.stderr
    assert "-m pip install grpcio grpcio-status googleapis-common-protos zstandard" in done.stderr


def test_programs_have_the_front_door_and_commands_of_its_name_do_without(tmp_path: Path) -> None:
    found = installed()
    program = "import hintplan; print(hintplan.explain(hintplan.load('plan.json')))"
    plans.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    shutil.copy(found.hintplan, tmp_path / "hintplan.py")
    said = [
        subprocess.run(
            [found.python, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
        )
        for words in (("-I", "-c", program), ("hintplan.py", "explain", "plan.json"))
    ]
    assert said[0].stdout == said[1].stdout
