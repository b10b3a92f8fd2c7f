"""What a condition of an outer, semi or anti join guards is not computed, and numbers of all types meet as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import RunError, SqlError
from hintplan.plans.operators import Calc, Join
from tests.runtime.pipeline import Pipeline

COLUMNS = "id BIGINT, k BIGINT, g BIGINT, kind STRING, s STRING"
TABLES = f"""
CREATE TABLE a ({COLUMNS}) WITH ('connector'='filesystem', 'path'='a', 'format'='json');
CREATE TABLE b ({COLUMNS}) WITH ('connector'='filesystem', 'path'='b', 'format'='json');
CREATE TABLE o (x BIGINT, y BIGINT) WITH ('connector'='print');
CREATE TABLE one (x BIGINT) WITH ('connector'='print');
"""
A = [(1, 1, 0, "t", "x"), (2, 1, 2, "n", "7"), (3, 1, None, None, None), (4, 1, -3, "n", "-7"), (5, 1, 0, None, "y")]
B = [(1, 1, 4, "n", "5"), (2, 1, 0, "t", "z"), (3, 1, -9, None, "z"), (4, 1, None, "n", None)]
Row = tuple[Any, ...]


def number(text: str | None) -> int:
    """A number behind a guard that only lets numbers through."""
    assert text is not None
    return int(text)


def quotient(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else int(one / other)


def greater(one: int | None, other: int | None) -> bool | None:
    return None if one is None or other is None else one > other


# The condition, and whether it holds of a row of each side, which Python computes no further than it must.
CASES: list[tuple[str, Callable[[Row, Row], bool | None]]] = [
    ("a.g <> 0 AND b.g / a.g > 0", lambda a, b: a[2] and greater(quotient(b[2], a[2]), 0)),
    ("NOT (a.g = 0 OR b.g / a.g <= 0)", lambda a, b: a[2] and greater(quotient(b[2], a[2]), 0)),
    ("a.g = 0 OR b.g / a.g > 0", lambda a, b: a[2] == 0 or greater(quotient(b[2], a[2]), 0)),
    ("CASE WHEN a.g <> 0 THEN b.g / a.g ELSE 1 END > 0", lambda a, b: greater(quotient(b[2], a[2]) if a[2] else 1, 0)),
    ("CASE WHEN a.g <> 0 THEN b.g % a.g ELSE 1 END = 1", lambda a, b: not a[2] or (b[2] == 4 and a[2] == -3)),
    (
        "CASE WHEN a.kind = 'n' THEN CAST(a.s AS BIGINT) ELSE b.g END > 0",
        lambda a, b: greater(number(a[4]) if a[3] == "n" else b[2], 0),
    ),
    ("CASE WHEN a.kind = 'n' THEN CAST(a.s AS DECIMAL(5, 2)) ELSE b.g END > 6.5", lambda a, b: a[4] == "7"),
    (
        "CASE WHEN b.kind = 'n' THEN CAST(b.s AS BIGINT) WHEN a.kind = 'n' THEN CAST(a.s AS BIGINT) ELSE 1 END > 4",
        lambda a, b: b[4] == "5" or (b[3] != "n" and a[4] == "7"),
    ),
    (
        "CASE WHEN b.kind IS NULL OR COALESCE(a.kind, '') <> 'n' THEN FALSE ELSE CAST(a.s AS SMALLINT) > b.g END",
        lambda a, b: b[3] and a[3] == "n" and greater(number(a[4]), b[2]),
    ),
    ("a.kind = 'n' AND CAST(a.s AS BIGINT) > b.g", lambda a, b: a[3] == "n" and greater(number(a[4]), b[2])),
    ("a.kind = 'n' AND CAST(a.s AS BIGINT) - 3 = b.g", lambda a, b: a[4] == "7" and b[2] == 4),
    (
        "b.kind = 'n' AND COALESCE(a.g, CAST(b.s AS INT)) > 0",
        lambda a, b: b[3] == "n" and greater(a[2] if a[2] is not None else b[4] and int(b[4]), 0),
    ),
]


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
@pytest.mark.parametrize(("condition", "holds"), CASES, ids=[text for text, _ in CASES])
def test_what_is_guarded_is_not_computed(condition: str, holds: Callable[[Row, Row], bool | None], kind: str) -> None:
    met = [(x, y) for x in A for y in B if holds(x, y)]
    if kind in ("SEMI", "ANTI"):
        exists = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
        query = f"INSERT INTO one SELECT id FROM a WHERE {exists} (SELECT 1 FROM b WHERE a.k = b.k AND ({condition}));"
        wanted = Counter((x[0],) for x in A if any(x is left for left, _ in met) == (kind == "SEMI"))
    else:
        query = f"INSERT INTO o SELECT a.id, b.id FROM a {kind} JOIN b ON a.k = b.k AND ({condition});"
        wanted = Counter((x[0], y[0]) for x, y in met)
        if kind in ("LEFT", "FULL"):
            wanted.update((x[0], None) for x in A if all(x is not left for left, _ in met))
        if kind in ("RIGHT", "FULL"):
            wanted.update((None, y[0]) for y in B if all(y is not right for _, right in met))
    pipeline = Pipeline(compile_sql(TABLES + query))
    for left, right in ((A[:2], B[1:]), (A[2:], B[:1])):
        pipeline.batch({"a": left, "b": right})
    assert pipeline.result == wanted


def test_a_guarded_cast_of_one_side_is_computed_below_the_join_behind_its_guard() -> None:
    plan = compile_sql(
        f"{TABLES} INSERT INTO o SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k "
        "AND CASE WHEN a.kind = 'n' THEN CAST(a.s AS BIGINT) ELSE b.g END > 0;"
    )
    (below,) = [op for op in plan.operators if isinstance(op, Calc) and op.inputs == ("scan_a",)]
    assert [item.expression for item in below.select if item.expression] == [
        "CASE WHEN coalesce(kind = 'n', FALSE) THEN CAST(s AS BIGINT) ELSE CAST(NULL AS BIGINT) END"
    ]


def test_what_fails_and_depends_on_both_sides_is_refused_where_the_join_cannot_compute_it() -> None:
    sql = f"""{TABLES} INSERT INTO o SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k
    AND CASE WHEN b.kind = 'n' THEN CAST(a.s AS DOUBLE) ELSE 0 END > 0;"""
    with pytest.raises(SqlError, match="CAST fails for some rows, and which rows it is for depends on both") as caught:
        compile_sql(sql)
    (found,) = caught.value.diagnostics
    assert sql.splitlines()[found.line - 1][found.column - 1 :].startswith("CAST(a.s AS DOUBLE)")


def test_what_is_not_guarded_fails_with_the_place() -> None:
    plan = compile_sql(f"{TABLES} INSERT INTO o SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND b.g / a.g > 0;")
    (join,) = [op for op in plan.operators if isinstance(op, Join)]
    with pytest.raises(RunError, match=rf"operators\.{join.id}\.condition: r\.g DIV l\.g: division by zero"):
        Pipeline(plan).batch({"a": A, "b": B})


NUMBERS = """
CREATE TABLE a (id BIGINT, k BIGINT, d DOUBLE, p DECIMAL(12, 2), i INT, f FLOAT)
WITH ('connector'='filesystem', 'path'='a', 'format'='json');
CREATE TABLE b (id BIGINT, k BIGINT, d DOUBLE, p DECIMAL(12, 2), i INT, f FLOAT)
WITH ('connector'='filesystem', 'path'='b', 'format'='json');
CREATE TABLE o (x BIGINT, y BIGINT) WITH ('connector'='print');
"""
ROWS = [
    (1, 1, 0.35, Decimal("0.35"), 2**24 + 1, float(2**24)),
    (2, 1, 0.57, Decimal("0.57"), 7, 7.0),
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.d = 0.57", [(1, None), (2, 1), (2, 2)]),
        ("a.d BETWEEN 0.57 AND 0.57", [(1, None), (2, 1), (2, 2)]),
        ("a.d IN (0.57, 3)", [(1, None), (2, 1), (2, 2)]),
        ("CASE WHEN a.d = 0.57 THEN TRUE ELSE FALSE END", [(1, None), (2, 1), (2, 2)]),
        ("a.p <= b.d AND b.p >= a.d AND b.id > 0", [(1, 1), (1, 2), (2, 2)]),
        ("a.p - b.p = 0", [(1, 1), (2, 2)]),
        ("COALESCE(a.p, b.p) <> 0 AND a.p = b.p", [(1, 1), (2, 2)]),
        ("COALESCE(a.p, 0) < b.p", [(1, 2), (2, None)]),
        # As Flink, which compares a FLOAT and an INT as FLOATs (recorded); Spark would as DOUBLEs.
        ("NOT (a.i <> b.f)", [(1, 1), (2, 2)]),
    ],
)
def test_numbers_of_all_types_meet_by_their_value(condition: str, expected: list[Row]) -> None:
    sql = f"{NUMBERS} INSERT INTO o SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND ({condition});"
    pipeline = Pipeline(compile_sql(sql))
    pipeline.batch({"a": ROWS, "b": ROWS})
    assert sorted(pipeline.result.elements(), key=str) == sorted(expected, key=str)
