"""Asks Flink for the conditions and queries of compared_times.py, and writes the answers to compared_times.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
from pathlib import Path

from compared_times import CONDITIONS, QUERIES, ROWS, ZONE
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "compared_times.json"


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.local-time-zone", ZONE)
    fields = [("id", DataTypes.BIGINT()), ("shown", DataTypes.STRING()), ("millis", DataTypes.BIGINT())]
    row = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in fields])
    rows = tables.from_elements([(place, *each) for place, each in enumerate(ROWS)], row)
    times = "CAST(shown AS TIMESTAMP(3)) AS ts, TO_TIMESTAMP_LTZ(millis, 3) AS ltz"
    tables.create_temporary_view("r", tables.sql_query(f"SELECT id, {times} FROM {rows}"))
    answers: dict[str, list[object]] = {}
    for condition in CONDITIONS:
        with tables.sql_query(f"SELECT id, {condition} FROM r").execute().collect() as found:
            answers[condition] = [value for _, value in sorted(map(tuple, found))]
    for query in QUERIES:
        with tables.sql_query(query).execute().collect() as found:
            answers[query] = sorted([list(each) for each in found], key=str)
    text = ",\n".join(f"  {json.dumps(asked)}: {json.dumps(answer)}" for asked, answer in answers.items())
    RECORDED.write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
