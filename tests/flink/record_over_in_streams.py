"""Asks Flink which window functions of over_in_streams.txt it plans in a stream, and writes why it takes no others.

Writes over_in_streams.json: null for what Flink plans, else its words. Runs in an environment of its own, which has
apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException

HERE = Path(__file__).parent
TABLE = """CREATE TABLE t (id BIGINT, k BIGINT, v BIGINT, s STRING, ts TIMESTAMP(3), pt AS PROCTIME(),
WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen')"""


def reason(tables: TableEnvironment, query: str) -> str | None:
    try:
        tables.explain_sql(query)
    except (Py4JJavaError, TableException) as error:
        lines = [line for line in str(error).splitlines() if "TableException" in line or "ValidationException" in line]
        return (lines or [str(error)])[-1].rpartition("Exception: ")[2].strip()
    return None


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql(TABLE)
    lines = (HERE / "over_in_streams.txt").read_text(encoding="utf-8").splitlines()
    answers = {line: reason(tables, f"SELECT id, {line} FROM t") for line in lines if not line.startswith("#")}
    ranked = "SELECT id FROM (SELECT *, {} OVER (PARTITION BY k ORDER BY v) AS n FROM t) WHERE n <= 3"
    for function in ("RANK()", "DENSE_RANK()"):
        answers[f"first rows by {function}"] = reason(tables, ranked.format(function))
    text = ",\n".join(f"  {json.dumps(line)}: {json.dumps(found)}" for line, found in answers.items())
    (HERE / "over_in_streams.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
