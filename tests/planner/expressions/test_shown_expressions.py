"""What is shown for the expressions of a plan is the SQL of an author: it compiles to the same plan.

The expressions are those that Flink was asked for. Some are shown with a part in Spark's words, which are listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.expressions.names import refused_function
from hintplan.plans.expressions.nodes import read_expression
from hintplan.plans.expressions.shown import operand_of_and, shown_expression
from hintplan.plans.operators import Calc
from tests.flink.function_values import TABLES
from tests.planner import forms
from tests.planner.expressions.one_expression import ROW
from tests.sample import sampled

FLINK = Path(__file__).parent.parent.parent / "flink"
PARTS = 6
Case = tuple[str, str, str]
"""What is declared, the expression, and what the plan says."""

PLAIN = (
    ("ts > TIMESTAMP_NTZ '2024-01-01 00:00:00'", "ts > TIMESTAMP '2024-01-01 00:00:00'"),
    ("lz > TIMESTAMP '2024-01-01 00:00:00'", "lz > '2024-01-01 00:00:00'"),
    ("CAST(x AS TIMESTAMP_NTZ)", "CAST(x AS TIMESTAMP)"),
    ("CAST(x AS STRUCT<a BINARY, `timestamp` TIMESTAMP>)", "CAST(x AS ROW<a BYTES, `timestamp` TIMESTAMP_LTZ>)"),
    ("i div 2 * (3 - j)", "i / 2 * (3 - j)"),
    ("a <=> b", "a IS NOT DISTINCT FROM b"),
    ("NOT (a <=> b)", "a IS DISTINCT FROM b"),
    (r"name = 'it\'s'", "name = 'it''s'"),
    ("a OR b AND NOT c", "a OR b AND NOT c"),
    ("(a OR b) AND c", "(a OR b) AND c"),
    ("CASE WHEN a = 0 THEN CAST(NULL AS INT) ELSE a END", "NULLIF(a, 0)"),
    ("CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE greatest(a, b, 3) END", "GREATEST(a, b, 3)"),
    ("hp_json_value(raw, '$.a.b')", "JSON_VALUE(raw, '$.a.b')"),
    ("coalesce(`order`, 'n/a')", "coalesce(`order`, 'n/a')"),
    ("x IN (1, 2) AND NOT y BETWEEN 1 AND 2", "x IN (1, 2) AND NOT y BETWEEN 1 AND 2"),
    ("r.`a b`.c[1]", "r.`a b`.c[1]"),
)


@pytest.mark.parametrize(("spark", "flink"), PLAIN)
def test_expressions_are_shown_in_flinks_words(spark: str, flink: str) -> None:
    assert shown_expression(spark) == flink


def test_text_that_is_not_understood_is_shown_as_the_plan_has_it() -> None:
    for text in ("a IN (SELECT 1)", "a ->> b", "", "(a", "x'zz'", "a = 'open", "f(a DESC)"):
        assert shown_expression(text) == text
    deep = "(" * 5000 + "a" + ")" * 5000
    assert shown_expression(deep) == deep


def test_a_long_chain_is_shown_whole() -> None:
    text = " AND ".join(f"a{n} <=> {n}" for n in range(5000))
    assert shown_expression(text) == text.replace("<=>", "IS NOT DISTINCT FROM")
    added = " + ".join(f"a{n}" for n in range(5000))
    assert shown_expression(added) == added


def test_sides_of_a_join_are_named() -> None:
    sides = {"l": "o", "r": "c"}
    assert shown_expression("l.total > r.`limit` AND f(l) = 1", sides) == "o.total > c.`limit` AND f(l) = 1"
    assert operand_of_and("l.a = 1 OR r.b = 2", sides) == "(o.a = 1 OR c.b = 2)"
    assert operand_of_and("l.a = 1 AND r.b = 2", sides) == "o.a = 1 AND c.b = 2"


def compiled(declared: str, expression: str) -> str | None:
    """What the plan says for ``expression``; None for what does not compile to one."""
    script = f"{declared} CREATE TABLE s WITH ('connector' = 'print') AS SELECT {expression} AS shown FROM t;"
    try:
        plan = compile_script(script).plan
    except SqlError:
        return None
    items = [item for each in plan.operators if isinstance(each, Calc) for item in each.select]
    return items[0].expression if len(items) == 1 else None


def table(columns: Mapping[str, str]) -> str:
    listed = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    return f"CREATE TABLE t ({listed}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"


NESTED = table(
    {
        "i": "INT", "n": "INT", "b": "BIGINT", "d": "DOUBLE", "s": "STRING", "u": "STRING", "o": "BOOLEAN",
        "ai": "ARRAY<INT>", "an": "ARRAY<INT>", "ae": "ARRAY<INT>", "au": "ARRAY<INT>", "ast": "ARRAY<STRING>",
        "asn": "ARRAY<STRING>", "aa": "ARRAY<ARRAY<INT>>", "mp": "MAP<STRING, INT>", "mu": "MAP<STRING, INT>",
        "r": "ROW<a INT, b STRING, c ROW<d DOUBLE>>", "rn": "ROW<a INT, b STRING>", "ru": "ROW<a INT, b STRING>",
        "ar": "ARRAY<ROW<a INT, b STRING>>",
    }
)  # fmt: skip


def asked() -> Iterator[tuple[str, str]]:
    """The expressions that Flink was asked for, each behind the table it reads."""
    declared = ""
    for line in (FLINK / "functions_of_rows.txt").read_text(encoding="utf-8").splitlines():
        if line[1:-1] in TABLES and line.startswith("["):
            declared = table(TABLES[line[1:-1]][0])
        elif line and not line.startswith("#"):
            yield declared, line
    for file, columns in (
        ("functions.txt", table({name: kind for name, (kind, _) in ROW.items()})),
        ("nested.txt", NESTED),
    ):
        for line in (FLINK / file).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                yield columns, line


@cache
def cases(part: int) -> tuple[Case, ...]:
    found = ((declared, sql, compiled(declared, sql)) for declared, sql in list(asked())[part::PARTS])
    return tuple((declared, sql, text) for declared, sql, text in found if text is not None)


IN_PART = re.compile(
    r"DATE_FORMAT\(|CONVERT_TZ\(|SPLIT|STR_TO_MAP"  # patterns, zones and separators of all kinds
    r"|JSON_(STRING|OBJECT|ARRAY)\(|ROW|ARRAY_SLICE|an\[CARDINALITY"  # values in values, numbers that are computed
    r"|\b[swgk] ?(<|>|=|IN|BETWEEN)|[<>] [sw]\b|\(w,"  # numbers and times beside texts, which CAST reads otherwise
    r"|TO_(DATE|TIMESTAMP)\(('[^',]*'|\w)\)"  # TRY_CAST, which would, too
    r"|(COALESCE|IFNULL|GREATEST)\(.*(lz|ts)|CAST\(CAST\((ts|lz)|TO MILLISECOND"  # times of a precision of their own
    r"|TRUNCATE\(q|CAST\(p \*|REGEXP_REPLACE\(s, '\(l\)'"  # types and patterns without end
    r"|ARRAY_(CONCAT|REVERSE|REMOVE\(asn|SORT\(an)"  # Spark calls them as a function of texts, or several alike
)
"""Expressions that are shown with casts that nobody wrote, or in part as the compiler has written them."""


@pytest.mark.parametrize("part", sampled(range(PARTS), keep=1))
def test_what_is_shown_compiles_to_the_same_plan(part: int) -> None:
    assert len(cases(part)) > 150
    assert [text for _, _, text in cases(part) if read_expression(text) is None] == []
    refused = {refused_function(text) for _, _, text in cases(part)} - {None}
    assert refused == set(), f"add {refused} to plans/declarations/functions.py, or a run refuses what is compiled"
    shown = [(declared, sql, text, shown_expression(text)) for declared, sql, text in cases(part)]
    other = [(sql, text, flink) for declared, sql, text, flink in shown if compiled(declared, flink) != text]
    assert [(sql, text, flink) for sql, text, flink in other if not IN_PART.search(sql)] == []
    assert len(other) < len(shown) / 6
    assert [flink for *_, flink in shown if "hp_" in flink] == []


def test_the_forms_are_those_that_the_compiler_makes() -> None:
    assert forms.FILE.read_text(encoding="utf-8") == forms.forms_file_text(), "run python -m tests.planner.forms"


def test_every_form_is_read_back_as_what_it_stands_for() -> None:
    by_root = json.loads(forms.FILE.read_text(encoding="utf-8"))
    for flink, texts in (pair for each in by_root.values() for pair in each.items()):
        for text in texts if "XXX" not in texts[0] else ():  # a pattern has a place within a text
            assert shown_expression(text) == flink, text
