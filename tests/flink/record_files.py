"""Asks Flink how it names partitions, and has it write a file of each format: files.json and ``files/``.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. What Flink needs
for ORC, Avro and Parquet is fetched from Maven; Hadoop's classes are those of PySpark, whose directory of jars is the
argument.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

MAVEN = "https://repo1.maven.org/maven2/org/apache/flink"
VERSION = "2.3.0"
RECORDED = Path(__file__).parent / "files.json"


def jars(directory: Path) -> list[Path]:
    found = []
    for name in ("flink-sql-avro", "flink-sql-orc", "flink-sql-parquet"):
        path = directory / f"{name}-{VERSION}.jar"
        if not path.exists():
            urllib.request.urlretrieve(f"{MAVEN}/{name}/{VERSION}/{path.name}", path)
        found.append(path)
    return found


def record(directory: Path) -> dict[str, object]:
    from files import FORMATS, PARTITIONS, TYPES
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("pipeline.jars", ";".join(f"file://{path}" for path in jars(directory)))
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.local-time-zone", "America/New_York")

    def sink(name: str, columns: str, chosen: str, query: str, more: str = "") -> Path:
        path = directory / name
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}) {more} WITH ('connector' = 'filesystem', 'path' = '{path}', "
            f"'format' = '{chosen}')"
        )
        tables.execute_sql(f"INSERT INTO {name} {query}").wait()
        return path

    partitions = {}
    for number, (kind, values) in enumerate(PARTITIONS.items()):
        rows = " UNION ALL ".join(f"SELECT 1, CAST({value} AS {kind})" for value in values)
        path = sink(f"p{number}", f"v INT, p {kind}", "json", rows, "PARTITIONED BY (p)")
        partitions[kind] = sorted({found.parent.name for found in path.rglob("part-*")})
    files = {}
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    for chosen in FORMATS:
        (file,) = sink(chosen, columns, chosen, f"SELECT {', '.join(v for _, v in TYPES.values())}").glob("part-*")
        files[chosen] = base64.b64encode(file.read_bytes()).decode()
    return {"partitions": partitions, "files": files}


if __name__ == "__main__":
    hadoop = [str(path) for path in Path(sys.argv[1]).glob("hadoop-client-*.jar")]
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(hadoop)
    with tempfile.TemporaryDirectory() as found:
        text = json.dumps(record(Path(found)), indent=1, sort_keys=True)
    RECORDED.write_text(text + "\n", encoding="utf-8")
