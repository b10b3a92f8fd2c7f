"""Every function, operator, word and type that a plan may write, with arguments of every type: it is built or refused.

A plan is edited by hand, so anything may stand in its expressions; none may end in an error that names no operator.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS, ALLOWED_WORDS
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.calc import calc_in_spark
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.expressions.allowed import _SYMBOLS
from hintplan.runtime.requests.request import RequestRun
from tests.sample import sampled

pytestmark = pytest.mark.spark

VALUES = {
    "o": ("BOOLEAN", "true"),
    "t": ("TINYINT", "CAST(7 AS TINYINT)"),
    "i": ("INT", "7"),
    "b": ("BIGINT", "10L"),
    "f": ("FLOAT", "CAST(1.5 AS FLOAT)"),
    "d": ("DOUBLE", "2.5D"),
    "p": ("DECIMAL(10, 2)", "CAST(12.35 AS DECIMAL(10, 2))"),
    "s": ("STRING", "'Hello'"),
    "y": ("DATE", "DATE '2024-02-29'"),
    "ts": ("TIMESTAMP(3)", "TIMESTAMP_NTZ '2024-02-29 13:14:15.678'"),
    "lz": ("TIMESTAMP_LTZ(3)", "TIMESTAMP '2024-02-29 13:14:15.678'"),
    "x": ("BYTES", "X'AB12'"),
    "r": ("ROW<a INT>", "named_struct('a', 1)"),
    "arr": ("ARRAY<INT>", "array(1, 2)"),
    "m": ("MAP<STRING, INT>", "map('a', 1)"),
}
PARTS = 8
TYPES = """
BIGINT BOOLEAN BINARY CHAR(3) DATE DECIMAL(10,2) DECIMAL DECIMAL(50,2) DECIMAL(5,7) DECIMAL(0,0) DOUBLE FLOAT INT
SMALLINT STRING TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ TINYINT VARCHAR(2) VARCHAR(0) ARRAY<INT> ARRAY<ARRAY<INT>>
MAP<STRING,INT> INTERVAL NULL VOID VARIANT STRUCT<a>
""".split()  # noqa: SIM905
BINARY = """
+ - * / % DIV = == <> != < <= > >= <=> AND OR || & | ^ << >> >>> -> . :: : LIKE ILIKE RLIKE IN IS BETWEEN
""".split()  # noqa: SIM905
ODD = """
1e400 | 1e100000 | 1e99999999999 | 1e-100000 | 128Y | 40000S | 1.5Y | 9999999999999999999999L | 1e400F | 0x12 | X'A'
named_struct('a', 1) | named_struct(s, i).a | struct(i) | struct(i, s) | i >> 1 | i << 1 | i >> 1 + i | b << i | i >>> 1
r.a | r.b | r.a.b | r[0] | arr[0] | arr[s] | m['a'] | m[1] | i IN () | i IN (1, 'a', y) | i BETWEEN s AND y | i IS s
INTERVAL | INTERVAL 1 DAY | INTERVAL 'x' DAY | INTERVAL i DAY | i + INTERVAL 1 DAY | INTERVAL '1-2' YEAR TO MONTH
CAST(i AS INTERVAL) + 1 | CAST(i AS INTERVAL DAY) | CAST(INTERVAL '1' DAY AS INTERVAL)
DATE 'x' | TIMESTAMP_NTZ '99999-01-01'
CASE i WHEN s THEN y END | CASE WHEN i THEN 1 END | CASE WHEN o THEN 1 ELSE y END | CASE END | EXTRACT(FOO FROM y)
EXTRACT(DAY FROM i) | EXTRACT(s FROM y) | TRIM(LEADING FROM s) | date_trunc(i, ts) | timestampadd(DAY, 1, ts)
timestampadd(FOO, 1, ts) | timestampdiff(DAY, ts, ts) | s LIKE 'a' ESCAPE 'bc' | s LIKE '%' ESCAPE '' | s RLIKE '['
split(s, '(') | date_format(ts, 'QQQQQQQ') | to_date(s, 'YYYY') | sha2(s, 7) | repeat(s, b)
round(d, -400) | round(p, i)
shiftleft(i, 100) | greatest(i, s) | nullif(i, y) | if(i, 1, 2) | try_add(i, y) | concat(arr, arr) | reverse(m)
contains(x, s) | current_timestamp(i) | try_to_timestamp(b, o) | to_timestamp(p, y) | NULL + 1 | - - i
i -- x | /* x */ i
date_add(y, 1, 2) | CAST(NULL AS INT) | CAST(arr AS ARRAY<ARRAY<INT>>) | p > 1 AND ARRAY(ARRAY(1))[0][0] >> 1 = 0
"""


def expressions() -> Iterator[str]:
    """All of them, in an order that does not change."""
    dice = random.Random(7)
    names = list(VALUES)
    for function in sorted(ALLOWED_FUNCTIONS):
        yield f"{function}()"
        yield from (f"{function}({name})" for name in names)
        yield from (f"{function}({', '.join(dice.choices(names, k=2))})" for _ in range(5))
        yield from (f"{function}({', '.join(dice.choices(names, k=3))})" for _ in range(3))
    for operator in BINARY:
        for _ in range(8):
            a, b = dice.choices(names, k=2)
            yield from (f"{a} {operator} {b}", f"{a} {operator} ({b})")
    for sign in ("-", "+", "~", "!", "NOT "):
        yield from (f"{sign}{name}" for name in names)
    for word in sorted(ALLOWED_WORDS | _SYMBOLS):
        yield from (word, f"{word} i", f"i {word}", f"i {word} i", f"{word}(i)", f"{word} '1'", f"{word}(i, i)")
    for kind in TYPES:
        yield from (f"{cast}({name} AS {kind})" for name in names for cast in ("CAST", "TRY_CAST"))
        yield f"i::{kind}"


def of_odd_shape() -> list[str]:
    written = [text.strip() for line in ODD.strip().splitlines() for text in line.split(" | ")]
    return [*written, "9" * 5000, "i > " + "9" * 40, "0." + "1" * 5000, "1" + "0" * 60 + "BD", "1e" + "9" * 5000]


@pytest.fixture(scope="module")
def row(spark: SparkSession) -> tuple[DataFrame, Edges]:
    """A row with a column of each type, and what a builder knows of it."""
    from hintplan.runtime.spark.session import prepare_session

    own = prepare_session(spark, time_zone="UTC", once=True)
    columns = tuple(Column(name=name, type=kind) for name, (kind, _) in VALUES.items())
    edges = Edges(
        backend=SparkBackend(session=own),
        plan=Plan(name="p", config={}, tables={}, operators=()),
        columns={"t": columns},
        changelog={"c": False},
        lookups=RequestRun(token="1"),
    )
    return own.range(1).selectExpr(*(f"{value} AS `{name}`" for name, (_, value) in VALUES.items())), edges


def refused(row: tuple[DataFrame, Edges], text: str) -> bool:
    """Whether a calc that selects ``text`` is refused, by its name; any other error is one of ours."""
    frame, edges = row
    calc = Calc(id="c", inputs=("t",), filter=None, select=(SelectItem(name="n", expression=text),))
    try:
        calc_in_spark(calc, [frame], edges)
    except RunError as error:
        (found,) = error.diagnostics
        assert found.message.startswith("operator c: "), text
        assert found.path == "operators.c.select[0].expression", text
        assert len(found.message) < 2000, text
        return True
    return False


@pytest.mark.integration
def test_expressions_of_any_shape_are_built_or_refused(row: tuple[DataFrame, Edges]) -> None:
    sample = random.Random(11).sample(list(dict.fromkeys(expressions())), 150)
    outcome = {text: refused(row, text) for text in [*of_odd_shape(), *sample]}
    assert not outcome["i >> 1"]
    assert not outcome["b << i"]
    assert not outcome["named_struct('a', 1)"]
    assert outcome["1e100000"]
    assert outcome["9" * 5000]
    assert 50 < sum(outcome.values()) < len(outcome) - 50


@pytest.mark.integration
@pytest.mark.parametrize("part", sampled(range(PARTS), keep=1))
def test_every_function_operator_word_and_cast_is_built_or_refused(row: tuple[DataFrame, Edges], part: int) -> None:
    every = list(dict.fromkeys(expressions()))
    assert len(every) > 5000
    built = [text for text in every[part::PARTS] if not refused(row, text)]
    assert len(built) > 1000 / PARTS


def test_a_shift_is_one_sign_and_means_what_it_means_to_spark(row: tuple[DataFrame, Edges]) -> None:
    frame, edges = row
    texts = {"i >> 1": 3, "i << 2": 28, "i + 1 >> 1 + 1": 2}
    select = tuple(SelectItem(name=f"c{n}", expression=text) for n, text in enumerate(texts))
    found = calc_in_spark(Calc(id="c", inputs=("t",), filter=None, select=select), [frame], edges).first()
    assert list(found) == list(texts.values())
