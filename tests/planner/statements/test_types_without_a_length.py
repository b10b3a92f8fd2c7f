"""VARCHAR and VARBINARY without a length are STRING and BYTES wherever a type stands, as in Flink's SQL.

Flink's answers for tables, views and casts are in ``tests/flink``; here are the places that only hintplan has, and the
words in which a type is shown.
"""

from __future__ import annotations

import pytest

from hintplan.planner.execute_statement import execute_statement
from hintplan.planner.session import CompileSession
from hintplan.planner.user_functions import read_declaration
from hintplan.plans.client import actions
from hintplan.plans.declarations.types import parse_type
from tests.planner.declared import Plain

TABLE = (
    "CREATE TABLE t (a VARCHAR NOT NULL, b VARBINARY, c CHAR, d BINARY, e MAP<VARCHAR, ROW<x VARBINARY>>) "
    "WITH ('connector' = 'print');"
)


class Named(Plain):
    function_kind, arguments, result = "scalar", ("VARCHAR", "ARRAY<VARBINARY>"), "ROW<a VARCHAR, b CHAR>"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("VARCHAR", "STRING"),
        ("varchar not null", "STRING NOT NULL"),
        ("CHARACTER VARYING", "STRING"),
        ("CHAR VARYING", "STRING"),
        ("VARBINARY", "BYTES"),
        ("BINARY VARYING NULL", "BYTES"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARCHAR(1)", "VARCHAR(1)"),
        ("CHARACTER VARYING(20)", "VARCHAR(20)"),
        ("BINARY VARYING(2)", "VARBINARY(2)"),
        ("CHARACTER(2)", "CHAR(2)"),
        ("CHAR", "CHAR(1)"),
        ("CHARACTER", "CHAR(1)"),
        ("BINARY", "BINARY(1)"),
        ("MULTISET<VARCHAR>", "MULTISET<STRING>"),
        ("VARCHAR ARRAY NOT NULL", "ARRAY<STRING> NOT NULL"),
        ("ROW<varying VARCHAR, character VARBINARY(3)>", "ROW<varying STRING, character VARBINARY(3)>"),
    ],
)
def test_a_type_is_read_as_flink_reads_it(written: str, meant: str) -> None:
    assert str(parse_type(written)) == meant


@pytest.mark.parametrize(
    ("written", "refusal"),
    [
        ("STRING VARYING", "unexpected 'VARYING'"),
        ("VARCHAR VARYING", "unexpected 'VARYING'"),
        ("CHAR VARYING(0)", "VARCHAR needs one length"),
        ("VARCHAR()", "expected a number"),
    ],
)
def test_what_is_no_type_is_refused(written: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        parse_type(written)


def test_tables_are_shown_with_the_type_that_they_have() -> None:
    session = CompileSession.open()
    units = session.feed(f"{TABLE} DESCRIBE t; SHOW CREATE TABLE t;")
    _, described, shown = [execute_statement(session, unit).action for unit in units]
    assert isinstance(described, actions.ShowRows)
    assert [row[1] for row in described.rows] == [
        *("STRING", "BYTES", "CHAR(1)", "BINARY(1)", "MAP<STRING, ROW<x BYTES>>"),
    ]
    assert isinstance(shown, actions.ShowText)
    assert shown.text.splitlines()[1:6] == [
        "  `a` STRING NOT NULL,",
        "  `b` BYTES,",
        "  `c` CHAR(1),",
        "  `d` BINARY(1),",
        "  `e` MAP<STRING, ROW<x BYTES>>",
    ]


def test_a_function_may_declare_them() -> None:
    function = read_declaration(Named, "declared.Named")
    assert function.arguments == ("STRING", "ARRAY<BYTES>")
    assert [column.type for column in function.output] == ["ROW<a STRING, b CHAR(1)>"]
