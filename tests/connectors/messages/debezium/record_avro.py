"""Asks Flink what it writes and reads as debezium-avro-confluent: avro.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The registry is
a small server here; Flink's classes for the format are fetched from Maven. The envelopes that are read have the fields
that Debezium's converter writes.
"""

from __future__ import annotations

import base64
import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

from fastavro import parse_schema, schemaless_writer
from py4j.protocol import Py4JJavaError
from pyflink.java_gateway import get_gateway
from pyflink.util.java_utils import add_jars_to_context_class_loader, to_jarray

HERE = Path(__file__).parent
JAR = "flink-sql-avro-confluent-registry-2.3.0.jar"
URL = f"https://repo1.maven.org/maven2/org/apache/flink/flink-sql-avro-confluent-registry/2.3.0/{JAR}"

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "name": "STRING",
    "paid": "BOOLEAN",
    "price": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(3)",
    "day": "DATE",
    "tags": "ARRAY<STRING>",
    "box": "ROW<w INT, h DOUBLE NOT NULL>",
}
ROWS: list[list[Any]] = [
    [5000000000, "a", True, "12.50", 1704103200123, 19723, ["x", None], [3, 0.5]],
    [-5000000000, None, None, None, None, None, None, None],
]
KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")

VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "extra", "type": "int"},
        {"name": "price", "type": ["null", {"type": "bytes", "scale": 2, "precision": 10, "logicalType": "decimal"}]},
        {"name": "at", "type": ["null", {"type": "long", "connect.name": "io.debezium.time.Timestamp"}]},
        {"name": "day", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}]},
    ],
    "connect.name": "shop.public.orders.Value",
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.orders",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
READ = {"id": "BIGINT NOT NULL", "price": "DECIMAL(10, 2)", "name": "STRING", "at": "TIMESTAMP(3)", "day": "DATE"}
OLD = {"id": 1, "name": "a", "extra": 7, "price": b"\x04\xe2", "at": 1704103200123, "day": 19723}
NEW = {"id": 1, "name": None, "extra": 8, "price": None, "at": None, "day": None}
EVENTS: list[dict[str, Any]] = [
    {"before": None, "after": OLD, "op": "c"},
    {"before": None, "after": OLD, "op": "r"},
    {"before": OLD, "after": NEW, "op": "u"},
    {"before": NEW, "after": OLD, "op": "u"},
    {"before": OLD, "after": None, "op": "d"},
    {"before": None, "after": NEW, "op": "u"},
    {"before": None, "after": None, "op": "d"},
    {"before": None, "after": None, "op": "t"},
]


class Registry(BaseHTTPRequestHandler):
    schemas: ClassVar[dict[int, str]] = {}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = len(self.schemas) + 1
        self.schemas[number] = body["schema"]
        self.say({"id": number})

    def do_GET(self) -> None:
        number = int(self.path.partition("?")[0].rpartition("/")[2])
        self.say({"schema": self.schemas[number]})

    def say(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


def row_type(jvm: Any, columns: dict[str, str]) -> Any:
    text = "ROW<" + ", ".join(f"`{name}` {kind}" for name, kind in columns.items()) + ">"
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.org.apache.flink.table.types.logical.utils.LogicalTypeParser.parse(text, loader)


def internal(jvm: Any, kind: str, value: Any) -> Any:
    """A value as Flink's rows hold it."""
    data = jvm.org.apache.flink.table.data
    if value is None:
        return None
    if kind.startswith("STRING"):
        return data.StringData.fromString(value)
    if kind.startswith("DECIMAL"):
        return data.DecimalData.fromBigDecimal(jvm.java.math.BigDecimal(value), 10, 2)
    if kind.startswith("TIMESTAMP"):
        return data.TimestampData.fromEpochMillis(value)
    if kind.startswith("ARRAY"):
        items = to_jarray(jvm.java.lang.Object, [internal(jvm, "STRING", item) for item in value])
        return data.GenericArrayData(items)
    if kind.startswith("ROW"):
        return data.GenericRowData.of(to_jarray(jvm.java.lang.Object, [value[0], jvm.java.lang.Double(value[1])]))
    return value


def written(jvm: Any, url: str) -> list[Any]:
    """What Flink writes of each row as each kind."""
    schema = jvm.org.apache.flink.formats.avro.registry.confluent.debezium.DebeziumAvroSerializationSchema(
        row_type(jvm, COLUMNS), url, "orders-value", None, None
    )
    schema.open(None)
    found = []
    for row in ROWS:
        values = [internal(jvm, kind, value) for kind, value in zip(COLUMNS.values(), row, strict=True)]
        for kind in KINDS:
            record = jvm.org.apache.flink.table.data.GenericRowData.ofKind(
                getattr(jvm.org.apache.flink.types.RowKind, kind), to_jarray(jvm.java.lang.Object, values)
            )
            found.append([kind, row, base64.b64encode(bytes(schema.serialize(record))).decode()])
    return found


def read(jvm: Any, url: str, number: int) -> list[Any]:
    """What Flink reads of each event: the changes, or null where it fails."""
    kind = row_type(jvm, READ)
    info = jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(kind)
    schema = jvm.org.apache.flink.formats.avro.registry.confluent.debezium.DebeziumAvroDeserializationSchema(
        kind, info, url, None, None
    )
    schema.open(None)
    parsed = parse_schema(ENVELOPE)
    messages = [b""]
    for event in EVENTS:
        out = BytesIO()
        schemaless_writer(out, parsed, {"source": {"lsn": 4}, "ts_ms": 5, **event})
        messages.append(b"\0" + number.to_bytes(4, "big") + out.getvalue())
    found = []
    for message in messages:
        rows = jvm.java.util.ArrayList()
        collector = jvm.org.apache.flink.api.common.functions.util.ListCollector(rows)
        try:
            schema.deserialize(message, collector)
        except Py4JJavaError as error:
            print([line for line in str(error).splitlines() if "Caused by" in line][-1:])
            rows = None
        changes = None if rows is None else [[row.getRowKind().toString(), row.toString()] for row in rows]
        found.append([base64.b64encode(message).decode(), changes])
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        jar, _ = urllib.request.urlretrieve(URL, Path(folder) / JAR)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        jvm = get_gateway().jvm
        add_jars_to_context_class_loader([f"file://{jar}"])
        answers: dict[str, Any] = {"columns": COLUMNS, "written": written(jvm, url)}
        answers["schema"] = json.loads(Registry.schemas[1])
        Registry.schemas[7] = json.dumps(ENVELOPE)
        answers |= {"read columns": READ, "envelope": ENVELOPE, "read": read(jvm, url, 7)}
        (HERE / "avro.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
        server.shutdown()


if __name__ == "__main__":
    main()
