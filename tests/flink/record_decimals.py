"""Asks Flink for the types and values of the expressions in decimals.py, and writes them to decimals.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from decimals import expressions, rows
from pyflink.table import EnvironmentSettings, TableEnvironment
from values import plain

HERE = Path(__file__).parent


def ask(environment: TableEnvironment, chosen: list[str]) -> dict[str, Any]:
    """The answers for ``chosen``; if one of several fails, each is asked alone."""
    try:
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(chosen))
        table = environment.sql_query(f"SELECT nr, {columns} FROM r")
        types = [t.toString() for t in table._j_table.getResolvedSchema().getColumnDataTypes()][1:]
        with table.execute().collect() as found:
            values = sorted(map(list, found), key=lambda row: row[0])
    except Exception as error:  # noqa: BLE001 - what Flink refuses is an answer, too
        if len(chosen) > 1:
            half = len(chosen) // 2
            return ask(environment, chosen[:half]) | ask(environment, chosen[half:])
        reasons = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
        return {chosen[0]: {"error": (reasons or [str(error)])[-1].strip()}}
    return {
        text: {"type": kind.removesuffix(" NOT NULL"), "values": [plain(row[i]) for row in values]}
        for i, (text, kind) in enumerate(zip(chosen, types, strict=True), 1)
    }


def main() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    # A row that is not there keeps the planner from computing with constants.
    union = " UNION ALL ".join(rows())
    environment.execute_sql(f"CREATE TEMPORARY VIEW r AS SELECT * FROM ({union}) UNION ALL ({rows()[0]} LIMIT 0)")
    wanted = expressions()
    answers: dict[str, Any] = {}
    for start in range(0, len(wanted), 32):
        answers |= ask(environment, wanted[start : start + 32])
        print(f"{len(answers)} of {len(wanted)} expressions", file=sys.stderr)
    text = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    (HERE / "decimals.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
