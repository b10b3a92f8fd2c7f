"""Each kind of statement has openings for completion, and the parser reads what begins with them as this kind."""

from __future__ import annotations

from typing import get_args

import pytest

from hintplan.planner.statements.model import (
    AddJar,
    AlterTable,
    AlterView,
    CacheTable,
    CompilePlan,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    ExecutePlan,
    Explain,
    Insert,
    ResetOption,
    Select,
    SetOption,
    Show,
    Statement,
    StatementSet,
    StopJobStatement,
    UncacheTable,
    UseDefault,
)
from hintplan.planner.statements.openings import OPENINGS
from hintplan.planner.statements.script import _KNOWN, read_statement
from hintplan.planner.syntax.dialect import tokenize
from hintplan.planner.syntax.source import Source
from hintplan.planner.syntax.units import next_unit

REST = {
    SetOption: "'pipeline.name' = 'x'",
    ResetOption: " 'pipeline.name'",
    CreateTable: "t (a INT) WITH ('connector' = 'print')",
    CreateView: "v AS SELECT 1",
    AlterTable: "t RENAME TO u",
    AlterView: "v AS SELECT 1",
    CreateFunction: "f AS 'm.C' LANGUAGE PYTHON",
    Drop: "t",
    CacheTable: "t",
    UncacheTable: "t",
    UseDefault: "default_catalog",
    AddJar: "x.jar'",
    Insert: "s SELECT 1",
    StatementSet: " INSERT INTO s SELECT 1; END",
    Select: "1",
    Show: "",
    Describe: "t",
    Explain: "SELECT 1",
    CompilePlan: "p.json' FOR INSERT INTO s SELECT 1",
    ExecutePlan: "p.json'",
    StopJobStatement: "j'",
}
# The rest where it differs from the rest of other openings of the kind.
ITS_REST = {
    "USE ": "default_database",
    "WITH ": "c AS (SELECT 1) SELECT * FROM c",
    "SHOW CREATE TABLE ": "t",
    "SHOW CREATE VIEW ": "v",
    "EXPLAIN PLAN FOR ": "SELECT 1",
}


def test_every_kind_of_statement_has_openings() -> None:
    assert set(OPENINGS) == set(get_args(Statement))
    assert all(OPENINGS.values())
    words = {opening.split()[0] for openings in OPENINGS.values() for opening in openings}
    assert set(_KNOWN) <= words


@pytest.mark.parametrize(
    ("kind", "opening"), [(kind, opening) for kind, openings in OPENINGS.items() for opening in openings]
)
def test_the_parser_reads_each_opening_as_its_kind(kind: type[Statement], opening: str) -> None:
    source = Source(text=f"{opening}{ITS_REST.get(opening, REST[kind])};")
    unit = next_unit(source, 0)
    assert unit is not None
    assert unit.end == len(source.text)
    pieces = [tokenize(source.text[start:end], start) for start, end in unit.pieces]
    assert type(read_statement(source, source.text, pieces)) is kind
