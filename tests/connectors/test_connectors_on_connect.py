"""The connectors through Spark Connect, where sinks run in the server's Python. A process has one kind of session."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.cluster
@pytest.mark.usefixtures("connect_port")
def test_generated_rows_reach_sqlite_through_spark_connect_once_each(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "OUT_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/connectors/connect_job.py"), str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    connection = sqlite3.connect(tmp_path / "out.db")
    try:
        for name in ("log", "latest"):
            ids = [row[0] for row in connection.execute(f"SELECT id FROM {name} ORDER BY id")]
            assert ids == list(range(1, 11))
    finally:
        connection.close()
