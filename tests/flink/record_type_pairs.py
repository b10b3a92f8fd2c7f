"""Asks Flink what becomes of each pair of types in type_pairs.py, and writes it to type_pairs.json; null is a refusal.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. Nothing is run:
a query has a type, and an INSERT is explained.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException
from type_pairs import COLUMNS, INSERT, QUERIES, TYPES

RECORDED = Path(__file__).parent / "type_pairs.json"


def environment() -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = '/tmp/type_pairs'"
    tables.execute_sql(f"CREATE TABLE o ({COLUMNS}) WITH ({files})")
    for place, kind in enumerate(TYPES):
        tables.execute_sql(f"CREATE TABLE r{place} (x {kind}) WITH ('connector' = 'blackhole')")
    return tables


def type_of(tables: TableEnvironment, query: str) -> str | None:
    try:
        schema = tables.sql_query(query)._j_table.getResolvedSchema()
        return str(schema.getColumns().get(0).getDataType().getLogicalType().copy(True).asSerializableString())
    except (Py4JJavaError, TableException) as error:
        return refused(error)


def inserted(tables: TableEnvironment, one: int, other: int) -> bool | None:
    try:
        tables.explain_sql(f"INSERT INTO r{other} SELECT c{one} FROM o")
    except (Py4JJavaError, TableException) as error:
        return refused(error)
    return True


def refused(error: Exception) -> None:
    """None; the error again if it is none of types."""
    if "ValidationException" not in str(error) and "CodeGenException" not in str(error):
        raise error


if __name__ == "__main__":
    asked = environment()
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*QUERIES, INSERT)}
    for one, kind in enumerate(TYPES):
        for name, query in QUERIES.items():
            answers = (type_of(asked, query.format(one=one, other=other)) for other in range(len(TYPES)))
            found[name][kind] = dict(zip(TYPES, answers))  # noqa: B905
        found[INSERT][kind] = {other: inserted(asked, one, place) for place, other in enumerate(TYPES)}
        print(kind, flush=True)
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
