"""What a source is asked for: simple conditions that no database can take for more than they are, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Scan

URLS = ("jdbc:postgresql://db/shop", "jdbc:mysql://db/shop", "jdbc:mariadb://db/shop")
COLUMNS = {
    "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "n": "DECIMAL(10, 2)", "f4": "FLOAT",
    "f8": "DOUBLE", "s": "STRING", "v": "VARCHAR(9)", "c": "CHAR(3)", "b": "BOOLEAN", "y": "BYTES", "d": "DATE",
    "t": "TIMESTAMP(6)", "z": "TIMESTAMP_LTZ(6)", "a": "ARRAY<INT>", "r": "ROW<x INT>",
}  # fmt: skip


def compiled(condition: str, url: str = URLS[0], *, mode: str = "batch", select: str = "i4") -> Plan:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}';"
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 't');"
        "CREATE TABLE o (i4 BIGINT) WITH ('connector' = 'print');"
        f"INSERT INTO o SELECT {select} FROM t WHERE {condition};",
        name="job",
    )


def asked(condition: str, url: str = URLS[0]) -> str | None:
    (scan,) = (each for each in compiled(condition, url).operators if isinstance(each, Scan))
    return scan.filter


LITERALS = {
    **dict.fromkeys(("i1", "i2", "i4", "i8", "n", "f8"), ("1", "2")),
    **dict.fromkeys(("s", "v"), ("'x'", "'y'")),
    "d": ("DATE '2024-02-29'", "DATE '2024-03-01'"),
    "t": ("TIMESTAMP_NTZ '2024-02-29 00:00:00.5'", "TIMESTAMP_NTZ '2024-03-01 00:00:00'"),
}
ORDERED = ("i1", "i2", "i4", "i8", "n", "f8", "d", "t")


@pytest.mark.parametrize("column", COLUMNS)
def test_every_type_with_every_comparison(column: str) -> None:
    nested = column in ("a", "r")
    for condition in (f"{column} IS NULL", f"{column} IS NOT NULL"):
        assert asked(condition) == (None if nested else condition)
    if nested or column in ("y",):
        return
    low, high = LITERALS.get(column, ("1", "2") if column == "f4" else ("'x'", "'y'"))
    if column == "b":
        low, high = "TRUE", "FALSE"
    if column == "z":
        low, high = ("CAST('2024-02-29 00:00:00' AS TIMESTAMP_LTZ(3))",) * 2
    written_low, written_high = (text.replace("TIMESTAMP_NTZ", "TIMESTAMP") for text in (low, high))
    for comparison in ("=", "<>", "<", "<=", ">", ">="):
        if column == "b" and comparison not in ("=", "<>"):
            continue
        takes = column in ORDERED or (column in ("s", "v") and comparison == "=")
        assert asked(f"{column} {comparison} {written_low}") == (f"{column} {comparison} {low}" if takes else None)
    takes_in = column in ORDERED or column in ("s", "v")
    assert asked(f"{column} IN ({written_low}, {written_high})") == (
        f"{column} IN ({low}, {high})" if takes_in else None
    )
    if column not in ("b",):
        takes_between = column in ORDERED
        assert asked(f"{column} BETWEEN {written_low} AND {written_high}") == (
            f"{column} BETWEEN {low} AND {high}" if takes_between else None
        )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i4 > 1 AND s <> 'x'", "i4 > 1"),
        ("i4 > 1 OR s <> 'x'", None),
        ("i4 > 1 OR s = 'x'", "i4 > 1 OR s = 'x'"),
        ("(i4 > 1 AND s <> 'x') OR (i8 = 2 AND d IS NULL)", "i4 > 1 OR i8 = 2 AND d IS NULL"),
        ("(i4 > 1 OR i8 = 2) AND (b OR d IS NULL)", "i4 > 1 OR i8 = 2"),
        ("NOT i4 = 1", None),
        ("i4 NOT IN (1, 2)", None),
        ("5 < i4", "5 < i4"),
        ("i4 > -5", "i4 > -5"),
        ("i4 IN (-1, 1.5)", "i4 IN (-1, 1.5)"),
        ("i4 = i8", None),
        ("i4 + 1 > 2", None),
        ("i4 > 1.5", "i4 > 1.5"),
        ("i4 > 1E0", None),
        ("f8 < 1E0", "f8 < 1E0"),
        ("s = 'it''s'", "s = 'it\\'s'"),
        ("s = '${HOME}'", None),
        ("UPPER(s) = 'X'", None),
        ("s LIKE 'x%'", None),
        ("i4 = NULLIF(1, 2)", None),
        ("d < '2024-01-01'", "d < DATE '2024-01-01'"),
        ("d < TIMESTAMP '2024-01-01 00:00:00'", None),
    ],
)
def test_what_is_asked_instead_of_a_condition(condition: str, expected: str | None) -> None:
    for url in URLS:
        assert asked(condition, url) == expected


def test_the_calc_keeps_the_whole_condition() -> None:
    plan = compiled("i4 > 1 AND s <> 'x'")
    (calc,) = (each for each in plan.operators if isinstance(each, Calc))
    assert calc.filter == "i4 > 1 AND s <> 'x'"


def test_sqlite_is_not_asked() -> None:
    plan = compile_sql(
        "CREATE TABLE t (i4 INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:t.db', 'table-name' = 't');"
        "CREATE TABLE o (i4 INT) WITH ('connector' = 'print');"
        "INSERT INTO o SELECT i4 FROM t WHERE i4 > 1;",
        name="job",
    )
    assert [each.filter for each in plan.operators if isinstance(each, Scan)] == [None]


def test_a_state_above_goes_on_whatever_is_asked_of_the_source() -> None:
    plan = compiled("i4 > 1", mode="streaming", select="COUNT(*)")
    (scan,) = (each for each in plan.operators if isinstance(each, Scan))
    assert scan.filter == "i4 > 1"
    before = replace(plan, operators=tuple(replace(e, filter=None) if e is scan else e for e in plan.operators))
    assert state_lineages(plan) == state_lineages(before)


def test_a_filter_that_nobody_repeats_or_nobody_can_be_asked_is_refused() -> None:
    plan = compiled("i4 > 1")
    assert not list(plan_problems(plan))
    unfiltered = tuple(replace(e, filter=None) if isinstance(e, Calc) else e for e in plan.operators)
    (found,) = plan_problems(replace(plan, operators=unfiltered))
    assert found.path == "operators.scan_t.filter"
    assert found.message == "'scan_t' has a filter, and 'calc_t' does not filter them"
    columns = tuple(column for column in plan.tables["t"].columns if column.name not in ("a", "r"))
    options = {**plan.tables["t"].options, "url": "jdbc:sqlite:shop.db"}
    in_file = replace(plan.tables["t"], columns=columns, options=options)
    (found,) = plan_problems(replace(plan, tables={**plan.tables, "t": in_file}))
    assert found.path == "operators.scan_t.filter"
    assert found.message == "the source of table 't' cannot evaluate a filter"
