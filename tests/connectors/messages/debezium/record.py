"""Has Debezium's connector of PostgreSQL watch what statements.py does, and records its messages.

Needs PostgreSQL, Maven and a JDK; run as ``python -m tests.connectors.messages.debezium.record``. A line of
``MODE.tsv`` is a message: the table, the key and the value, which is ``null`` if the message has none.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.connectors.lookup_sources.servers import PASSWORD, Postgres, postgres_server
from tests.connectors.messages.debezium.statements import AFTER, BEFORE, MODES, ROWS_BEFORE, TABLES

VERSION = "3.3.1.Final"
HERE = Path(__file__).parent
POM = f"""<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>{
    "".join(
        f"<dependency><groupId>io.debezium</groupId><artifactId>{name}</artifactId><version>{VERSION}</version></dependency>"
        for name in ("debezium-embedded", "debezium-connector-postgres")
    )
}</dependencies></project>"""


def jars(directory: Path) -> Path:
    (directory / "pom.xml").write_text(POM)
    command = ["mvn", "-q", "-f", str(directory / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*command, f"-DoutputDirectory={directory / 'jars'}"], check=True)
    return directory / "jars"


def waited(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.2)


def settings(server: Postgres, mode: str) -> dict[str, str]:
    return {
        "name": "engine", "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "offset.flush.interval.ms": "1000", "database.hostname": "127.0.0.1", "database.port": str(server.port),
        "database.user": "hintplan", "database.password": PASSWORD, "database.dbname": "shop",
        "topic.prefix": "shop", "plugin.name": "pgoutput", "schema.include.list": "public", **MODES[mode],
    }  # fmt: skip


def record(classpath: str, mode: str, directory: Path) -> list[str]:
    directory.mkdir()
    with postgres_server() as server:
        assert server is not None
        server.execute("ALTER SYSTEM SET wal_level = 'logical'")
        server.stop()
        server.start()
        server.execute(*TABLES, *BEFORE)
        lines = (f"{key}={value}\n" for key, value in settings(server, mode).items())
        (directory / "properties").write_text("".join(lines))
        out, end = directory / "out", directory / "end"
        command = ["java", "-cp", classpath, HERE / "Record.java", directory / "properties", out, end]
        with (directory / "log").open("wb") as log:
            running = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            waited(lambda: out.exists() and len(out.read_text().splitlines()) >= ROWS_BEFORE)
            server.execute(*AFTER)
            server.execute("INSERT INTO customers VALUES (1000, 'end')")
            waited(lambda: '"id":1000' in out.read_text())
        except TimeoutError:
            print((directory / "log").read_text()[-5000:])
            raise
        finally:
            end.touch()
            running.wait(60)
        found = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    return [f"{topic.rpartition('.')[2]}\t{key}\t{value}\n" for topic, key, value in found if '"id":1000' not in key]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        classpath = f"{jars(at)}/*"
        for mode in MODES:
            (HERE / f"{mode}.tsv").write_text("".join(record(classpath, mode, at / mode)), encoding="utf-8")
