"""DECIMALs whose digits together are more than a DECIMAL has are compared exactly, in calcs and as keys of joins."""

from __future__ import annotations

import operator
import sqlite3
from contextlib import closing
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hintplan.runtime.run.execute import execute
from tests.runtime.batch.programs import batch_plan
from tests.sample import in_turn

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SIGNS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
COARSE = {
    "x0": ("DECIMAL(38, 0)", pa.decimal128(38, 0)),
    "x1": ("BIGINT", pa.int64()),
    "x2": ("DECIMAL(38, 6)", pa.decimal128(38, 6)),
}
FINE = {
    "y0": ("DECIMAL(20, 20)", pa.decimal128(20, 20)),
    "y1": ("DECIMAL(38, 36)", pa.decimal128(38, 36)),
    "y2": ("DECIMAL(38, 30)", pa.decimal128(38, 30)),
}
VALUES = [Decimal(0), Decimal(1), Decimal(-1), Decimal(3), None]
NEAR = [Decimal(0), Decimal("0.57"), Decimal("-0.43"), Decimal("0.00000000000000000001"), None]
ROWS = [(i, x, y) for i, (x, y) in enumerate(product(VALUES, NEAR))]
LITERALS = ["0.57", "-0.43", "0.00000000000000000001", "2.99999999999999999999"]


def written(directory: Path) -> None:
    directory.mkdir()
    columns: dict[str, pa.Array] = {"id": pa.array([i for i, _, _ in ROWS]), "one": pa.array([1] * len(ROWS))}
    for name, (_, kind) in COARSE.items():
        columns[name] = pa.array([x if x is None or pa.types.is_decimal(kind) else int(x) for _, x, _ in ROWS], kind)
    for name, (_, kind) in FINE.items():
        columns[name] = pa.array([y for _, _, y in ROWS], kind)
    pq.write_table(pa.table(columns), directory / "rows.parquet")


def known(one: Decimal | None, sign: str, other: Decimal | None) -> bool | None:
    return None if one is None or other is None else SIGNS[sign](one, other)


def both(one: bool | None, other: bool | None) -> bool | None:
    return False if False in (one, other) else None if None in (one, other) else True


def asked() -> list[tuple[str, list[bool | None]]]:
    """Each condition, with its value for each row as Python's numbers have it."""
    found = []
    for x, y in product(COARSE, FINE):
        for sign in SIGNS:
            found.append((f"{x} {sign} {y}", [known(a, sign, b) for _, a, b in ROWS]))
            found.append((f"{y} {sign} {x}", [known(b, sign, a) for _, a, b in ROWS]))
        found.append((f"{x} IS DISTINCT FROM {y}", [a != b for _, a, b in ROWS]))
        found.append((f"{x} BETWEEN {y} AND {y}", [known(a, "=", b) for _, a, b in ROWS]))
        found.append((f"{y} NOT IN ({x}, {x})", [known(a, "<>", b) for _, a, b in ROWS]))
        found.append((f"NULLIF({x}, {y}) IS NULL", [a is None or a == b for _, a, b in ROWS]))
    for x, text in product(("x0",), LITERALS):
        number = Decimal(text)
        found += [(f"{x} {sign} {text}", [known(a, sign, number) for _, a, _ in ROWS]) for sign in SIGNS]
        found.append((f"{x} IN ({text}, 3)", [None if a is None else a in (number, 3) for _, a, _ in ROWS]))
        low = [both(known(a, ">=", number), known(a, "<=", Decimal("2.5"))) for _, a, _ in ROWS]
        found.append((f"{x} BETWEEN {text} AND 2.5", low))
    return found


@in_turn(0, of=2)
def test_long_decimals_are_compared_exactly(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "t")
    conditions = asked()
    database = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/r.db'"
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in (COARSE | FINE).items())
    joins = [("=", f"a.{x} = b.{y}") for x, y in product(COARSE, FINE)]
    # Beside another equality, these are conditions of the join, and not its keys.
    joins += [(sign, f"a.one = b.one AND (a.x0 {sign[0]} b.y2 OR a.x0 = b.y2)") for sign in ("<=", ">=")]
    sinks = [
        f"CREATE TABLE j{i} (a BIGINT, b BIGINT) WITH ({database}, 'table-name' = 'j{i}');\n"
        f"INSERT INTO j{i} SELECT a.id, b.id FROM t AS a LEFT JOIN t AS b ON {on};"
        for i, (_, on) in enumerate(joins)
    ]
    plan = batch_plan(
        f"""
        CREATE TABLE t (id BIGINT, one BIGINT, {columns})
        WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path / "t"}');
        CREATE TABLE r (id BIGINT, {", ".join(f"c{i} BOOLEAN" for i in range(len(conditions)))})
        WITH ({database}, 'table-name' = 'r');
        INSERT INTO r SELECT id, {", ".join(text for text, _ in conditions)} FROM t;
    """
        + "\n".join(sinks)
    )
    assert execute(plan, spark).await_termination(300)
    with closing(sqlite3.connect(tmp_path / "r.db")) as found:
        rows: list[tuple[Any, ...]] = found.execute("SELECT * FROM r ORDER BY id").fetchall()
        different = {
            text: wanted
            for i, (text, wanted) in enumerate(conditions)
            if [None if row[i + 1] is None else bool(row[i + 1]) for row in rows] != wanted
        }
        assert different == {}
        for i, (sign, _) in enumerate(joins):
            pairs = [(a, b) for a, x, _ in ROWS for b, _, y in ROWS if known(x, sign, y)]
            alone = [(a, None) for a, x, _ in ROWS if a not in {first for first, _ in pairs}]
            key = lambda pair: (pair[0], -1 if pair[1] is None else pair[1])  # noqa: E731
            assert found.execute(f"SELECT a, b FROM j{i} ORDER BY a, b").fetchall() == sorted(pairs + alone, key=key)
