"""What of an inner join's condition the join checks itself means what SQL says, and leaves its state alone."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Join
from hintplan.runtime.builders.join import with_condition_above
from hintplan.runtime.builders.stream import conditions_above
from hintplan.runtime.expressions.exact import split_condition
from hintplan.runtime.state.manifest import StateTable, read_tables
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import delta, events_of, fold
from tests.runtime.expressions.checking import checked_over_sides, compiled_condition
from tests.runtime.operators.test_join_operator import join
from tests.runtime.pipeline import Pipeline

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, 0, 127]),
    "int": (pa.int32(), [-(2**31), 3, 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), 3, 2**53 + 1, 2**63 - 1]),
    "dec": (pa.decimal128(10, 2), [Decimal("-99999999.99"), Decimal("3.00"), Decimal("0.01")]),
    "fine": (pa.decimal128(20, 10), [Decimal("3.0000000001"), Decimal("3"), Decimal("-9999999999")]),
    "real": (pa.float32(), [0.0, -0.0, 3.0, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.0, -0.0, 3.0, float("nan"), float("-inf"), 1e300]),
    "text": (pa.string(), ["", "Z", "a", "é", "\U0001f600", "\uffff"]),
    "bytes": (pa.binary(), [b"", b"\x7f", b"\xff", b"\xff\x00"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    "time": (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(9999, 1, 1)]),
    "flag": (pa.bool_(), [True, False]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EXACT_PAIRS = [
    *product(("tiny", "int", "big", "dec", "fine"), repeat=2),
    *product(("real", "double"), repeat=2),
    *(("tiny", "real"), ("double", "int")),
    *((name, name) for name in ("text", "bytes", "day", "time", "flag")),
]


def holds(condition: str, left: pa.Table, right: pa.Table) -> list[bool]:
    op = Join(
        id="j", inputs=("a", "b"), join_type="inner", keys=(), condition=condition, state=(), output=(), changelog=()
    )
    compiled = compiled_condition(op, left.schema, right.schema)
    assert compiled is not None
    return compiled.holds(left, right, left.num_rows).tolist()


def split(condition: str) -> tuple[str | None, str | None]:
    """The texts of the condition that the join checks, and that Spark checks above it."""
    checked = checked_over_sides(condition, [*SCHEMA.names, "nested"], SCHEMA.names)
    within, above = (part and part.text for part in split_condition(checked, SCHEMA, SCHEMA))
    return within, above


def ordered(value: Any) -> Any:
    """A value that Python orders as Spark does: text by its bytes, NaN behind all other numbers."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool) or not isinstance(value, float | int | Decimal):
        return value
    return value != value, 0 if value != value else value


@pytest.mark.parametrize(("one", "other"), EXACT_PAIRS)
def test_comparisons_in_the_join_are_those_of_the_values(one: str, other: str) -> None:
    pairs = list(product([*TYPES[one][1], None], [*TYPES[other][1], None]))
    left = pa.table({one: pa.array([a for a, _ in pairs], TYPES[one][0])})
    right = pa.table({other: pa.array([b for _, b in pairs], TYPES[other][0])})
    for sign, compare in COMPARISONS.items():
        condition = f"l.{one} {sign} r.{other}"
        assert split(condition) == (condition, None)
        expected = [None not in (a, b) and bool(compare(ordered(a), ordered(b))) for a, b in pairs]
        assert holds(condition, left, right) == expected, condition


