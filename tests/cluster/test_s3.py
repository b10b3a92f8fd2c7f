"""A checkpoint and tables on S3, on a cluster whose workers have been told nothing of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import DEADLINE_SECONDS
from tests.cluster.installed import environment, installed
from tests.cluster.standalone import Cluster
from tests.connectors.object_store.jars import jars
from tests.connectors.object_store.job import Job
from tests.connectors.object_store.server import SECRET_KEY, running_store
from tests.sample import in_turn


@in_turn(0, of=2)
def test_the_environment_of_the_driver_is_enough_and_its_keys_are_nowhere(cluster: Cluster, tmp_path: Path) -> None:
    """On no command line, in no log, event log or object."""
    if not jars():
        pytest.skip("the jars for S3 are not there; make s3 fetches them")
    (tmp_path / "events").mkdir()
    conf = {
        "spark.jars": ",".join(map(str, jars())),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(tmp_path / "events"),
    }
    with running_store() as store:
        store.make_bucket("lake")
        job = Job(directory=tmp_path, store=store, bucket="lake")
        for partitions in (2, 4):
            job.order(2)
            job.compile(partitions=partitions)
            lines = _run(job, *cluster.options(**conf))
            assert any("org.apache.spark.executor" in line for line in lines), "executors were seen"
            assert not [line for line in lines if SECRET_KEY in line]
            job.check()
        left = [store.read(key) for key in store.keys("lake")]
    written = [path for folder in (tmp_path, cluster.directory) for path in folder.rglob("*") if path.is_file()]
    left += [path.read_bytes() for path in written if path.suffix != ".jar"]
    assert not [data for data in left if SECRET_KEY.encode() in data]
    assert [path for path in (tmp_path / "events").rglob("*") if path.is_file()], "there is an event log"


def _run(job: Job, *options: str) -> set[str]:
    """Run ``job`` to its end; the command lines of all processes of this machine meanwhile."""
    command = [installed().hintplan, "run", "job.json", "--once", "--checkpoint", job.checkpoint, *options]
    lines: set[str] = set()
    with open(job.directory / "stderr", "w+") as log:
        process = subprocess.Popen(
            command, cwd=job.directory, env=environment(**job.store.environment), stdout=log, stderr=log
        )
        waited = 0.0
        while process.poll() is None and waited < DEADLINE_SECONDS:
            lines |= {" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])}
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                waited += 0.5
        process.kill()
        assert process.wait() == 0, (job.directory / "stderr").read_text()
    return lines
