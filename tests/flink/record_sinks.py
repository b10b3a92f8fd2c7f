"""Writes columns to sinks of other types on Flink, and what came of each to sinks.json; None is a refusal.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``; with
``--missing`` it asks only for cases that have no answer yet.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException
from recording import recorded, replace
from sinks import CASES, COLUMNS, ENFORCERS, ROWS, ZONE

RECORDED = Path(__file__).parent / "sinks.json"


def written(enforcer: str, column: str, kind: str, directory: Path) -> list[Any] | None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.exec.sink.type-length-enforcer", enforcer)
    tables.get_config().set("table.local-time-zone", ZONE)
    source, target = directory / "rows.json", directory / "written"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    listed = ", ".join(f"{name} {declared}" for name, declared in COLUMNS.items())
    files = "'connector' = 'filesystem', 'format' = 'json'"
    tables.execute_sql(f"CREATE TABLE o ({listed}) WITH ({files}, 'path' = '{source}')")
    tables.execute_sql(f"CREATE TABLE r (a {kind}) WITH ({files}, 'path' = '{target}')")
    try:
        tables.execute_sql(f"INSERT INTO r SELECT {column} FROM o").wait()
    except (Py4JJavaError, TableException) as error:
        if "do not match" not in str(error):
            raise
        return None
    # Without checkpoints Flink leaves the files as they were written, under names that begin with a dot.
    lines = [line for path in target.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line)["a"] for line in lines]


if __name__ == "__main__":
    known = recorded(RECORDED)
    found: dict[str, dict[str, Any]] = {}
    for enforcer in ENFORCERS:
        for column, kind in CASES:
            case, answers = f"{column} {kind}", found.setdefault(enforcer, {})
            if case in known.get(enforcer, {}):
                answers[case] = known[enforcer][case]
                continue
            with tempfile.TemporaryDirectory() as directory:
                answers[case] = written(enforcer, column, kind, Path(directory))
            print(enforcer, case, answers[case], file=sys.stderr)
    text = json.dumps(found, indent=1, sort_keys=True)
    replace(RECORDED, text + "\n")
