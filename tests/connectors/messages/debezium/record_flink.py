"""Asks Flink what it reads of each message that Debezium wrote: flink.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. Messages without
a value are not asked, as Flink's files cannot hold them. A case whose messages Flink does not read all is asked message
by message: its answer has null for each that fails.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from cases import CASES, COLUMN, HERE, Case, messages
from pyflink.table import EnvironmentSettings, TableEnvironment

AS_TEXT = ("DECIMAL", "DOUBLE", "FLOAT", "TIMESTAMP", "TIMESTAMP_LTZ", "DATE")


def read(tables: TableEnvironment, case: Case, lines: list[str], path: Path) -> list[Any] | None:
    """The changes that Flink reads of a file of ``lines``; None if it fails."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = {"connector": "filesystem", "format": "debezium-json", "path": str(path)}
    options |= {f"debezium-json.{name}": value for name, value in case.options.items()}
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    tables.execute_sql("DROP TABLE IF EXISTS t")
    tables.execute_sql(f"CREATE TABLE t ({case.columns}) WITH ({listed})")
    columns = [
        f"CAST(`{name}` AS STRING)" if kind.partition("(")[0] in AS_TEXT else f"`{name}`"
        for name, kind in COLUMN.findall(case.columns)
    ]
    try:
        with tables.execute_sql(f"SELECT {', '.join(columns)} FROM t").collect() as rows:
            return [[row.get_row_kind().name, [shown(value) for value in row]] for row in rows]
    except Exception as error:
        if "DebeziumJsonDeserializationSchema" not in str(error):
            raise
        causes = [line for line in str(error).splitlines() if "Caused by" in line]
        print(f"  {causes[-1][:160]}", file=sys.stderr)
        return None


def shown(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else value


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.get_config().set("parallelism.default", "1")
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            print(name, file=sys.stderr)
            lines = [value for _, value in messages(case.mode, case.table) if value is not None]
            whole = read(tables, case, lines, Path(folder) / "t")
            single = [read(tables, case, [line], Path(folder) / "t") for line in lines] if whole is None else [whole]
            answers[name] = single
    text = ",\n".join(
        f" {json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(found)}" for found in each) + "\n ]"
        for name, each in answers.items()
    )
    (HERE / "flink.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
