"""HDFS of the tests' own: a name node and a data node in one process, from Hadoop's jars.

with running_hdfs(tmp_path) as url:
    subprocess.run([..., "--checkpoint", f"{url}/job"])
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.connectors.lookup_sources.servers import free_port

__all__ = ["running_hdfs"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hintplan" / "hdfs"
LISTED = Path(__file__).parents[3] / ".ci" / "hdfs-jars"
OF_SPARK = ("hadoop-client-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*", "commons-*", "snappy-java-*")
DEADLINE_SECONDS = 240


def jars() -> list[Path]:
    """The listed jars and those of Spark's; empty if one is not there, or if Spark's Hadoop is another one."""
    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [CACHE / line.rpartition("/")[2] for line in lines]
    home = Path(pyspark.__file__).parent / "jars"
    (version,) = {path.stem.rpartition("-")[2] for path in found if path.name.startswith("hadoop-")}
    fits = (home / f"hadoop-client-api-{version}.jar").is_file() and all(path.is_file() for path in found)
    return [*found, *(path for pattern in OF_SPARK for path in sorted(home.glob(f"{pattern}.jar")))] if fits else []


@contextmanager
def running_hdfs(directory: Path) -> Iterator[str | None]:
    """The URL of the name node, for the time of the block; None if the jars are not there."""
    if not (found := jars()):
        yield None
        return
    port, details = free_port(), directory / "details.json"
    manager = ("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1", "-nnport", str(port))
    options = ("-Xmx300m", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={directory}")
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen(
            ["java", *options, "-cp", ":".join(map(str, found)), *manager, "-writeDetails", str(details)],
            cwd=directory,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (details.is_file() and details.stat().st_size):
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < deadline, "HDFS does not start"
            time.sleep(0.1)  # the start of the server is what is waited for
        yield f"hdfs://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
