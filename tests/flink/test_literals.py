"""Literals of days and times are what Flink has recorded in literals.json, or are refused, as it refuses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.operators import Calc

RECORDED: dict[str, str | None] = json.loads(Path(__file__).with_name("literals.json").read_text(encoding="utf-8"))
FINER = [text for text, value in RECORDED.items() if value is not None and len(value.partition(".")[2]) > 6]
"""Times with more digits of a second than there are here."""
REFUSED_HERE = (
    # Years of other than four digits, and months and days of more than two, as in casts.
    *("DATE '2001-004-01'", "DATE '01-04-01'"),
    *FINER,
)
TAKEN_HERE = {
    "DATE ' 2001-04-01 '": "2001-04-01",
    "TIMESTAMP ' 2001-02-28 10:00:00 '": "2001-02-28 10:00:00",
    "TIMESTAMP '2001-04-01T10:00:00'": "2001-04-01 10:00:00",
}


def compiled(literal: str) -> str | Diagnostic:
    """The text of the literal in a plan, or its refusal."""
    kind = "DATE" if literal.startswith("DATE") else "TIMESTAMP(6)"
    try:
        plan = compile_sql(
            "CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
            f"CREATE TABLE s (r {kind}) WITH ('connector' = 'print'); INSERT INTO s SELECT {literal} FROM t;"
        )
    except SqlError as error:
        return error.diagnostics[0]
    ((item,),) = (o.select for o in plan.operators if isinstance(o, Calc))
    assert item.expression is not None
    return item.expression.split("'")[1]


@pytest.mark.parametrize("literal", RECORDED)
def test_a_literal_is_what_it_is_in_flink(literal: str) -> None:
    found, expected = compiled(literal), TAKEN_HERE.get(literal, RECORDED[literal])
    if expected is None or literal in REFUSED_HERE:
        assert isinstance(found, Diagnostic)
        assert found.hint
        assert found.line
    else:
        assert found == expected


@pytest.mark.parametrize("literal", FINER)
def test_the_limit_of_a_literal_is_told(literal: str) -> None:
    found = compiled(literal)
    assert isinstance(found, Diagnostic)
    assert "at most 6 digits of a second" in found.message
    assert found.hint == f"write '.123456' for '{literal[literal.index('.') : -1]}'"
