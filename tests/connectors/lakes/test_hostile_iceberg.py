"""Tables and catalogs of Iceberg whose metadata leads elsewhere: nothing outside is reached, read or loaded.

The tables are made by pyiceberg, and then changed as somebody could who may write to them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

from hintplan.plans.connectors.check import check_table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.iceberg.catalog import ensure_iceberg_table, open_iceberg_table
from hintplan.runtime.connectors.iceberg.scan import snapshot_files
from hintplan.runtime.connectors.iceberg.write import iceberg_target
from hintplan.runtime.connectors.lakes.target import LakeTarget
from tests.connectors.lakes.lakes import IcebergLake, lake_table

ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})
LOADED: list[str] = []


class Evil:
    """A class that metadata names: whoever loads it runs its code."""

    def __init__(self, *given: Any) -> None:
        LOADED.append(type(self).__name__)
        raise ValueError("loaded")


NAMED = f"{__name__}.Evil"


@pytest.fixture(autouse=True)
def nothing_is_loaded() -> Iterator[None]:
    LOADED.clear()
    yield
    assert LOADED == []


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    pq.write_table(ROWS, folder / "secret.parquet")
    return folder


def made(lake: IcebergLake, **properties: str) -> IcebergTable:
    """A table with two rows."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake.catalog}", warehouse=f"file://{lake.root}/tables")
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table(("db", "t"), ROWS.schema)
    table.append(ROWS)
    if properties:
        changed = json.loads(metadata_of(lake).read_text())
        changed["properties"] |= properties
        metadata_of(lake).write_text(json.dumps(changed))
    return table


def target_of(lake: IcebergLake, **more: str) -> LakeTarget:
    return iceberg_target("t", lake_table(lake, "t", ("id", "INT"), **more)).here()


def metadata_of(lake: IcebergLake) -> Path:
    with sqlite3.connect(lake.catalog) as database:
        ((location,),) = database.execute("SELECT metadata_location FROM iceberg_tables").fetchall()
    return Path(location.removeprefix("file://"))


def moved(file: Path, outside: Path) -> Path:
    return file.rename(outside / file.name)


def point(lake: IcebergLake, place: Path) -> None:
    with sqlite3.connect(lake.catalog) as database:
        database.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{place}",))


