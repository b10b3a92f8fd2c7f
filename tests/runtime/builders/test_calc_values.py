"""What a calc computes in Arrow has the types and values that Spark gives the same calc: for all pairs of types."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.calc import calc_in_spark
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.types import to_arrow
from tests.runtime.expressions.condition_values import TYPES, in_spark, pairs

COLUMNS = tuple(Column(name=f"__{side}_{name}", type=kind) for side in "lr" for name, (kind, _) in TYPES.items())
WIDENED = [("tiny", "small"), ("small", "int"), ("int", "big"), ("int", "double"), ("money", "huge"), ("day", "time")]
COMPUTED = [
    *((f"`__l_{name}` % {by}", TYPES[name][0]) for name in ("int", "big") for by in (7, 10_000)),
    *((f"`__l_{a}` {sign} `__r_{a}`", TYPES[a][0]) for a in ("int", "big", "real", "double") for sign in "+-*"),
    *((f"- `__l_{name}`", TYPES[name][0]) for name in ("int", "big", "double", "money")),
    *((f"abs(`__l_{name}`)", TYPES[name][0]) for name in ("int", "big", "double", "money")),
    *((f"`__l_{name}` div 3", "BIGINT") for name in ("int", "big")),
    *((f"CASE WHEN `__r_big` > 0 THEN `__l_{name}` END", kind) for name, (kind, _) in TYPES.items()),
    *((f"coalesce(`__l_{name}`, `__r_{name}`)", kind) for name, (kind, _) in TYPES.items()),
    *((f"`__l_{name}` IS NULL", "BOOLEAN") for name in TYPES),
    ("`__l_money` + `__r_cent`", "DECIMAL(13, 2)"),
    ("`__l_cent` * `__r_cent`", "DECIMAL(5, 4)"),
    ("`__l_text` = 'a' OR `__r_flag`", "BOOLEAN"),
    ("CASE WHEN `__l_flag` THEN 'yes' ELSE `__l_text` END", "STRING"),
    ("`__l_int` + 1", "BIGINT"),
    (r"'it\'s \\n \n é'", "STRING"),
    ("42", "INT"),
    ("42", "BIGINT"),
    ("CAST(NULL AS BIGINT)", "BIGINT"),
    ("DATE '2024-02-29'", "DATE"),
]
"""Expressions that are to be computed in Arrow, and their types."""
BY_DOUBLE = [("finest", short) for short in ("tiny", "small", "int")]
"""Spark takes such a DECIMAL to integers shorter than BIGINT by way of DOUBLE; Flink cuts it, and so does Arrow."""


def calc(expression: str, kind: str) -> Calc:
    item = SelectItem(name="c", type=kind, expression=expression)
    return Calc(id="calc", inputs=("above",), select=(item,))


def values_in_arrow(expression: str, kind: str) -> pa.ChunkedArray | None:
    found = calc_in_arrow(calc(expression, kind), COLUMNS, [])
    rows = pa.table([column for side in pairs() for column in side.columns], [column.name for column in COLUMNS])
    return None if found is None else found(rows)["c"]


@pytest.mark.spark
def test_values_of_calcs_in_arrow_are_those_of_spark(spark: SparkSession) -> None:
    cast = [(f"`__l_{a}`", TYPES[b][0]) for a, b in product(TYPES, repeat=2) if a != b and (a, b) not in BY_DOUBLE]
    ours = {asked: found for asked in [*cast, *COMPUTED] if (found := values_in_arrow(*asked)) is not None}
    assert [asked for asked in COMPUTED if asked not in ours] == []
    assert [pair for pair in WIDENED if (f"`__l_{pair[0]}`", TYPES[pair[1]][0]) not in ours] == []
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    frame = in_spark(own).localCheckpoint()
    edges: Any = SimpleNamespace(names=lambda _: [column.name for column in COLUMNS], metadata=lambda _: pa.schema([]))
    for (expression, kind), found in ours.items():
        theirs = calc_in_spark(calc(expression, kind), [frame], edges).toArrow()["c"].cast(to_arrow(kind))
        assert found.type == to_arrow(kind), (expression, kind)
        # NaN is not equal to itself, and 0.0 is to -0.0.
        assert list(map(repr, found.to_pylist())) == list(map(repr, theirs.to_pylist())), (expression, kind)


@pytest.mark.parametrize("pair", BY_DOUBLE)
def test_a_decimal_is_cut_to_a_short_integer(pair: tuple[str, str]) -> None:
    found = values_in_arrow(f"`__l_{pair[0]}`", TYPES[pair[1]][0])
    assert found is not None
    assert set(found.to_pylist()) == {0, None}  # all of them are below 1, and above -1


@pytest.mark.parametrize(
    "expression", ["`__l_int` div `__r_int`", "CAST(`__l_text` AS INT)", "CAST(`__l_big` AS INT)", "upper(`__l_text`)"]
)
def test_what_can_fail_or_has_no_kernel_is_left_to_spark(expression: str) -> None:
    assert values_in_arrow(expression, "STRING" if "upper" in expression else "INT") is None
