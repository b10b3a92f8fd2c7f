"""Declarations mean what Flink says they mean: columns, keys, watermarks and options of tables, and what is refused.

Where the two differ on purpose, the case is in a list here, with what we say, or with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hintplan.planner.context import TableEntry
from hintplan.planner.query.queries import build_view
from hintplan.planner.session import CompileSession
from hintplan.planner.statements.model import CreateTable
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import SqlError
from tests.flink.ddl import BEFORE, DDL

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "ddl.json").read_text(encoding="utf-8"))

REFUSED_HERE: dict[str, tuple[str, ...]] = {
    "CREATE DATABASE is not supported": ("create database",),
    "CREATE CATALOG is not supported": ("create catalog", "create default catalog"),
    "DROP DATABASE is not supported": ("drop database",),
    "DROP CATALOG is not supported": ("drop catalog",),
    "DISTRIBUTED is not supported": ("distributed", "distributed into"),
    # Flink finds out when the table is used.
    "connector has no option": ("like with", "like own partition", "alter: SET ('connector' = 'print')"),
    "connector has no PARTITIONED BY": ("partitioned", "as partitioned"),
    "the print connector has no METADATA": ("as metadata",),
    "has no physical column": ("computed only", "metadata only", "alter drop last"),
    "list the table's columns": ("no column list",),
    "cannot stand in a computed column": ("computed aggregate",),
    "which differs only in case": ("columns case",),
    "is given twice": ("option twice",),
    "is declared twice": ("temporary beside", "temporary dropped"),
    "takes no IF NOT EXISTS": ("view or replace if not exists",),
    "is temporary": ("view or replace other",),
    "CREATE OR REPLACE is supported for views only": ("replace as",),
}
TAKEN_HERE = {
    "as not null": "the case has a word that Flink reserves",
    "as key": "the primary key of a table has no NULLs, whoever fills it",
    "view or replace": "Flink 2.3 takes OR REPLACE, and refuses to replace",
    "view or replace temporary": "Flink 2.3 takes OR REPLACE, and refuses to replace",
    "watermark precision": "no row waits for a watermark",
    "alter: RENAME TO u": "there is no table t to describe then, which is what Flink complains of",
}
"""What Flink refuses and we take, with the reason."""
OTHER_COLUMNS = {
    "computed": "a literal is CHAR(n) in Flink, and STRING here",
    "as char": "a literal is CHAR(n) in Flink, and STRING here",
    "view unnamed": "a column of a view that has no name cannot be named, in Flink neither",
}
"""What is another type or name here, with the reason."""


def _run(script: str) -> tuple[CompileSession, SqlError | None]:
    """The session after ``script``, and why a statement of it was refused."""
    session = CompileSession.open()
    for unit in session.feed(f"{BEFORE};"):
        session.apply(session.read(unit))
    for unit in session.feed(script + ";"):
        try:
            with session.attempt(unit):
                statement = session.read(unit)
                if isinstance(statement, CreateTable) and statement.query:
                    session.job().insert(session.create_and_fill(statement))
                else:
                    assert not isinstance(statement, CreateTable) or not statement.query
                    session.apply(statement)
            session.source.raise_problems()
        except SqlError as error:
            return session, error
    return session, None


def _columns(session: CompileSession) -> list[tuple[str, str, bool, str | None, str | None]]:
    """Name, type, key, and comment of the columns of ``t``, and whether a watermark goes by it."""
    if "t" in session.context.catalog.views:
        fields = build_view(session.context, session.context.catalog.views["t"]).fields
        return [(f.name, str(f.type.as_nullable()), False, None, None) for f in fields]
    entry: TableEntry = session.context.catalog.tables["t"]
    table = entry.table
    time = table.watermark.column if table.watermark is not None else None
    return [
        (
            column.name,
            str(parse_type(column.type).as_nullable()),
            column.name in table.primary_key,
            _kind(column) or ("rowtime" if column.name == time else None),
            column.comment,
        )
        for column in table.columns
    ]


def _kind(column: TableColumn) -> str | None:
    """What a column is that is not physical, as Flink describes METADATA columns."""
    if column.metadata is None:
        return None if column.expression is None else "computed"
    key = "" if column.metadata == column.name else f" FROM '{column.metadata}'"
    return f"METADATA{key}{' VIRTUAL' * column.virtual}"


def _recorded_columns(rows: list[list[str | None]]) -> list[tuple[str, str, bool, str | None, str | None]]:
    found = []
    for name, kind, _, key, extras, watermark, *comment in rows:
        beside = extras if (extras or "").startswith("METADATA") else None
        what = beside or ("computed" if extras is not None else "rowtime" if watermark is not None else None)
        plain = str(kind).removesuffix(" *ROWTIME*").removesuffix(" *PROCTIME*")
        shown = str(parse_type(plain).as_nullable())  # Flink quotes all names of fields
        found.append((str(name), shown, key is not None, what, comment[0] if comment else None))
    return found


def _refusal(name: str) -> str | None:
    return next((message for message, names in REFUSED_HERE.items() if name in names), None)


@pytest.mark.parametrize("name", DDL)
def test_declarations_are_those_of_flink(name: str) -> None:
    session, error = _run(DDL[name])
    recorded = RECORDED[name]
    if (refusal := _refusal(name)) is not None:
        assert refusal in str(error)
    elif "why" in recorded and name not in TAKEN_HERE:
        assert error is not None, recorded["why"]
        assert error.diagnostics[0].line is not None
        assert error.diagnostics[0].hint
    else:
        assert error is None
        if "why" not in recorded:
            assert (_columns(session) == _recorded_columns(recorded["columns"])) == (name not in OTHER_COLUMNS)
            if "t" in session.context.catalog.tables:
                table = session.context.catalog.tables["t"].table
                connector = CONNECTORS.get(table.options.get("connector", ""))
                left_out = [k for k in recorded["options"] if connector is not None and connector.why_idle(k)]
                assert dict(table.options) == {k: v for k, v in recorded["options"].items() if k not in left_out}
                assert list(table.partitioned_by) == recorded["partitioned by"]
                assert (table.comment or "") == recorded["comment"]


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(DDL)
    listed = {name for names in REFUSED_HERE.values() for name in names} | {*TAKEN_HERE, *OTHER_COLUMNS}
    assert listed <= set(DDL)
