"""Asks Flink for types and values of expressions with TIME, and writes the answers to times_of_day.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The expressions
are those that the file has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "times_of_day.json"
ROW = """SELECT i, s, CAST(TIMESTAMP '2024-02-29 13:14:15.678912' AS TIMESTAMP(6)) AS ts,
CAST(TIMESTAMP '2024-02-29 13:14:15.678' AS TIMESTAMP_LTZ(3)) AS lz, DATE '2024-02-29' AS d"""


def ask(tables: TableEnvironment, expression: str) -> dict[str, Any]:
    try:
        found = tables.sql_query(f"SELECT {expression} AS y FROM r")
        (kind,) = (each.toString() for each in found._j_table.getResolvedSchema().getColumnDataTypes())
        with tables.sql_query(f"SELECT CAST(y AS STRING) FROM {found}").execute().collect() as rows:
            ((value,),) = list(rows)
    except Exception as error:  # noqa: BLE001 - what Flink refuses is an answer, too
        reasons = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
        return {"error": (reasons or [str(error)])[-1].strip()}
    return {"type": kind.removesuffix(" NOT NULL"), "value": value}


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.local-time-zone", "Europe/Berlin")
    fields = [DataTypes.FIELD("i", DataTypes.INT()), DataTypes.FIELD("s", DataTypes.STRING())]
    rows = tables.from_elements([(1, "10:11:12.345")], DataTypes.ROW(fields))
    tables.create_temporary_view("r", tables.sql_query(f"{ROW} FROM {rows}"))
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    lines = (f" {json.dumps(each)}: {json.dumps(ask(tables, each))}" for each in recorded)
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
