"""Writes NULL to NOT NULL columns of sinks on Flink, and the rows that arrive to not_null.json; None is a failure.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from not_null import ENFORCERS, ROWS, SINKS
from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "not_null.json"


def written(enforcer: str, columns: str, directory: Path) -> list[Any] | None:
    """Return the rows that a sink with ``columns`` gets; None if the job fails."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.exec.sink.not-null-enforcer", enforcer)
    tables.get_config().set("restart-strategy.type", "none")
    source, target = directory / "rows.json", directory / "written"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    files = "'connector' = 'filesystem', 'format' = 'json'"
    tables.execute_sql(f"CREATE TABLE o (a INT, b STRING) WITH ({files}, 'path' = '{source}')")
    tables.execute_sql(f"CREATE TABLE r ({columns}) WITH ({files}, 'path' = '{target}')")
    value = "CASE WHEN b IS NULL THEN NULL ELSE ROW(b) END" if "ROW<" in columns else "b"
    try:
        tables.execute_sql(f"INSERT INTO r SELECT a, {value} FROM o").wait()
    except Py4JJavaError as error:
        print(str(error)[-600:], file=sys.stderr)
        return None
    lines = [line for path in target.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    found: dict[str, dict[str, Any]] = {}
    for enforcer in ENFORCERS:
        for name, columns in SINKS.items():
            with tempfile.TemporaryDirectory() as directory:
                found.setdefault(enforcer, {})[name] = written(enforcer, columns, Path(directory))
            print(enforcer, name, found[enforcer][name], file=sys.stderr)
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
