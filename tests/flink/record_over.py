"""Runs the queries of over.py on Flink in batch mode, and writes their rows to over.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``; with
``--missing`` it asks only for queries that have no answer yet.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from over import COLUMNS, QUERIES, ROWS
from pyflink.table import EnvironmentSettings, TableEnvironment
from values import plain

RECORDED = Path(__file__).parent / "over.json"


def main() -> None:
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if "--missing" in sys.argv and RECORDED.exists() else {}
    answers: dict[str, Any] = {name: known[name] for name in QUERIES if name in known}
    names = [column.split()[0] for column in COLUMNS.replace("(10, 2)", "").split(", ")]
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.get_config().set("parallelism.default", "1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "o.json")
        path.write_text("".join(json.dumps(dict(zip(names, row))) + "\n" for row in ROWS), encoding="utf-8")  # noqa: B905
        tables.execute_sql(
            f"CREATE TABLE o ({COLUMNS}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}')"
        )
        for name, (_, query) in QUERIES.items():
            if name in answers:
                continue
            with tables.execute_sql(query).collect() as rows:
                answers[name] = sorted(([plain(value) for value in row] for row in rows), key=json.dumps)
            print(f"{len(answers)} of {len(QUERIES)} queries: {name}", file=sys.stderr)
            write(answers)


def write(answers: dict[str, Any]) -> None:
    text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(answers[name])}" for name in QUERIES if name in answers)
    RECORDED.write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
