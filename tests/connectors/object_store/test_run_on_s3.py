"""A job whose tables and checkpoint are on S3, as a user runs it."""

from __future__ import annotations

import re

import pytest

from tests.connectors.object_store.job import Job
from tests.connectors.object_store.server import ACCESS_KEY, SECRET_KEY
from tests.sample import in_turn

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@in_turn(0, of=3)
def test_a_job_goes_on_after_a_restart_and_tells_no_keys(job: Job) -> None:
    """The environment alone says where S3 is, and with which keys; neither is anywhere in what the run leaves."""
    job.order(2)
    job.compile()
    first = job.run("--once", "--debug", "--conf", "spark.log.level=INFO")
    assert first.returncode == 0, first.stderr
    job.check()
    job.order(2)
    second = job.run("--once", "--json")
    assert second.returncode == 0, second.stderr
    assert second.stdout.count('"event": "batch"') == 4, "two batches for each sink: those before are not repeated"
    job.check()
    kept = [job.store.read(key) for key in job.store.keys(job.bucket)]
    kept += [file.read_bytes() for file in job.directory.iterdir() if file.is_file()]
    for said in (first.stdout, first.stderr, second.stdout, second.stderr, *(data.decode("latin-1") for data in kept)):
        assert SECRET_KEY not in said
        assert ACCESS_KEY not in said
    settings = re.findall(r"fs\.s3a\.\S+", first.stderr)
    assert not any("key" in setting for setting in settings)


@in_turn(1, of=3)
def test_workers_read_files_of_parquet_unless_spark_is_configured_otherwise(job: Job) -> None:
    job.source = "parquet"
    job.order(3, rows=50)
    job.compile()
    first = job.run("--once")
    assert first.returncode == 0, first.stderr
    assert "read by Spark" not in first.stderr
    job.check()
    job.order(2, rows=50)
    by_spark = job.run("--once", "--conf", "spark.hadoop.fs.s3a.requester.pays.enabled=true")
    assert by_spark.returncode == 0, by_spark.stderr
    assert "scan_orders is read by Spark: fs.s3a.requester.pays.enabled is set for Spark only" in by_spark.stderr
    job.check()
    job.order(2, rows=50)
    assert job.run("--once").returncode == 0
    job.check()