CONSTANTS = [
    ("l.tiny < 300", lambda row: row["tiny"] < 300),
    ("l.big > -9223372036854775807", lambda row: row["big"] > -(2**63) + 1),
    ("l.int IN (3, 4, -2147483648)", lambda row: row["int"] in (3, -(2**31))),
    ("NOT l.int IN (3, 4)", lambda row: row["int"] != 3),
    ("l.int > 2.5", lambda row: row["int"] > 2),
    ("l.dec = 3", lambda row: row["dec"] == 3),
    ("l.dec BETWEEN -1 AND 2", lambda row: -1 <= row["dec"] <= 2),
    ("l.fine > 3.00", lambda row: row["fine"] > 3),
    ("l.double < 5", lambda row: row["double"] < 5),
    ("5 > l.real", lambda row: row["real"] < 5),
    ("l.text >= 'a'", lambda row: row["text"].encode() >= b"a"),
    ("l.day > DATE '2024-02-28'", lambda row: row["day"] > dt.date(2024, 2, 28)),
    ("l.time > TIMESTAMP_NTZ '2024-02-29 01:02:03.000003'", lambda row: row["time"] >= TYPES["time"][1][1]),
    ("l.time + INTERVAL '90' MINUTE > TIMESTAMP_NTZ '2024-02-29 02:32:03.000003'", lambda row: row["time"].year > 1),
    ("l.time - INTERVAL '1.5' SECOND < TIMESTAMP_NTZ '2024-02-29 01:02:02'", lambda row: row["time"].year < 9999),
    ("l.double > 2.5", lambda row: not row["double"] <= 2.5),
    ("NOT l.double > 5", lambda row: row["double"] <= 5),
    ("l.int + 1 > 0", lambda row: row["int"] == 3),  # the greatest wraps around
    ("l.dec * 2 = 6", lambda row: row["dec"] == 3),
    ("l.big > 9223372036854775806.5", lambda row: row["big"] == 2**63 - 1),
    ("l.text LIKE '%a'", lambda row: row["text"] == "a"),
    ("l.flag", lambda row: row["flag"]),
    ("NOT l.flag OR l.int = 3", lambda row: not row["flag"] or row["int"] == 3),
    ("coalesce(l.flag, FALSE)", lambda row: row["flag"]),
    ("NOT l.flag IS TRUE", lambda row: not row["flag"]),
]


