"""A Python that lacks what Spark needs of it, of workers or of a client: the run names that, and what to install."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

import hintplan
from tests.cluster.conftest import Run
from tests.cluster.installed import environment, installed, python_with
from tests.cluster.standalone import Cluster
from tests.sample import sampled
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.part(of=2, fixture="run")

NEEDED = ("numpy", "pyarrow")
REST = {lacked: tuple(name for name in NEEDED if name != lacked) for lacked in NEEDED}


def _prepare(directory: Path) -> None:
    """Some rows, and a plan with state."""
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", sample(0, 20))
    hintplan.dump(revenue_plan(directory), directory / "plan.json")


@pytest.mark.parametrize("lacked", sampled(NEEDED, keep=1))
def test_a_package_that_workers_lack_is_named(cluster: Cluster, run: Run, tmp_path: Path, lacked: str) -> None:
    python = python_with(REST[lacked])
    _prepare(tmp_path)
    conf = {"spark.pyspark.python": str(python)}
    done = run("plan.json", "--once", "--checkpoint", "state", *cluster.options(**conf))
    assert done.returncode == 1, done.stderr
    assert f"the Python of the workers has no '{lacked}'" in done.stderr
    assert "on every worker: PYTHON -m pip install numpy pyarrow" in done.stderr


def test_a_python_that_workers_have_not_is_named(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    _prepare(tmp_path)
    conf = {"spark.pyspark.python": str(tmp_path / "python3.99")}
    done = run("plan.json", "--once", "--checkpoint", "state", *cluster.options(**conf))
    assert done.returncode == 1, done.stderr
    assert f"the Python of the workers, {tmp_path / 'python3.99'}, is not there on one of them" in done.stderr
    assert "PYSPARK_PYTHON, or --conf spark.pyspark.python=PATH" in done.stderr


CLIENT = ("google", "googleapis_common_protos", "grpc", "grpc_status", "grpcio", "grpcio_status", "zstandard")


def run_without(lacked: tuple[str, ...], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``hintplan run`` of the wheel's code, in an environment without what has a name that begins with ``lacked``."""
    found = installed()
    (packages,) = found.python.parents[1].glob("lib/python3*/site-packages")
    (folder / "packages").mkdir()
    for entry in packages.iterdir():
        if not entry.name.startswith(lacked):
            (folder / "packages" / entry.name).symlink_to(entry)
    left = ("click", "numpy", "prompt_toolkit", "pyarrow", "rich", "sqlglot", "pyspark")
    assert all((folder / "packages" / name).exists() for name in left)
    command = f"import sys; sys.path.append({str(folder / 'packages')!r}); from hintplan.plans.cli import main; main()"
    return subprocess.run(
        [found.python, "-I", "-S", "-c", command, "run", *arguments],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_client_of_spark_connect_names_what_it_lacks(tmp_path: Path) -> None:
    hintplan.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    done = run_without(CLIENT, tmp_path, "plan.json", "--checkpoint", "state", "--remote", "sc://127.0.0.1:1")
    assert done.returncode == 1, done.stderr
    lack = ["grpcio", "grpcio-status", "googleapis-common-protos", *["zstandard"] * (version("pyspark") > "4.1")]
    assert f"a client of Spark Connect needs {' and '.join(lack)}, which this Python" in done.stderr
    assert f"-m pip install {' '.join(lack)}" in done.stderr


def test_a_local_run_needs_no_package_of_clients_but_the_pandas_of_older_versions(tmp_path: Path) -> None:
    _prepare(tmp_path)
    of_pandas = ("pandas", "pytz", "dateutil", "python_dateutil", "six", "tzdata")
    done = run_without((*CLIENT, *of_pandas), tmp_path, "plan.json", "--once", "--checkpoint", "state")
    if version("pyspark") > "4.3":
        assert done.returncode == 0, done.stderr
        assert fold(changes(tmp_path)) == expected(sample(0, 20))
    else:
        assert done.returncode == 1
        assert "or newer in the driver's Python, which has none" in done.stderr
        assert "-m pip install 'pandas>=2" in done.stderr


def test_the_wheel_asks_for_what_it_needs_and_takes_four_versions_of_spark() -> None:
    (metadata,) = installed().python.parents[1].glob("lib/python3*/site-packages/hintplan-*.dist-info/METADATA")
    found = re.findall(
        r"^Requires-Dist: ([\w-]+)(\[\w+\])?([^;\n]*?)(?: ?; (.*))?$", metadata.read_text(), re.MULTILINE
    )
    assert [name for name, _, _, marker in found if not marker] == [
        "click", "jsonschema-rs", "prompt_toolkit", "rich", "sqlglot"
    ]  # fmt: skip
    needed = {extra: [] for extra in ("state", "spark", "connect")}
    for name, own, versions, marker in found:
        if (asked := re.fullmatch(r'extra == "(\w+)"', marker)) and asked[1] in needed:
            needed[asked[1]].append((name, own, {*versions.split(",")}))
    assert needed == {
        "state": [("numpy", "", {">=1.26", "<3"}), ("pyarrow", "", {">=18"})],
        "spark": [("hintplan", "[state]", {""}), ("pyspark", "", {">=4.0", "<4.4"})],
        "connect": [("hintplan", "[spark]", {""}), ("pyspark", "[connect]", {""})],
    }


def test_programs_have_the_front_door_and_the_module_is_the_command(tmp_path: Path) -> None:
    found = installed()
    program = "import hintplan; print(hintplan.explain(hintplan.load('plan.json')))"
    hintplan.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    said = [
        subprocess.run(
            [found.python, "-I", *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
        )
        for words in (("-c", program), ("-m", "hintplan", "explain", "plan.json"))
    ]
    assert said[0].stdout == said[1].stdout
