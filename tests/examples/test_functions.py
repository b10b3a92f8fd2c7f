"""The functions example: a web service on loopback is asked for each row, and what it knows joins the stream."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "functions"
DEADLINE_SECONDS = 180
SIGHTS = """\
+I[Ada, LIS, Oceanarium, 3.5]
+I[Ada, LIS, Belém Tower, 11.0]
+I[Bo, CPH, Øresund Bridge, 5.0]
+I[Bo, CPH, The Little Mermaid, 9.1]
+I[Cleo, XXX, null, null]
+I[Eve, null, null, null]
+I[Finn, NRT, Naritasan Shinsho-ji, 6.3]
+I[Gus, LIS, Oceanarium, 3.5]
+I[Gus, LIS, Belém Tower, 11.0]
"""


@pytest.fixture
def service() -> Iterator[str]:
    """The address of the example's web service."""
    server = runpy.run_path(str(EXAMPLE / "server.py"))["server"]()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.integration
@pytest.mark.spark
def test_each_trip_is_joined_with_what_the_service_knows_although_it_fails_now_and_then(
    service: str, tmp_path: Path
) -> None:
    directory = tmp_path / "functions"
    shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("*.plan.json", "__pycache__"))
    environment = {
        **os.environ,
        "NEARBY_URL": service,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def hintplan(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hintplan", *arguments, "--allow-module", "nearby"]
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    hintplan("compile", "trips.sql", "-o", "trips.plan.json")
    taken = ("--conf", "spark.submit.pyFiles=nearby.py")
    done = hintplan("run", "trips.plan.json", "--once", "--master", "local[1]", *taken)
    assert done.stdout == SIGHTS
    # Five of the six travellers go where the service can be asked about, and every fourth request fails.
    assert re.search(r"correlate_nearby 7 calls · 9 rows out · 1 failure · 1 retry", done.stderr), done.stderr