@pytest.mark.parametrize(("condition", "expected"), CONSTANTS, ids=[text for text, _ in CONSTANTS])
def test_constants_are_compared_by_their_value(condition: str, expected: Callable[[dict], bool]) -> None:
    rows = [{name: values[i % len(values)] for name, (_, values) in TYPES.items()} for i in range(12)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert split(condition) == (condition, None)
    assert holds(condition, table, table) == [bool(expected(row)) for row in rows]


def test_null_is_neither_in_nor_out_of_a_list_but_the_same_as_null() -> None:
    left, right = pa.table({"int": pa.array([None, None, 1], pa.int32())}), pa.table({"int": pa.array([None, 1, 1])})
    for condition, expected in {
        "l.int IN (1, 2)": [False, False, True],
        "NOT l.int IN (2, 3)": [False, False, True],
        "l.int <=> r.int": [True, False, True],
        "NOT coalesce(l.int = r.int, l.int IS NULL AND r.int IS NULL)": [False, True, False],
        "l.int IS NOT NULL OR r.int IS NULL": [True, False, True],
    }.items():
        assert split(condition) == (condition, None)
        assert holds(condition, left, right) == expected, condition


@pytest.mark.parametrize(
    "condition",
    [
        "l.text = r.int",
        "l.time > '2024-01-01'",
        "l.int div r.int = 1",  # fails for zero, which a conjunct that Spark checks may exclude
        "CAST(l.big AS INT) = 1",
        "CAST(l.double AS DECIMAL(10, 2)) = 1",
        "try_cast(l.double AS DECIMAL(10, 2)) = 1",  # one after the other
        "upper(l.text) = r.text",
        "l.text LIKE r.text",
        "l.day > DATE '2024-02-30'",
        "l.day + INTERVAL '1' DAY > r.day",
        "l.time + INTERVAL '1' MONTH > r.time",
        "l.time + INTERVAL '1.5' HOUR > r.time",
        "l.time - r.time < INTERVAL '1' HOUR",
        "1 = 1",
        "l.int < r.int OR l.text RLIKE 'a'",
        "l.nested.int = 1",
        "(" * 60 + "l.int = 1" + ")" * 60,
        " AND ".join(["l.int < r.int"] * 500),
        f"l.int IN ({', '.join(map(str, range(1000)))})",
    ],
)
def test_what_is_not_certain_is_left_to_spark(condition: str) -> None:
    assert split(condition) == (None, condition)


def test_documents_are_read_within() -> None:
    condition = "hp_json_value(l.text, '$.a') = r.text"
    assert split(condition) == (condition, None)
    left, right = pa.table({"text": ['{"a": "x"}', '{"a": "y"}', "{", None]}), pa.table({"text": ["x"] * 4})
    op = Join(
        id="j", inputs=("a", "b"), join_type="left", keys=(), condition=condition, state=(), output=(),
        changelog=("+I", "-D"),
    )  # fmt: skip
    compiled = compiled_condition(op, SCHEMA, SCHEMA)
    assert compiled is not None
    assert compiled.answers(left, right, 4).to_pylist() == [True, False, None, None]


def test_a_conjunction_is_shared_out_as_it_is_written() -> None:
    condition = (
        "l.int BETWEEN 1 AND r.big AND upper(l.text) BETWEEN 'A' AND 'B AND C' and (l.int = 1 AND r.int = 2) AND "
        "CASE WHEN l.flag AND r.flag THEN lower(l.text) ELSE 'b' END = 'a' AND NOT r.flag"
    )
    assert split(condition) == (
        "l.int BETWEEN 1 AND r.big AND (l.int = 1 AND r.int = 2) AND NOT r.flag",
        "upper(l.text) BETWEEN 'A' AND 'B AND C' AND CASE WHEN l.flag AND r.flag THEN lower(l.text) ELSE 'b' END = 'a'",
    )


def test_or_holds_more_loosely_than_and() -> None:
    condition = "l.int = 1 AND r.int = 2 OR upper(l.text) = 'A'"
    assert split(condition) == (None, condition)


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(RunError, match="cannot contain"):
        holds("l.day > DATE '2024-02-30'", SCHEMA.empty_table(), SCHEMA.empty_table())


HISTORY = [
    ([("+I", (1, "a1")), ("+I", (1, "a3")), ("+I", (2, "a1"))], [("+I", (1, "a2"))]),
    ([("-U", (1, "a1")), ("+U", (1, "a0"))], [("+I", (2, "a0")), ("+I", (2, "a9")), ("+I", (1, "a2"))]),
    ([("-D", (2, "a1"))], [("-D", (1, "a2")), ("+I", (1, "a4"))]),
    ([], [("-D", (2, "a9"))]),
]


def test_a_condition_changes_nothing_of_the_state_of_an_inner_join_at_any_restart() -> None:
    """Byte for byte, also where a run without it, as Spark had it checked before, is continued with it."""
    plain, checked = join("inner"), join("inner", condition="l.a < r.b")
    stores, manifests = (MemoryStore(), MemoryStore()), [None, None]
    shown = [], []
    for number, (left, right) in enumerate(HISTORY):
        for which, op in enumerate((plain, checked if number >= 2 else plain)):
            deltas = [delta(spec, events) for spec, events in zip(op.inputs, (left, right), strict=True)]
            result = op.process(deltas, manifests[which], stores[which], number)
            manifests[which] = result.manifest
            events = events_of(result.output)
            # Above the join, Spark dropped what does not satisfy the condition.
            shown[which].extend(events if op is checked else [e for e in events if e[1][1] < e[1][3]])
        assert unobserved(manifests[0]) == unobserved(manifests[1])
        assert stores[0].segments.keys() == stores[1].segments.keys()
        for name, segment in stores[0].segments.items():
            assert segment.equals(stores[1].segments[name])
    assert shown[0] == shown[1]
    assert fold(shown[1]) == {(1, "a0", 1, "a2"): 1, (1, "a0", 1, "a4"): 1, (1, "a3", 1, "a4"): 1}


def unobserved(manifest: bytes | None) -> dict[str, StateTable]:
    """The tables of a manifest without their hits: rows that do not satisfy the condition are none."""
    return {} if manifest is None else {n: replace(t, observed=()) for n, t in read_tables(manifest).items()}


TABLES = """
CREATE TABLE a (k BIGINT, x BIGINT, t TIMESTAMP(3)) WITH ('connector'='filesystem', 'path'='a', 'format'='json');
CREATE TABLE b (k BIGINT, y BIGINT, t TIMESTAMP(3)) WITH ('connector'='filesystem', 'path'='b', 'format'='json');
CREATE TABLE o (x BIGINT, y BIGINT) WITH ('connector'='print');
"""
WITHIN_HOURS = "b.t BETWEEN a.t AND a.t + INTERVAL '4' HOUR"


def with_pushed_conditions(plan: Plan) -> Plan:
    """The plan whose joins are those that a stream builds."""
    above, columns = conditions_above(plan), output_columns(plan)
    operators = (
        with_condition_above(op, above.get(op.id), columns) if isinstance(op, Join) else op for op in plan.operators
    )
    return replace(plan, operators=tuple(operators))


def conditions_of(plan: Plan) -> list[str | None]:
    return [op.condition for op in with_pushed_conditions(plan).operators if isinstance(op, Join)]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (f"JOIN b ON a.k = b.k AND {WITHIN_HOURS}", "r.`t` BETWEEN l.`t` AND l.`t` + INTERVAL '4' HOUR"),
        (
            f"JOIN b ON a.k = b.k AND (a.x < b.y OR b.y = 3) AND {WITHIN_HOURS} AND UPPER(CAST(x AS STRING)) <> 'Y'",
            "(l.x < r.y OR r.y = 3) AND r.`t` BETWEEN l.`t` AND l.`t` + INTERVAL '4' HOUR",
        ),
        ("JOIN b ON a.k = b.k AND UPPER(CAST(x AS STRING)) <> CAST(y AS STRING)", None),
        ("LEFT JOIN b ON a.k = b.k WHERE a.t + INTERVAL '4' HOUR > b.t OR y IS NULL", None),
    ],
)
def test_comparisons_above_an_inner_join_narrow_it(join: str, expected: str | None) -> None:
    plan = compile_sql(f"{TABLES} INSERT INTO o SELECT a.x, b.y FROM a {join};")
    assert conditions_of(plan) == [expected]


