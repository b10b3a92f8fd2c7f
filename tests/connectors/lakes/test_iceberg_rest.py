"""Tables that a REST catalog knows: Iceberg's own server, of which the tables are read without it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from tests.connectors.lakes.iceberg_reader import snapshots
from tests.connectors.lakes.lakes import lake_table
from tests.connectors.lakes.rest_catalog import RestLake, jars, rest_catalog
from tests.connectors.lakes.sinks import arrow, in_order, read_back, sink
from tests.connectors.lakes.values import TYPES

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestLake]:
    if not jars():
        pytest.skip("the jars of a REST catalog are not there; make iceberg fetches them")
    with rest_catalog(tmp_path_factory.mktemp("lake")) as found:
        yield found.lake


@pytest.mark.parametrize("key", [(), ("id",)])
def test_values_of_every_type_each_batch_once(spark: SparkSession, lake: RestLake, key: tuple[str, ...]) -> None:
    name = f"t{len(key)}"
    columns = [(column, type_) for column, type_, *_ in TYPES]
    table = lake_table(lake, name, ("id", "INT NOT NULL"), *columns, key=key, partitioned_by="d")
    some, others = ([row[at] for row in TYPES] for at in (2, 3))
    rows = [(1, *some), (2, *others), (3, *[None] * len(TYPES))]
    for _ in range(2):
        sink(spark, table)(arrow(table, [("+I", row) for row in rows], changelog=False), 0)
    assert lake.rows(name) == in_order(rows)
    again = (2, *[None] * len(TYPES))
    for _ in range(2):
        sink(spark, table)(arrow(table, [("+I", again)], changelog=False), 1)
    left = [rows[0], again, rows[2]] if key else [*rows, again]
    assert lake.rows(name) == in_order(left)
    assert lake.rows(name, 1) == in_order(rows)
    assert read_back(spark, table) == in_order(left)
    assert [each["summary"]["hintplan.batch"] for each in snapshots(lake.catalog, name)] == ["0", "1"]


def test_a_table_that_others_have_changed_is_written_to_at_the_next_try(spark: SparkSession, lake: RestLake) -> None:
    table = lake_table(lake, "shared", ("id", "INT"), key=("id",), **{"sink.max-retries": "20"})
    sinks = [sink(spark, table, part=f"/{number}") for number in range(2)]
    sink(spark, table, part="/first")(arrow(table, [("+I", (99,))], changelog=False), 0)

    def write(number: int) -> None:
        for batch in range(4):
            sinks[number](arrow(table, [("+I", (10 * number + batch,))], changelog=False), batch)

    threads = [Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lake.rows("shared")) == [(n,) for n in (0, 1, 2, 3, 10, 11, 12, 13, 99)]


def test_a_server_that_refuses_is_told_without_the_token(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_error(403, f"no {self.headers['Authorization']}")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Refuses)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HINTPLAN_TEST_TOKEN", "token-hunter2")
    lake = RestLake(tmp_path / "lake", f"http://127.0.0.1:{server.server_port}")
    table = lake_table(lake, "t", ("id", "INT"), token="${env:HINTPLAN_TEST_TOKEN}")
    try:
        with pytest.raises(RunError, match=r"table r, lake\.db\.t: ") as caught:
            sink(spark, table)
    finally:
        server.shutdown()
        server.server_close()
    assert "Bearer token-hunter2" in seen
    assert "hunter2" not in str(caught.value)
