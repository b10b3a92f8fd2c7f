"""Runs the queries of arrivals.py on Flink, a row a second, and writes what their changelogs leave to arrivals.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from arrivals import AS_VALUE, COMPUTED, COUNT, QUERIES
from record_programs import environment, result

RECORDED = Path(__file__).parent / "arrivals.json"
IDS = f"'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{COUNT}'"


def main() -> None:
    _, tables = environment()
    options = f"'connector' = 'datagen', 'rows-per-second' = '1', {IDS}"
    tables.execute_sql(f"CREATE TEMPORARY TABLE s (id BIGINT, {COMPUTED}) WITH ({options})")
    answers = {}
    for name, (_, query) in QUERIES.items():
        by_value = query.replace("pt", "arrived").replace("FROM s", f"FROM (SELECT *, {AS_VALUE} FROM s)")
        answers[name] = {"pt": result(tables, query), "arrived": result(tables, by_value)}
        print(f"{len(answers)} of {len(QUERIES)} queries: {name}", file=sys.stderr)
    text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in answers.items())
    RECORDED.write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
