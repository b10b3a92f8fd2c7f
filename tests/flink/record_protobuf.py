"""Lets Flink read and write messages of Protobuf through a broker, and writes what came of them to protobuf.json.

    .venv/bin/python tests/flink/record_protobuf.py .flink/bin/python

Runs in our environment, with the broker of the tests, and starts itself in that of Flink. Needs javac. What Flink lacks
comes from Maven: its connector for Kafka, its format, and the compiler and library of Protobuf.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from protobuf_cases import BYTES, CLASSES, COLUMNS, MESSAGES, NUMBERED, NUMBERS_WRITTEN, READ, WRITTEN  # noqa: E402

RECORDED = HERE / "protobuf.json"
PROTOS = HERE.parent / "messages" / "protobuf"
_MAVEN = "https://repo1.maven.org/maven2"
_JARS = (
    "org/apache/flink/flink-sql-connector-kafka/5.0.0-2.2/flink-sql-connector-kafka-5.0.0-2.2.jar",
    "org/apache/flink/flink-protobuf/2.3.0/flink-protobuf-2.3.0.jar",
    "com/google/protobuf/protobuf-java/4.32.1/protobuf-java-4.32.1.jar",
)
_PROTOC = "com/google/protobuf/protoc/4.32.1/protoc-4.32.1-linux-x86_64.exe"


def in_flink(request: dict[str, Any]) -> None:
    """Let Flink write the row of ``request``, or what it reads of a topic as JSON into another."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("pipeline.jars", ";".join(f"file://{jar}" for jar in request["jars"]))
    columns = request["columns"]
    listed = ", ".join(f"`{name}` {declared}" for name, declared in columns.items())
    options = {
        "connector": "kafka", "topic": request["topic"], "properties.bootstrap.servers": request["servers"],
        "format": "protobuf", "protobuf.message-class-name": request["class"], "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset", **request["options"],
    }  # fmt: skip
    told = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    tables.execute_sql(f"CREATE TABLE t ({listed}) WITH ({told})")
    if (row := request.get("row")) is None:
        into = {key: value for key, value in options.items() if not key.startswith(("protobuf", "scan"))}
        into |= {"topic": request["into"], "format": "json"}
        told = ", ".join(f"'{key}' = '{value}'" for key, value in into.items())
        tables.execute_sql(f"CREATE TABLE r ({listed}) WITH ({told})")
        tables.execute_sql("INSERT INTO r SELECT * FROM t").wait()
        return
    values = ", ".join(f"CAST({row.get(name, 'NULL')} AS {declared})" for name, declared in columns.items())
    tables.execute_sql(f"INSERT INTO t SELECT {values}").wait()


def requests_in_flink() -> None:
    from py4j.protocol import Py4JJavaError
    from pyflink.util.exceptions import TableException

    for line in sys.stdin:
        try:
            in_flink(json.loads(line))
            answer = {}
        except (Py4JJavaError, TableException) as error:
            causes = [line for line in str(error).splitlines() if "Caused by" in line]
            answer = {"refused": causes[-1].strip() if causes else str(error)}
        print("ANSWER " + json.dumps(answer), flush=True)


def main(python: str) -> None:
    from tests.connectors.messages.broker import running_broker

    with tempfile.TemporaryDirectory() as name, running_broker() as broker:
        assert broker is not None, "make kafka"
        directory = Path(name)
        jars = [directory / path.rpartition("/")[2] for path in _JARS]
        for path, jar in zip((*_JARS, _PROTOC), (*jars, directory / "protoc"), strict=True):
            urllib.request.urlretrieve(f"{_MAVEN}/{path}", jar)
        protoc = directory / "protoc"
        protoc.chmod(0o755)
        (directory / "classes").mkdir()
        subprocess.run([protoc, f"-I{PROTOS}", f"--java_out={directory}", *CLASSES], check=True)
        sources = [str(path) for path in directory.rglob("*.java")]
        subprocess.run(["javac", "-cp", jars[-1], "-d", directory / "classes", *sources], check=True)
        subprocess.run(["jar", "cf", directory / "shop.jar", "-C", directory / "classes", "."], check=True)
        flink = subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )  # fmt: skip
        assert flink.stdin is not None
        assert flink.stdout is not None

        def ask(**request: Any) -> Any:
            shared = {"jars": [str(each) for each in (*jars, directory / "shop.jar")], "servers": broker.servers}
            flink.stdin.write(json.dumps({**shared, **request}) + "\n")
            flink.stdin.flush()
            for line in flink.stdout:
                if line.startswith("ANSWER "):
                    return json.loads(line.removeprefix("ANSWER "))
            raise RuntimeError("Flink has ended")

        found: dict[str, Any] = {"messages": {}, "read": {}, "written": {}}
        for file, message in MESSAGES.items():
            encoded = {
                case: subprocess.run(
                    [protoc, f"-I{PROTOS}", f"--encode={message}", file], input=text.encode(), check=True,
                    capture_output=True,
                ).stdout
                for case, text in READ.items()
            }  # fmt: skip
            encoded |= {case: bytes.fromhex(written) for case, written in BYTES.items()}
            found["messages"][file] = {case: value.hex() for case, value in encoded.items()}
            for defaults in ("false", "true"):
                for kind, columns in (("names", COLUMNS), ("numbers", NUMBERED)):
                    of_kind = found["read"].setdefault(file, {}).setdefault(f"{kind}, defaults {defaults}", {})
                    for case, value in encoded.items():
                        topic, into = broker.create(), broker.create()
                        broker.send(topic, [(None, value)])
                        options = {"protobuf.read-default-values": defaults}
                        answer = ask(
                            topic=topic, into=into, columns=columns, options=options, **{"class": CLASSES[file]}
                        )  # fmt: skip
                        if not answer:
                            answer = {"found": [json.loads(sent.value or b"null") for sent in broker.read(into)]}
                        of_kind[case] = answer
                        print(file, defaults, kind, case, of_kind[case], file=sys.stderr)
            for columns, rows in ((COLUMNS, WRITTEN), (NUMBERED, NUMBERS_WRITTEN)):
                for case, row in rows.items():
                    topic = broker.create()
                    options = {"protobuf.write-null-string-literal": "nil"}
                    answer = ask(topic=topic, columns=columns, options=options, row=row, **{"class": CLASSES[file]})
                    if "refused" not in answer:
                        (sent,) = broker.read(topic)
                        answer = {"found": None if sent.value is None else sent.value.hex()}
                    found["written"].setdefault(file, {})[case] = answer
                    print(file, "written", case, answer, file=sys.stderr)
        flink.stdin.close()
        flink.wait(60)
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        requests_in_flink()
