"""Clients of Spark Connect whose Python lacks what Spark needs of it: the run names that, and what to install."""

from __future__ import annotations

import subprocess
from pathlib import Path

import plans
from tests.cluster.installed import installed
from tests.spark.programs import revenue_plan


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
