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
    return {"partitions": partitions, "files": files, "overwrites": overwrites(directory)}


def overwrites(directory: Path) -> dict[str, object]:
    """The rows of a table after each INSERT OVERWRITE, and what is said of those that are refused."""
    from files import BEFORE, NEW, OVERWRITES, OVERWRITTEN, REFUSED_OVERWRITES
    from pyflink.table import EnvironmentSettings, TableEnvironment

    found: dict[str, object] = {}
    for number, (name, (by, partition, query)) in enumerate(OVERWRITES.items()):
        tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        tables.get_config().set("parallelism.default", "1")
        for table, parts in (("t", by), ("n", "")):
            place = f"'connector' = 'filesystem', 'path' = '{directory}/o{number}{table}', 'format' = 'json'"
            divided = f"PARTITIONED BY ({parts})" if parts else ""
            tables.execute_sql(f"CREATE TABLE {table} ({OVERWRITTEN}) {divided} WITH ({place})")
        tables.execute_sql(f"INSERT INTO t VALUES {BEFORE}").wait()
        tables.execute_sql(f"INSERT INTO n VALUES {NEW}").wait()
        try:
            tables.execute_sql(f"INSERT OVERWRITE t {partition} {query}").wait()
        except Exception as error:  # noqa: BLE001
            found[name] = cause(error)
            continue
        with tables.execute_sql("SELECT * FROM t").collect() as rows:
            found[name] = sorted(list(row) for row in rows)
    for name, (mode, options) in REFUSED_OVERWRITES.items():
        settings = EnvironmentSettings.new_instance()
        tables = TableEnvironment.create(
            (settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()).build()
        )
        tables.execute_sql(f"CREATE TABLE t ({OVERWRITTEN}) WITH ({options.format(directory / 'refused')})")
        try:
            tables.execute_sql("INSERT OVERWRITE t VALUES (1, 1, 'a')").wait()
            found[name] = "taken"
        except Exception as error:  # noqa: BLE001
            found[name] = cause(error)
    return found


def cause(error: Exception) -> str:
    """What Flink's own exception says."""
    lines = [line for line in str(error).splitlines() if "Exception: " in line and not line.startswith("\tat")]
    return lines[-1].partition("Exception: ")[2]


if __name__ == "__main__":
    hadoop = [str(path) for path in Path(sys.argv[1]).glob("hadoop-client-*.jar")]
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(hadoop)
    with tempfile.TemporaryDirectory() as found:
        text = json.dumps(record(Path(found)), indent=1, sort_keys=True)
    RECORDED.write_text(text + "\n", encoding="utf-8")
