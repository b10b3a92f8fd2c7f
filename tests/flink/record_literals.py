"""Asks Flink for the literals of literals.txt as text, and writes them to literals.json; null for one that it refuses.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException

HERE = Path(__file__).parent


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    lines = (HERE / "literals.txt").read_text(encoding="utf-8").splitlines()
    answers: dict[str, str | None] = {line: None for line in lines if not line.startswith("#")}
    taken = []
    for text in answers:
        try:
            tables.explain_sql(f"SELECT CAST({text} AS STRING)")
            taken.append(text)
        except (Py4JJavaError, TableException):
            pass
    columns = ", ".join(f"CAST({text} AS STRING)" for text in taken)
    with tables.sql_query(f"SELECT {columns}").execute().collect() as rows:
        (row,) = list(rows)
    answers |= dict(zip(taken, row))  # noqa: B905
    text = ",\n".join(f"  {json.dumps(literal)}: {json.dumps(value)}" for literal, value in answers.items())
    (HERE / "literals.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