def metadata_elsewhere(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    point(lake, moved(metadata_of(lake), outside))


def metadata_above(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    place = moved(metadata_of(lake), outside)
    point(lake, lake.root / "tables" / ".." / ".." / "outside" / place.name)


def linked(file: Path, outside: Path) -> None:
    file.symlink_to(moved(file, outside))


def metadata_by_a_link(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    linked(metadata_of(lake), outside)


def in_metadata(lake: IcebergLake, old: str, new: str) -> None:
    text = metadata_of(lake).read_text()
    assert old in text
    metadata_of(lake).write_text(text.replace(old, new))


def manifest_list(table: IcebergTable) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return Path(snapshot.manifest_list.removeprefix("file://"))


def manifests_elsewhere(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    file = manifest_list(table)
    in_metadata(lake, str(file), str(moved(file, outside)))


def manifests_in_a_bucket(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    in_metadata(lake, f"file://{manifest_list(table)}", "s3://elsewhere/list.avro")


def manifests_by_a_link(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    linked(manifest_list(table), outside)


def file_elsewhere(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    table.add_files([f"file://{outside}/secret.parquet"])


def file_by_a_link(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    (file,) = (lake.root / "tables" / "db" / "t" / "data").glob("*.parquet")
    linked(file, outside)


def directory_by_a_link(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    linked(lake.root / "tables" / "db" / "t" / "data", outside)


def location_elsewhere(lake: IcebergLake, table: IcebergTable, outside: Path) -> None:
    in_metadata(lake, f'"location":"file://{lake.root}/tables/db/t"', f'"location":"file://{outside}"')


LEAD_OUT = [
    metadata_elsewhere, metadata_above, metadata_by_a_link, manifests_elsewhere, manifests_in_a_bucket,
    manifests_by_a_link, file_elsewhere, file_by_a_link, directory_by_a_link, location_elsewhere,
]  # fmt: skip


@pytest.mark.parametrize("lead_out", LEAD_OUT, ids=lambda function: function.__name__)
def test_nothing_is_read_where_a_table_leads_out_of_its_place(
    lake: IcebergLake, outside: Path, lead_out: Callable[[IcebergLake, IcebergTable, Path], None]
) -> None:
    table = made(lake)
    assert len(snapshot_files(target_of(lake)).files) == 1
    lead_out(lake, table, outside)
    with pytest.raises(RunError, match=r"not in |outside of "):
        snapshot_files(target_of(lake))


PROPERTIES: dict[str, dict[str, str]] = {
    "a class for files": {"py-io-impl": NAMED},
    "other credentials": {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key-id": "x", "client.region": "x"},
    "a catalog": {"uri": "http://127.0.0.1:9", "token": "x", "type": "rest", "py-catalog-impl": NAMED},
    "a class for keys": {"rest.sigv4-enabled": "true", "auth": "custom", "auth.impl": NAMED},
}


@pytest.mark.parametrize("said", PROPERTIES)
def test_properties_of_a_table_do_not_say_how_it_is_read_or_written(lake: IcebergLake, said: str) -> None:
    made(lake, **PROPERTIES[said])
    assert len(snapshot_files(target_of(lake)).files) == 1
    table = open_iceberg_table(target_of(lake))
    assert table is not None
    table.append(ROWS)
    assert len(snapshot_files(target_of(lake)).files) == 2


def test_a_table_that_names_code_for_its_places_is_refused(lake: IcebergLake) -> None:
    made(lake, **{"write.py-location-provider.impl": NAMED})
    for used in (snapshot_files, open_iceberg_table, ensure_iceberg_table):
        with pytest.raises(RunError, match=r"names code to load, by write\.py-location-provider\.impl"):
            used(target_of(lake))


@contextmanager
def answering(answers: Mapping[str, tuple[int, Mapping[str, str], Any]]) -> Iterator[tuple[str, list[str]]]:
    """A server with answers by the end of a path: its address, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization', '')}")
            path = self.path.partition("?")[0]
            status, headers, body = next((answers[end] for end in answers if path.endswith(end)), (404, {}, {}))
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


ELSEWHERE = {
    "uri": lambda other: {"uri": other},
    "tokens": lambda other: {"oauth2-server-uri": f"{other}/token", "credential": "a:b"},
    "store": lambda other: {"s3.endpoint": other, "s3.access-key-id": "x", "s3.secret-access-key": "y"},
    "class": lambda other: {"py-io-impl": NAMED, "auth": {"type": "custom", "impl": NAMED}},
    "signer": lambda other: {
        "s3.signer": "S3V4RestSigner",
        "s3.signer.uri": other,
        "s3.remote-signing-enabled": "true",
    },
}


@pytest.mark.parametrize("where", ["overrides", "defaults", "config of the table", "credentials of the table"])
@pytest.mark.parametrize("said", ELSEWHERE)
def test_a_catalog_sends_nobody_elsewhere(lake: IcebergLake, where: str, said: str) -> None:
    made(lake)
    document = json.loads(metadata_of(lake).read_text())
    with answering({}) as (other, asked_elsewhere):
        sent = ELSEWHERE[said](other)
        sent = {name: value for name, value in sent.items() if isinstance(value, str)}
        config = {"overrides": {}, "defaults": {}, **({where: sent} if where in ("overrides", "defaults") else {})}
        loaded = {
            "metadata-location": f"file://{metadata_of(lake)}", "metadata": document,
            "config": sent if where == "config of the table" else {},
            "storage-credentials": [{"prefix": "file", "config": sent}] if where == "credentials of the table" else [],
        }  # fmt: skip
        answers = {"/v1/config": (200, {}, config), "/tables/t": (200, {}, loaded)}
        with answering(answers) as (url, asked):
            found = snapshot_files(target_of(lake, catalog_type="rest", uri=url, token="secret"))
        assert len(found.files) == 1
        assert asked
        assert all(line.endswith(" Bearer secret") for line in asked)
    assert asked_elsewhere == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", ["/v1/config", "/tables/t"])
def test_a_catalog_that_redirects_is_not_followed(lake: IcebergLake, path: str, status: int) -> None:
    made(lake)
    with answering({"": (200, {}, {"overrides": {}, "defaults": {}})}) as (other, asked_elsewhere):
        answers: dict[str, tuple[int, Mapping[str, str], Any]] = {
            "/v1/config": (200, {}, {"overrides": {}, "defaults": {}})
        }
        answers[path] = (status, {"Location": f"{other}/x"}, {})
        with (
            answering(answers) as (url, _),
            pytest.raises(RunError, match="redirects"),
        ):
            snapshot_files(target_of(lake, catalog_type="rest", uri=url, token="secret"))
    assert asked_elsewhere == []


@pytest.mark.parametrize(
    "region", ["x@127.0.0.1:18998/", "a.b", "eu central", "EU", "", "a/b", "a#", "127.0.0.1", "a--b", "-a", "ü"]
)
def test_a_region_is_no_address(lake: IcebergLake, region: str) -> None:
    for connector, place in (("delta", {"table-path": "s3://bucket/t"}), ("iceberg", {"warehouse": "s3://bucket/t"})):
        given = {**(lake.options("t") if connector == "iceberg" else {"connector": "delta"}), **place}
        table = lake_table(lake, "t", ("id", "INT"))
        for value, is_wrong in ((region, True), ("eu-central-1", False), ("us-gov-west-1", False)):
            found = [str(each) for each in check_table("t", replace(table, options={**given, "s3.region": value}))]
            assert any("s3.region" in text for text in found) == is_wrong, found