def test_no_condition_is_pushed_into_a_join_that_others_read_too() -> None:
    plan = compile_sql(f"{TABLES} INSERT INTO o SELECT a.x, b.y FROM a JOIN b ON a.k = b.k AND {WITHIN_HOURS};")
    *_, calc, sink = plan.operators
    other = (replace(calc, id="calc_other"), replace(sink, id="sink_other", inputs=("calc_other",)))
    assert conditions_of(plan) != [None]
    assert conditions_of(replace(plan, operators=(*plan.operators, *other))) == [None]


def test_a_filter_that_may_not_run_is_refused_as_such() -> None:
    plan = compile_sql(f"{TABLES} INSERT INTO o SELECT a.x, b.y FROM a JOIN b ON a.k = b.k AND {WITHIN_HOURS};")
    *_, calc, sink = plan.operators
    unsafe = replace(calc, filter="t0 > t AND reflect('java.lang.System', 'exit', 1) = 1")
    with pytest.raises(RunError, match=r"operators\.calc_o\.filter: .*reflect"):
        conditions_of(replace(plan, operators=(*plan.operators[:-2], unsafe, sink)))


def test_joins_with_pushed_conditions_leave_the_same_rows() -> None:
    query = f"SELECT a.x, b.y FROM a JOIN b ON a.k = b.k AND a.x < b.y AND {WITHIN_HOURS}"
    plan = compile_sql(f"{TABLES} INSERT INTO o {query};")
    noon = dt.datetime(2024, 2, 29, 12)
    a = [(1, x, noon + dt.timedelta(hours=x)) for x in range(5)]
    b = [(1, y, noon + dt.timedelta(hours=y, minutes=1 if y == 6 else 0)) for y in range(8)]
    within = Pipeline(with_pushed_conditions(plan))
    above = Pipeline(plan)
    for left, right in ((a[:2], b[:5]), (a[2:], b[5:])):
        for pipeline in (within, above):
            pipeline.batch({"a": left, "b": right})
    # Hours x and y are at most four apart; y = 6 is a minute later.
    expected = {(x, y): 1 for x in range(5) for y in range(8) if x < y <= x + 4 and (x, y) != (2, 6)}
    assert within.result == above.result == expected
