"""Tables of lakes in an object store: rows that are there once, writers at the same time, credentials of the table."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import micro_batch_writer
from tests.connectors.lakes.lakes import IcebergLake
from tests.connectors.lakes.sinks import arrow, micro_batch
from tests.connectors.lookup_sources.servers import PASSWORD, free_port, wait_for_port

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.part(of=4, fixture="spark")]

ID, KEY = "hintplan-id", os.environ.setdefault("HINTPLAN_TEST_PASSWORD", PASSWORD)
"""Workers have the environment that was when Spark started."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a store with a bucket ``lake``; in a process of its own, as delta-rs may hold Python's lock."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        store = pafs.S3FileSystem(
            access_key=ID, secret_key=KEY, endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1",
            allow_bucket_creation=True,
        )  # fmt: skip
        store.create_dir("lake")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(params=["delta", "iceberg"])
def table(endpoint: str, request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A table without a key, of the test's own."""
    store = {
        "s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": ID,
        "s3.secret-access-key": "${env:HINTPLAN_TEST_PASSWORD}",
    }  # fmt: skip
    place = f"s3a://lake/{uuid.uuid4()}"
    of = {"connector": "delta", "table-path": place}
    if request.param == "iceberg":
        of = {**IcebergLake(tmp_path).options("t"), "warehouse": place}
    columns = (TableColumn(name="id", type="INT"), TableColumn(name="v", type="STRING"))
    return Table(columns=columns, options={**of, **store})


def rows_of(table: Table) -> list[tuple[int, str]]:
    given = table.options
    if given["connector"] == "iceberg":
        store = {name: given[name] for name in ("s3.endpoint", "s3.region", "s3.access-key-id")}
        uri = given["uri"].replace("jdbc:sqlite:", "sqlite:///")
        catalog = SqlCatalog("lake", uri=uri, **store, **{"s3.secret-access-key": KEY})
        rows = catalog.load_table("db.t").scan().to_arrow().to_pylist()
    else:
        options = {
            "AWS_ENDPOINT_URL": given["s3.endpoint"], "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": ID,
            "AWS_SECRET_ACCESS_KEY": KEY, "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip
        where = given["table-path"].replace("s3a:", "s3:")
        rows = pa.table(DeltaTable(where, storage_options=options).scan().read_all()).to_pylist()
    return sorted((row["id"], row["v"]) for row in rows)


@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("key", [(), ("id",)])
def test_each_row_is_there_once(spark: SparkSession, table: Table, key: tuple[str, ...], on_driver: bool) -> None:
    target = Table(columns=table.columns, options=table.options, primary_key=key)
    write = micro_batch_writer("r", target, changelog=bool(key), checkpoint="c", part="/r")
    for batch, changes in enumerate([[("+I", (1, "a")), ("+I", (2, "b"))], [("+I", (3, "c"))]]):
        for _ in range(2):
            write(micro_batch(spark, arrow(target, changes, changelog=bool(key)), on_driver=on_driver), batch)
    assert rows_of(table) == [(1, "a"), (2, "b"), (3, "c")]
    write(micro_batch(spark, arrow(target, [("+I", (1, "z"))], changelog=bool(key)), on_driver=on_driver), 2)
    assert rows_of(table) == sorted([(1, "z"), (2, "b"), (3, "c")] if key else [(1, "a"), (1, "z"), (2, "b"), (3, "c")])


def test_writers_at_the_same_time_lose_nothing(spark: SparkSession, table: Table) -> None:
    failed: list[BaseException] = []
    patient = Table(columns=table.columns, options={**table.options, "sink.max-retries": "50"})

    def write(number: int) -> None:
        try:
            sink = micro_batch_writer("r", patient, changelog=False, checkpoint="c", part=f"/{number}")
            for batch in range(5):
                rows = arrow(table, [("+I", (100 * number + batch, "x"))], changelog=False)
                sink(micro_batch(spark, rows, on_driver=True), batch)
        except RunError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows_of(table) == [(100 * number + batch, "x") for number in range(3) for batch in range(5)]


def written_to(spark: SparkSession, table: Table) -> None:
    write = micro_batch_writer("r", table, changelog=False, checkpoint="c", part="/r")
    write(micro_batch(spark, arrow(table, [("+I", (1, "a"))], changelog=False), on_driver=True), 0)


def test_a_store_that_is_away_is_told_without_its_secrets(spark: SparkSession, table: Table) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        options = {**table.options, "s3.endpoint": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
        away = Table(columns=table.columns, options=options)
        with pytest.raises(RunError, match=r"table r, (s3://lake/|lake\.db\.t)") as caught:
            written_to(spark, away)
    assert KEY not in str(caught.value)
