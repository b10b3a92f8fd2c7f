"""Asks Flink for RAND and RAND_INTEGER with seeds, and writes the values of six rows to random.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The calls are
those that the file has. The rows are read from a file, since Flink computes calls over constants once for all rows.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

RECORDED = Path(__file__).parent / "random.json"


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    calls = [name for name in recorded if name != "i"]
    with tempfile.TemporaryDirectory() as place:
        lines = (json.dumps({"i": i}) for i in recorded["i"])
        Path(place, "f.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
        files = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{place}'"
        tables.execute_sql(f"CREATE TABLE f (i INT) WITH ({files})")
        with tables.sql_query(f"SELECT i, {', '.join(calls)} FROM f").execute().collect() as found:
            rows = sorted(tuple(row) for row in found)
    columns = dict(zip(["i", *calls], map(list, zip(*rows, strict=True)), strict=True))
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(values)}" for name, values in columns.items())
    RECORDED.write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
