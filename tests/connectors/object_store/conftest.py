"""A bucket for each test, of a server that all of a module have."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.object_store.jars import jars
from tests.connectors.object_store.job import Job, environment
from tests.connectors.object_store.server import ObjectStore, running_store
from tests.spark.commands import Commands, running_commands


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with running_store() as found:
        yield found


@pytest.fixture
def store(server: ObjectStore) -> Iterator[ObjectStore]:
    """The server, which does not fail and has been asked nothing."""
    server.asked.clear()
    yield server
    server.failing = None
    server.mended.set()


@pytest.fixture(scope="module")
def commands(server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for the runs of a module."""
    with running_commands(tmp_path_factory.mktemp("commands"), environment(server)) as found:
        yield found


@pytest.fixture
def job(store: ObjectStore, tmp_path: Path) -> Job:
    """A job with tables and a checkpoint in a bucket of its own."""
    if not jars():
        pytest.skip(
            "the jars for S3 are not there, or for another Hadoop than that of this Spark; make s3 fetches them"
        )
    bucket = f"lake-{uuid.uuid4().hex[:8]}"
    store.make_bucket(bucket)
    return Job(directory=tmp_path, store=store, bucket=bucket)
