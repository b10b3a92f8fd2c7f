"""Secrets that a run has used, where the connector fails: no output, message or log has them, in no spelling."""

from __future__ import annotations

import base64
import os
import re
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from planner import compile_sql
from plans import dump
from plans.connectors.table import CONNECTORS

pytestmark = [pytest.mark.spark, pytest.mark.integration]

CANARY = "canary+hunter2/7f3a ü"
FORMS = (
    CANARY,
    "hunter2",
    quote(CANARY, safe=""),
    base64.b64encode(CANARY.encode()).decode().rstrip("="),
    base64.b64encode(f"me:{CANARY}".encode()).decode()[6:-4],
)
LEAKY = """
from runtime.lookup.api import LookupFunction

class Leaky(LookupFunction):
    def open(self, context):
        self.options = dict(context.options)

    def lookup(self, key):
        raise ValueError(f"cannot log in with {self.options}")
"""


class Echo(socketserver.BaseRequestHandler):
    """Refuses whatever it is sent, and repeats it in its answer."""

    def handle(self) -> None:
        said = self.request.recv(65536)
        if said.startswith(b"GET"):
            head = f"HTTP/1.1 401 {said[:60].decode('latin-1').splitlines()[0]}\r\nContent-Length: {len(said)}\r\n\r\n"
            self.request.sendall(head.encode("latin-1") + said)
        elif said.startswith(b"*"):
            self.request.sendall(b"-ERR " + said.replace(b"\r\n", b" ") + b"\r\n")
        else:
            self.request.sendall(b"E" + said)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


LOOKUPS = {
    "jdbc": {
        "url": "jdbc:postgresql://127.0.0.1:{port}/shop", "table-name": "d", "username": "me",
        "password": "${env:CANARY}", "connection.timeout": "2 s", "lookup.max-retries": "0",
    },
    "redis": {
        "host": "127.0.0.1", "port": "{port}", "key-pattern": "{{k}}", "username": "me", "password": "${env:CANARY}",
        "lookup.max-retries": "0",
    },
    "http": {
        "url": "http://127.0.0.1:{port}/{{k}}?token=${env:CANARY}", "authorization": "${env:CANARY}",
        "header.X-Api-Key": "${env:CANARY}", "lookup.max-retries": "0",
    },
    "python": {"class": "leaky.Leaky", "properties.token": "${env:CANARY}", "lookup.max-retries": "0"},
}  # fmt: skip


def test_every_connector_that_takes_secrets_is_tried() -> None:
    takes = {name for name, spec in CONNECTORS.items() if any(o.environment or o.secret for o in spec.options)}
    takes |= {name for name, spec in CONNECTORS.items() if spec.families}
    assert takes - set(LOOKUPS) == set()


@pytest.mark.parametrize("layout", ["text", "json"])
@pytest.mark.parametrize("connector", LOOKUPS)
def test_a_connector_that_fails_tells_no_secret(connector: str, layout: str, port: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"k": 1}\n')
    (tmp_path / "leaky.py").write_text(LEAKY)
    options = {"connector": connector, **LOOKUPS[connector]}
    body = ", ".join(f"'{name}' = '{value.replace('{port}', str(port)).replace('{{', '{').replace('}}', '}')}'"
                     for name, value in options.items())  # fmt: skip
    sql = f"""
    CREATE TABLE o (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'json');
    CREATE TABLE d (k BIGINT, v STRING) WITH ({body});
    CREATE TABLE r (k BIGINT, v STRING) WITH ('connector' = 'print');
    INSERT INTO r SELECT o.k, d.v FROM o JOIN d FOR SYSTEM_TIME AS OF o.p AS d ON o.k = d.k;
    """
    dump(compile_sql(sql, name="canary"), tmp_path / "plan.json")
    allowed = ["--allow-env", "CANARY", "--allow-host", "http://127.0.0.1"]
    allowed += ["--allow-module", "leaky"] if connector == "python" else []
    command = [sys.executable, "-P", "-m", "plans.cli", "run", "plan.json", "--once", "--checkpoint", "state", *allowed]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, str(tmp_path)]), "CANARY": CANARY}
    done = subprocess.run(
        [*command, *(["--json"] if layout == "json" else [])],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "tables.d" in said or "lookup_d" in said, said
    for log in re.findall(r"Spark's log: (\S+)", said):
        said += Path(log).read_text(errors="replace")
    for file in (tmp_path / "state").rglob("*"):
        said += file.read_bytes().decode("latin-1") if file.is_file() else ""
    assert [form for form in FORMS if form in said] == []
