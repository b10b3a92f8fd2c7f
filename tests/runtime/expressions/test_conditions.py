"""Conditions of joins mean in Arrow what they mean in Spark: for all pairs of types and their extreme values."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.errors import RunError, SqlError
from hintplan.plans.operators import Join
from hintplan.runtime.builders.bound import state_schema
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.condition import compile_values
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import delta, events_of, fold
from tests.runtime.expressions.checking import checked_over, compiled_condition
from tests.runtime.expressions.condition_values import (
    COMPARISONS,
    ROWS,
    SCHEMA,
    TYPES,
    answers,
    column,
    in_spark,
    pairs,
)
from tests.runtime.expressions.random_conditions import DECIMALS, FLOATING, INTEGERS, NUMBERS, Conditions
from tests.spark.arrow_types import spark_sends

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.part(of=2, fixture="spark")

KINDS = ("inner", "left", "right", "full", "semi", "anti")
COLUMNS = {(side, name): f"__{side}_{name}" for side in "lr" for name in SCHEMA.names}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """All pairs of rows in Spark, which does not compile what is asked once only."""
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return in_spark(own).localCheckpoint()


def checked(text: str) -> CheckedExpression:
    return check_expression(text, COLUMNS, operator="j", path="operators.j.condition")


def joining(text: str) -> Join:
    return Join(id="j", inputs=("a", "b"), join_type="left", keys=(), condition=text, state=(), output=(), changelog=())


def in_arrow(text: str) -> list[Any]:
    """Its value for all pairs."""
    rows = pa.table([column for side in pairs() for column in side.columns], list(COLUMNS.values()))
    return answers_in_arrow(text, rows).to_pylist()


def answers_in_arrow(text: str, rows: pa.Table) -> pa.Array:
    compiled = compile_values(checked_over(checked(text).sql, rows.column_names), rows.schema)
    return compiled.answers(rows, rows, rows.num_rows)


def different(frame: DataFrame, texts: list[str], in_spark: list[Column]) -> dict[str, tuple[Any, ...]]:
    """Where Arrow and Spark disagree, with the values on both sides and both answers."""
    left, right = pairs()
    sides, found = {"l": left, "r": right}, {}
    for text, theirs in zip(texts, answers(frame, in_spark), strict=True):
        for i, (one, other) in enumerate(zip(in_arrow(text), theirs, strict=True)):
            if one != other:
                read = [(key, sides[key[0]][key[1]][i].as_py()) for key in COLUMNS if ".".join(key) in text]
                found[text] = (*read, one, other)
    return found


ACCEPTED = [
    *product(NUMBERS, repeat=2),
    *((name, name) for name in ("flag", "text", "bytes", "day", "time", "milli", "zoned")),
    *((a, b) for a, b in product(("day", "time", "milli"), repeat=2) if a != b),
]
"""The pairs of types that SQL compares."""

OF_ANOTHER_KIND = [pair for name in ("time", "milli") for pair in ((name, "zoned"), ("zoned", name))]
"""Those that it compares by a CAST, which the plan has (tests/flink/test_compared_times.py)."""


def test_all_pairs_of_types_are_compared_as_in_spark_by_joins_of_all_kinds(frame: DataFrame) -> None:
    asked = [(a, sign, b) for a, b in ACCEPTED for sign in COMPARISONS]
    texts = [f"l.{a} {sign} r.{b}" for a, sign, b in asked]
    held = answers(frame, [F.expr(checked(text).sql) for text in texts])
    for number, ((a, _, b), text, theirs) in enumerate(zip(asked, texts, held, strict=True)):
        assert in_arrow(text) == theirs, text
        # Each pair of types meets all kinds of joins, each with another comparison.
        kind = KINDS[(number + number // len(COMPARISONS)) % len(KINDS)]
        assert joined(kind, a, b, text) == expected(kind, a, b, theirs), (kind, text)


def joined(kind: str, a: str, b: str, text: str) -> Counter:
    """The rows that the operator puts out for all values of two types."""
    left = pa.schema([("k", pa.int64()), ("n", pa.int64()), SCHEMA.field(a)])
    right = pa.schema([("k", pa.int64()), ("n", pa.int64()), SCHEMA.field(b)])
    shown = ("left",) if kind in ("semi", "anti") else ("left", "right")
    operator = JoinOperator(
        kind=kind,
        left=left,
        right=right,
        left_keys=("k",),
        right_keys=("k",),
        changelog=(False, False),
        condition=compiled_condition(joining(text), left, right),
        ttls=(0, 0),
        columns=tuple((side, side, "n") for side in shown),
        emits_changelog=True,
    )
    rows = [[("+I", (1, n, value)) for n, value in enumerate(column(name).to_pylist())] for name in (a, b)]
    deltas = [delta(spec, events) for spec, events in zip(operator.inputs, rows, strict=True)]
    return fold(events_of(operator.process(deltas, None, MemoryStore(), 1).output))


def expected(kind: str, a: str, b: str, held: list[bool | None]) -> Counter:
    """What SQL defines a join of this kind to be, if ``held`` says which pairs satisfy its condition."""
    met = [(n // ROWS, n % ROWS) for n, holds in enumerate(held) if holds]
    lone = [n for n in range(ROWS) if n not in {left for left, _ in met}]
    if kind in ("semi", "anti"):
        return Counter((n,) for n in range(ROWS) if (n in lone) == (kind == "anti"))
    found: list[tuple[int | None, int | None]] = [*met]
    if kind in ("left", "full"):
        found += [(n, None) for n in lone]
    if kind in ("right", "full"):
        found += [(None, n) for n in range(ROWS) if n not in {right for _, right in met}]
    return Counter(found)


def test_pairs_of_types_that_sql_does_not_compare_are_refused() -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    table = (
        f"CREATE TABLE {{}} (k BIGINT, {columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json')"
    )
    script = f"{table.format('a')}; {table.format('b')}; CREATE TABLE o (k BIGINT) WITH ('connector' = 'print');"
    for a, b in product(SCHEMA.names, repeat=2):
        condition = " OR ".join(f"a.{a} {sign} b.{b}" for sign in COMPARISONS)
        sql = f"{script} INSERT INTO o SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND ({condition});"
        if (a, b) in [*ACCEPTED, *OF_ANOTHER_KIND]:
            plan = compile_sql(sql)
            (join,) = [op for op in plan.operators if isinstance(op, Join)]
            compiled_condition(join, *(state_schema(output_columns(plan)[side]) for side in join.inputs))
            continue
        with pytest.raises(SqlError, match="does not take"):
            compile_sql(sql)
        if {a, b} not in ({"text", "bytes"}, {"time", "zoned"}):
            with pytest.raises(RunError, match="cannot contain"):
                in_arrow(f"l.{a} = r.{b}")


def numbers(a: str, b: str) -> list[str]:
    """What two columns of numbers can become in one; DECIMALs of too many digits become NULL."""
    exact = {a, b} & set(DECIMALS) and not {a, b} & set(FLOATING)
    forms = (
        ("try_add({}, {})", "try_subtract({}, {})", "try_multiply({}, {})")
        if exact
        else ("{} + {}", "{} - {}", "{} * {}")
    )
    texts = [form.format(f"l.{a}", f"r.{b}") for form in forms]
    texts += [f"coalesce(l.{a}, r.{b})", f"CASE WHEN l.flag THEN l.{a} WHEN r.flag THEN r.{b} END"]
    texts += [f"l.{a} BETWEEN r.{b} AND 7", f"l.{a} IN (r.{b}, 0.57, 1)", f"l.{a} <=> r.{b}"]
    if {a, b} <= set(INTEGERS):
        texts += [f"CASE WHEN r.{b} <> 0 THEN l.{a} {sign} r.{b} ELSE -1 END" for sign in ("div", "%")]
    return texts


SHORT_NUMBERS = (*INTEGERS, *FLOATING, "cent", "money")
CASTS = [
    *(f"CAST(l.{a} AS {to})" for a in NUMBERS for to in ("FLOAT", "DOUBLE")),
    # Spark takes a large DECIMAL to integers shorter than BIGINT by way of DOUBLE; Flink cuts it, as the join does.
    *(f"try_cast(l.{a} AS {to})" for a in SHORT_NUMBERS for to in ("TINYINT", "SMALLINT", "INT")),
    *(f"try_cast(l.{a} AS BIGINT)" for a in NUMBERS),
    *(f"try_cast(l.{a} AS DECIMAL({to}))" for a in NUMBERS for to in ("1, 0", "5, 2", "20, 3", "38, 0", "38, 38")),
    *(f"try_cast(l.text AS {to})" for to in ("TINYINT", "INT", "BIGINT", "DECIMAL(5, 2)")),
    *(
        f"CASE WHEN l.{a} BETWEEN -9 AND 9 THEN CAST(l.{a} AS {to}) END"
        for a in SHORT_NUMBERS
        for to in ("TINYINT", "BIGINT")
    ),
    *(f"CAST(l.flag AS {to})" for to in ("TINYINT", "BIGINT")),
    "CAST(l.day AS TIMESTAMP_NTZ)",
    "CAST(l.time AS DATE)",
    "l.time + INTERVAL '1.5' SECOND",
    *(f"{function}(l.{a})" for a in SHORT_NUMBERS for function in ("-", "abs")),
    *(f"{function}(l.{a}, {by})" for a in INTEGERS for function in ("shiftleft", "shiftright") for by in (3, 31, 66)),
    *(f"isnan(l.{a})" for a in ("int", *FLOATING)),
]


def test_arithmetic_choice_and_casts_have_the_types_and_values_of_spark(frame: DataFrame) -> None:
    texts = [*CASTS, *(text for a, b in product(NUMBERS, repeat=2) for text in numbers(a, b))]
    rows = pa.table([column for side in pairs() for column in side.columns], list(COLUMNS.values()))
    asked = [spark_expression(frame, checked(text)) for text in texts]
    kinds = [spark_sends(field.dataType) for field in frame.select(*asked).schema]
    for text, theirs, kind in zip(texts, answers(frame, asked), kinds, strict=True):
        ours = answers_in_arrow(text, rows)
        assert ours.type == kind, text
        assert ours.equals(pa.array(theirs, kind)) or same(ours.to_pylist(), theirs), text


def same(ours: list[Any], theirs: list[Any]) -> bool:
    return [repr(value) for value in ours] == [repr(value) for value in theirs]


def test_conditions_at_random_mean_what_they_mean_in_spark(frame: DataFrame) -> None:
    made = Conditions(random.Random(3))
    texts = [made.condition() for _ in range(120)]
    assert different(frame, texts, [spark_expression(frame, checked(text)) for text in texts]) == {}


def test_the_opposite_of_a_decimal_keeps_all_digits() -> None:
    # Spark rounds it to 34.
    assert in_arrow("l.huge <> -(-l.huge) OR abs(l.huge) <> CASE WHEN l.huge < 0 THEN -l.huge ELSE l.huge END") == [
        None if pair[0] is None else False for pair in product(column("huge").to_pylist(), repeat=2)
    ]
