"""Asks Flink for TRY_CAST of texts to days and times, and writes what came of each to times_of_text.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The texts are
those that the file has.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "times_of_text.json"


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.local-time-zone", "UTC")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for target, texts in recorded.items():
        row = DataTypes.ROW([DataTypes.FIELD("i", DataTypes.INT()), DataTypes.FIELD("x", DataTypes.STRING())])
        rows = tables.from_elements(list(enumerate(texts)), row)
        query = f"SELECT i, CAST(TRY_CAST(x AS {target}) AS STRING) FROM {rows}"
        with tables.sql_query(query).execute().collect() as found:
            values = {row[0]: row[1] for row in found}
        recorded[target] = {text: values[i] for i, text in enumerate(texts)}
    RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
