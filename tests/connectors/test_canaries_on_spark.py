"""Secrets that a run has used, where the connector fails: no output, message or log has them, in no spelling."""

from __future__ import annotations

import base64
import os
import re
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from hintplan import compile_sql, dump
from hintplan.plans.connectors.connector import LookedUp, Readable, Writable
from hintplan.plans.connectors.table import CONNECTORS
from tests.connectors.messages.broker import spark_conf
from tests.sample import each_once
from tests.spark.commands import Commands, running_commands

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.part(of=2, fixture="commands")]

CANARY = "canary+hunter2/7f3a ü"
FORMS = (
    CANARY,
    "hunter2",
    quote(CANARY, safe=""),
    base64.b64encode(CANARY.encode()).decode().rstrip("="),
    base64.b64encode(f"me:{CANARY}".encode()).decode()[6:-4],
)
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SET = {
    "CANARY": CANARY,
    "CANARY_USER": f"me:{CANARY}",
    "CANARY_LOGIN": f'{_LOGIN} username="me" password="{CANARY}";',
}
LEAKY = """
from hintplan.runtime.lookup.api import LookupFunction

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


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for all trials, which has the secrets in its environment; what its JVM prints has none either."""
    directory = tmp_path_factory.mktemp("commands")
    (directory / "leaky.py").write_text(LEAKY)
    with running_commands(directory, {**os.environ, **SET, "PYTHONPATH": str(directory)}) as found:
        yield found
    assert [form for form in FORMS if form in found.logged()] == []


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


_BROKER = {
    "properties.bootstrap.servers": "127.0.0.1:{port}", "properties.security.protocol": "SASL_PLAINTEXT",
    "properties.sasl.mechanism": "PLAIN", "properties.sasl.jaas.config": "${env:CANARY_LOGIN}",
    "properties.default.api.timeout.ms": "3000", "properties.request.timeout.ms": "2000", "topic": "d",
}  # fmt: skip
_READ = {"format": "json", "scan.startup.mode": "earliest-offset"}
_WRITTEN = {"properties.max.block.ms": "3000", "properties.delivery.timeout.ms": "2000", "properties.linger.ms": "0"}
_KEYED = {"key.format": "json", "value.format": "json"}
_LAKE = {
    "table-path": "s3://lake/d", "s3.endpoint": "http://127.0.0.1:{port}", "s3.region": "us-east-1",
    "s3.access-key-id": "${env:CANARY}", "s3.secret-access-key": "${env:CANARY}",
    "s3.session-token": "${env:CANARY}",
}  # fmt: skip
_CATALOG = {
    "catalog-name": "c", "catalog-type": "rest", "uri": "http://127.0.0.1:{port}", "catalog-database": "d",
    "catalog-table": "d", "location": "s3://lake/d", "token": "${env:CANARY}", "s3.region": "us-east-1",
    "s3.access-key-id": "${env:CANARY}", "s3.secret-access-key": "${env:CANARY}", "s3.session-token": "${env:CANARY}",
}  # fmt: skip
SOURCES = {
    "delta": _LAKE,
    "iceberg": _CATALOG,
    "jdbc": {
        "url": "jdbc:postgresql://127.0.0.1:{port}/shop", "table-name": "d", "username": "me",
        "password": "${env:CANARY}", "connection.timeout": "2 s",
    },
    "kafka": {**_BROKER, **_READ},
    "upsert-kafka": {**_BROKER, **_KEYED},
}  # fmt: skip
SINKS = {
    "delta": _LAKE,
    "iceberg": _CATALOG,
    "jdbc": {
        "url": "jdbc:postgresql://127.0.0.1:{port}/shop", "table-name": "d", "username": "me",
        "password": "${env:CANARY}", "connection.timeout": "2 s", "sink.max-retries": "0",
    },
    "kafka": {
        **_BROKER, **_WRITTEN, "format": "avro-confluent", "avro-confluent.url": "http://127.0.0.1:{port}",
        "avro-confluent.basic-auth.user-info": "${env:CANARY_USER}",
    },
    "upsert-kafka": {**_BROKER, **_WRITTEN, **_KEYED},
}  # fmt: skip
READS = """
    CREATE TABLE o (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'IN', 'format' = 'json');
    """
