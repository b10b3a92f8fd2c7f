"""Asks Flink for CONVERT_TZ with zones from a column, and writes the answers to convert_tz.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The rows are
those that the file has: a text, a zone, the text from UTC in that zone, and from that zone in UTC.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "convert_tz.json"


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    given = [row[:2] for row in json.loads(RECORDED.read_text(encoding="utf-8"))]
    fields = [DataTypes.FIELD("i", DataTypes.INT()), *(DataTypes.FIELD(n, DataTypes.STRING()) for n in "sz")]
    rows = tables.from_elements([(i, *row) for i, row in enumerate(given)], DataTypes.ROW(fields))
    query = f"SELECT i, CONVERT_TZ(s, 'UTC', z), CONVERT_TZ(s, z, 'UTC') FROM {rows}"
    with tables.sql_query(query).execute().collect() as found:
        answers = {row[0]: [row[1], row[2]] for row in found}
    lines = (json.dumps([*row, *answers[i]]) for i, row in enumerate(given))
    RECORDED.write_text("[\n " + ",\n ".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
