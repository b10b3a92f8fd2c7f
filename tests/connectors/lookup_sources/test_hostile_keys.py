"""Keys and rows of lookups that somebody else writes: each finds its own row, and nothing is read or run for it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.runtime.lookup.api import LookupContext
from tests.connectors.hostile import CANARY, SECRET, TEXTS, seen
from tests.connectors.lookup_sources.asking import asked, context, scanned
from tests.connectors.lookup_sources.servers import PASSWORD

ROWS = dict(zip(TEXTS, range(len(TEXTS)), strict=True))
COLUMNS = {"k": "STRING", "n": "INT", "s": "STRING"}
VARIABLE = "HINTPLAN_TEST_PASSWORD"


def in_sqlite(folder: Path, request: Any) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "d.db")) as connection:
        connection.execute("CREATE TABLE r (k TEXT, n INT, s TEXT)")
        connection.executemany("INSERT INTO r VALUES (?, ?, ?)", [(k, n, k) for k, n in ROWS.items()])
        connection.commit()
    return {"connector": "jdbc", "url": f"jdbc:sqlite:{folder}/d.db", "table-name": "r"}


def in_postgres(folder: Path, request: Any) -> dict[str, str]:
    server = request.getfixturevalue("postgres")
    server.execute("DROP TABLE IF EXISTS r", "CREATE TABLE r (k text, n int, s text)")
    for k, n in ROWS.items():
        text = "'" + k.replace("'", "''") + "'"
        server.execute(f"INSERT INTO r VALUES ({text}, {n}, {text})")
    return {"connector": "jdbc", "url": server.url, "table-name": "r", "username": "hintplan",
            "password": f"${{env:{VARIABLE}}}"}  # fmt: skip


def in_mariadb(folder: Path, request: Any) -> dict[str, str]:
    server = request.getfixturevalue("mariadb")
    server.execute("DROP TABLE IF EXISTS r", "CREATE TABLE r (k LONGTEXT, n int, s LONGTEXT) COLLATE utf8mb4_bin")
    for k, n in ROWS.items():
        text = "'" + k.replace("\\", "\\\\").replace("'", "''") + "'"
        server.execute(f"INSERT INTO r VALUES ({text}, {n}, {text})")
    return {"connector": "jdbc", "url": server.url, "table-name": "r", "username": "hintplan",
            "password": f"${{env:{VARIABLE}}}"}  # fmt: skip


def in_redis(folder: Path, request: Any) -> dict[str, str]:
    server = request.getfixturevalue("redis")
    with server.client() as client:
        client.flushall()
        for k, n in ROWS.items():
            client.hset(f"r:{k}", mapping={"n": n, "s": k})
    return {"connector": "redis", "host": "127.0.0.1", "port": str(server.port), "key-pattern": "r:{k}",
            "password": f"${{env:{VARIABLE}}}"}  # fmt: skip


def in_a_service(folder: Path, request: Any) -> dict[str, str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path.count("/") == 2, self.path
            key = unquote(self.path.rpartition("/")[2])
            body = json.dumps([{"n": ROWS[key], "s": key}] if key in ROWS else []).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    request.addfinalizer(stop)
    return {"connector": "http", "url": f"http://127.0.0.1:{server.server_address[1]}/r/{{k}}"}


def in_files(folder: Path, request: Any) -> dict[str, str]:
    (folder / "d").mkdir()
    lines = [json.dumps({"k": k, "n": n, "s": k}) for k, n in ROWS.items()]
    (folder / "d" / "1.json").write_text("\n".join(lines))
    return {"connector": "filesystem", "path": f"{folder}/d", "format": "json"}


PLACES: dict[str, tuple[Callable[[Path, Any], dict[str, str]], tuple[str, ...]]] = {
    "sqlite": (in_sqlite, ("sync", "full")),
    "postgres": (in_postgres, ("sync", "async", "full")),
    "mariadb": (in_mariadb, ("sync", "full")),
    "redis": (in_redis, ("sync", "async")),
    "http": (in_a_service, ("sync", "async")),
    "filesystem": (in_files, ("full",)),
}
NOT_ONE_PART = {"http": {".", ".."}}
"""Keys that no path of a url can hold, and that find nothing."""


def test_every_connector_that_looks_up_is_tried() -> None:
    looking_up = {name for name, connector in CONNECTORS.items() if isinstance(connector, LookedUp)}
    assert looking_up - {"python"} == {"jdbc", "redis", "http", "filesystem"}  # classes have their own rows


@pytest.fixture(params=[(name, mode) for name, (_, modes) in PLACES.items() for mode in modes], ids="-".join)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str, LookupContext]]:
    name, mode = request.param
    monkeypatch.setenv(CANARY, SECRET)
    monkeypatch.setenv(VARIABLE, PASSWORD)
    (tmp_path / "inside").mkdir()
    options = PLACES[name][0](tmp_path / "inside", request)
    monkeypatch.chdir(tmp_path / "inside")
    before = seen(tmp_path)
    yield name, mode, context(options, COLUMNS, keys=() if mode == "full" else ["k"])
    assert seen(tmp_path) == before


def test_every_key_finds_its_own_row(place: tuple[str, str, LookupContext]) -> None:
    name, mode, where = place
    expected = {k: [] if k in NOT_ONE_PART.get(name, ()) else [(k, n, k)] for k, n in ROWS.items()}
    if mode == "full":
        assert sorted(scanned(where)) == sorted((k, n, k) for k, n in ROWS.items())
        return
    with asked(mode, where) as ask:
        assert dict(zip(ROWS, ask(*((k,) for k in ROWS)), strict=True)) == expected
        for k in ROWS:
            assert ask((k,)) == [expected[k]]
        assert ask(*((f"{k}'x",) for k in ROWS)) == [[] for _ in ROWS]