PRINTS = "CREATE TABLE r (k BIGINT, v STRING) WITH ('connector' = 'print');"
BATCH = "SET 'execution.runtime-mode' = 'batch';\n"
TRIALS = [
    *(
        (connector, options, f"""{READS} {PRINTS} CREATE TABLE d (k BIGINT, v STRING) WITH (OPTIONS);
        INSERT INTO r SELECT o.k, d.v FROM o JOIN d FOR SYSTEM_TIME AS OF o.p AS d ON o.k = d.k;""")
        for connector, options in LOOKUPS.items()
    ),
    *(
        (connector, options, f"""{"" if CONNECTORS[connector].in_streams else BATCH}{PRINTS}
        CREATE TABLE d (k BIGINT{" NOT NULL, PRIMARY KEY (k) NOT ENFORCED" if "upsert" in connector else ""})
        WITH (OPTIONS); INSERT INTO r SELECT k, 'x' FROM d;""")
        for connector, options in SOURCES.items()
    ),
    *(
        (connector, options, f"""{READS}
        CREATE TABLE d (k BIGINT{" NOT NULL, PRIMARY KEY (k) NOT ENFORCED" if "upsert" in connector else ""})
        WITH (OPTIONS); INSERT INTO d SELECT COALESCE(k, 0) FROM o;""")
        for connector, options in SINKS.items()
    ),
]  # fmt: skip
ROLES = [f"{name}-{role}" for role, of in (("lookup", LOOKUPS), ("source", SOURCES), ("sink", SINKS)) for name in of]


def test_every_connector_that_takes_secrets_is_tried() -> None:
    takes = {
        name: spec
        for name, spec in CONNECTORS.items()
        if spec.families or any(o.environment or o.secret for o in spec.options)
    }
    assert takes.keys() - LOOKUPS.keys() - SOURCES.keys() - SINKS.keys() == set()
    assert {name for name, spec in takes.items() if isinstance(spec, LookedUp)} - LOOKUPS.keys() == set()
    assert {name for name, spec in takes.items() if isinstance(spec, Readable)} - SOURCES.keys() == set()
    assert {name for name, spec in takes.items() if isinstance(spec, Writable)} - SINKS.keys() == set()


@pytest.mark.parametrize(
    ("layout", "connector", "given", "script"),
    each_once(
        [pytest.param(layout, id=layout) for layout in ("text", "json")],
        [pytest.param(*trial, id=role) for trial, role in zip(TRIALS, ROLES, strict=True)],
    ),
)
def test_a_connector_that_fails_tells_no_secret(
    connector: str, given: dict[str, str], script: str, layout: str, port: int, commands: Commands, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"k": 1}\n')
    options = {"connector": connector, **given}
    body = ", ".join(f"'{name}' = '{value.replace('{port}', str(port)).replace('{{', '{').replace('}}', '}')}'"
                     for name, value in options.items())  # fmt: skip
    sql = script.replace("OPTIONS", body).replace("'IN'", f"'{tmp_path}/in'")
    plan = compile_sql(sql, name="canary")
    dump(plan, tmp_path / "plan.json")
    allowed = [part for name in SET for part in ("--allow-env", name)]
    allowed += ["--allow-scheme", "s3", "--allow-host", "127.0.0.1", "--allow-host", "http://127.0.0.1"]
    allowed += ["--allow-module", "leaky"] if connector == "python" else []
    words = ["run", "plan.json", "--once", *allowed]
    words += [] if plan.mode == "batch" else ["--checkpoint", "state"]
    words += [part for name, value in spark_conf().items() for part in ("--conf", f"{name}={value}")]
    done = commands.run(*words, *(["--json"] if layout == "json" else []), folder=tmp_path)
    said = done.said
    assert done.returncode == 1, said
    assert any(place in said for place in ("tables.d", "lookup_d", "sink_d", "sink_r", "127.0.0.1:")), said
    assert "internal error" not in said
    for log in re.findall(r"Spark's log: (\S+)", said):
        said += Path(log).read_text(errors="replace")
    for file in (tmp_path / "state").rglob("*"):
        said += file.read_bytes().decode("latin-1") if file.is_file() else ""
    said += commands.logged()
    assert [form for form in FORMS if form in said] == []
