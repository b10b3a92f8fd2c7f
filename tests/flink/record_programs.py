"""Runs the programs of programs/ on Flink, and writes what is left of their changelogs to programs.json.

For programs with hints also the states of Flink's compiled plan, with ``table.exec.state.ttl`` set. Runs in an
environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``; with ``--missing`` it asks
only for programs that have no answer yet.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from programs import (
    CONFIGURED_TTL,
    DOCUMENTS,
    HINTED,
    NULL_FOR_MINUS_ONE,
    NULL_FOR_ZERO,
    PROGRAMS,
    TABLES,
    UPSERTED,
    WATERMARKED,
    WITHOUT_ROW_OF_NONE,
)
from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import Schema, StreamTableEnvironment
from pyflink.table.changelog_mode import ChangelogMode
from values import plain, typed

RECORDED = Path(__file__).parent / "programs.json"
KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
TYPES = {
    "BIGINT": Types.LONG(),
    "INT": Types.INT(),
    "SMALLINT": Types.SHORT(),
    "TINYINT": Types.BYTE(),
    "STRING": Types.STRING(),
    "DOUBLE": Types.DOUBLE(),
}


def environment() -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    streams = StreamExecutionEnvironment.get_execution_environment()
    streams.set_parallelism(1)
    tables = StreamTableEnvironment.create(streams)
    tables.get_config().set("table.local-time-zone", "UTC")
    return streams, tables


def with_rows() -> StreamTableEnvironment:
    """An environment in which the tables of the programs have their rows."""
    streams, tables = environment()
    for name, (columns, rows) in TABLES.items():
        # Python has no type of Flink's for TIMESTAMP: it is computed from text in a column of another name.
        given = {f"{c}_text" if t.startswith("TIMESTAMP") else c: t for c, t in columns.items()}
        times = [text.startswith("TIMESTAMP") for text in columns.values()]
        items = [
            Row.of_kind(KINDS[kind], *(v if time else typed(v, t) for v, t, time in zip(row, columns.values(), times)))  # noqa: B905
            for kind, *row in rows
        ]
        types = [TYPES["STRING"] if time else TYPES.get(t, Types.BIG_DEC()) for t, time in zip(given.values(), times)]  # noqa: B905
        stream = streams.from_collection(items, type_info=Types.ROW_NAMED(list(given), types))
        schema = Schema.new_builder()
        key = UPSERTED.get(name, ())
        for (column, declared), time in zip(given.items(), times):  # noqa: B905
            schema = schema.column(column, "STRING" if time else declared + (" NOT NULL" if column in key else ""))
        if key:
            schema = schema.primary_key(*key)
        if name in WATERMARKED:
            time = WATERMARKED[name]
            schema = schema.column_by_expression(time, f"CAST({time}_text AS {columns[time]})")
            schema = schema.watermark(time, f"{time} - INTERVAL '1' DAY")
        mode = ChangelogMode.upsert() if key else ChangelogMode.all()
        if name in WATERMARKED:
            mode = ChangelogMode.insert_only()
        tables.create_temporary_view(name, tables.from_changelog_stream(stream, schema.build(), mode))
    return tables


def result(tables: StreamTableEnvironment, query: str) -> list[list[Any]]:
    """The rows that are left of the query's changelog, sorted."""
    left: Counter[str] = Counter()
    with tables.execute_sql(query).collect() as changes:
        for row in changes:
            sign = 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
            left[json.dumps([plain(v) for v in row])] += sign
    return [json.loads(row) for row in sorted((+left).elements())]


def with_arrays_as_text(columns: str, query: str) -> str:
    """The query with arrays as text, for Python is not told of a NULL in an array."""
    named = [column.split(" ", 1) for column in columns.split(", ") if " " in column]
    if not any(declared.startswith("ARRAY") for _, declared in named):
        return query
    items = (f"CAST({n} AS STRING)" if declared.startswith("ARRAY") else n for n, declared in named)
    return f"SELECT {', '.join(items)} FROM ({query}) AS shown ({', '.join(n for n, _ in named)})"


def states(columns: str, query: str) -> list[dict[str, str]]:
    """The TTLs by state of each stateful node of Flink's compiled plan.

    Of Flink's own connectors none reads upserts; a changelog that repeats itself becomes the same nodes.
    """
    _, tables = environment()
    tables.get_config().set("table.exec.source.cdc-events-duplicate", "true")
    tables.get_config().set("table.exec.state.ttl", CONFIGURED_TTL)
    for name, (declared, _) in TABLES.items():
        fields = ", ".join(f"{column} {t}" for column, t in declared.items())
        options = "'connector' = 'datagen'"
        if name in UPSERTED:
            fields += f", PRIMARY KEY ({', '.join(UPSERTED[name])}) NOT ENFORCED"
            options = "'connector' = 'filesystem', 'path' = '/none', 'format' = 'debezium-json'"
        if name in WATERMARKED:
            fields += f", WATERMARK FOR {WATERMARKED[name]} AS {WATERMARKED[name]}"
        tables.execute_sql(f"CREATE TEMPORARY TABLE {name} ({fields}) WITH ({options})")
    tables.execute_sql(f"CREATE TEMPORARY TABLE sink1 ({columns}) WITH ('connector' = 'blackhole')")
    plan = json.loads(tables.compile_plan_sql(f"INSERT INTO sink1 {query}").as_json_string())
    return [{s["name"]: s["ttl"] for s in node["state"]} for node in plan["nodes"] if node.get("state")]


def main() -> None:
    tables = with_rows()
    programs = PROGRAMS | WITHOUT_ROW_OF_NONE | NULL_FOR_MINUS_ONE | NULL_FOR_ZERO | DOCUMENTS | HINTED
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if "--missing" in sys.argv else {}
    answers: dict[str, Any] = {name: answer for name, answer in known.items() if name in programs}
    for name, (columns, query) in programs.items():
        if name in answers:
            continue
        answers[name] = {"rows": result(tables, with_arrays_as_text(columns, query))}
        if name in HINTED:
            answers[name]["states"] = states(columns, query)
        print(f"{len(answers)} of {len(programs)} programs: {name}", file=sys.stderr)
        write({name: answers[name] for name in programs if name in answers})


def write(answers: dict[str, Any]) -> None:
    text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    RECORDED.write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
