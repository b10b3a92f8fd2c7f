"""Conditions of outer joins have the numbers that Flink has where a cast does not fit (docs/functions/numbers.md)."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.condition import compile_filter, compile_values
from tests.runtime.expressions.checking import checked_over
from tests.runtime.integers import BITS, ROWS, number

INT = (
    "CASE WHEN isnan(x) THEN 0L WHEN x <= -2147483648L THEN -2147483648L "
    "WHEN x >= 2147483647L THEN 2147483647L ELSE x END"
)


def value_of(text: str, values: list, kind: pa.DataType) -> list:
    table = pa.table({"x": pa.array(values, kind)})
    return compile_values(checked_over(text, ["x"]), table.schema).answers(table, table, len(values)).to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([999.994, 999.996, -1e3, 1e300, float("nan"), None], pa.float64(), ["999.99", None, None, None, None, None]),
        ([999, -999, 1000, 2**62, None], pa.int64(), ["999.00", "-999.00", None, None, None]),
        ([*map(Decimal, ("999.9949", "999.9951", "-12.3456"))], pa.decimal128(20, 4), ["999.99", None, "-12.35"]),
    ],
)  # fmt: skip
def test_a_number_with_too_many_digits_is_null(values: list, kind: pa.DataType, expected: list) -> None:
    wanted = [None if text is None else Decimal(text) for text in expected]
    assert value_of("try_cast(x AS DECIMAL(5, 2))", values, kind) == wanted


def test_a_shorter_integer_has_the_lowest_bits() -> None:
    # 70,000 is 65,536 and 4,464 more; 2^31 is the sign of an INT.
    shorter = "CAST(shiftright(shiftleft(x, 16), 16) AS SMALLINT)"
    assert value_of(shorter, [70_000, -70_000, 5], pa.int32()) == [4_464, -4_464, 5]
    shorter = "CAST(shiftright(shiftleft(x, 32), 32) AS INT)"
    assert value_of(shorter, [2**31, 2**32 + 7, -(2**31) - 1], pa.int64()) == [-(2**31), 7, 2**31 - 1]


def test_a_double_becomes_the_nearest_integer() -> None:
    values = [float("nan"), 1e30, -1e30, 2.9, -2.9, None]
    assert value_of(f"CAST({INT} AS INT)", values, pa.float64()) == [0, 2**31 - 1, -(2**31), 2, -2, None]


def test_what_arrow_cannot_do_is_refused_by_name() -> None:
    with pytest.raises(RunError, match=r"a join condition cannot contain TRY_CAST\(x AS DATE\)"):
        compile_filter(checked_over("try_cast(x AS DATE) IS NULL", ["x"]), pa.schema([("x", pa.string())]))


def test_integers_of_all_widths_wrap_around() -> None:
    rng = random.Random(6)
    kinds = {name: getattr(pa, f"int{bits}")() for name, bits in BITS.items()}
    table = pa.table({name: pa.array([row[name] for row in ROWS], kind) for name, kind in kinds.items()})
    for _ in range(300):
        wanted = number(rng)
        compiled = compile_values(checked_over(wanted.text, table.column_names), table.schema)
        found = compiled.answers(table, table, len(ROWS))
        assert tuple(found.to_pylist()) == wanted.values, wanted.text


def test_division_by_minus_one_wraps_around_and_by_zero_fails() -> None:
    assert value_of("x div -1", [-(2**31), 5, None], pa.int32()) == [-(2**31), -5, None]
    assert value_of("x div x", [-(2**63), -1, None], pa.int64()) == [1, 1, None]
    with pytest.raises(RunError, match=r"filter: x DIV 0: division by zero"):
        value_of("x div 0", [1], pa.int32())


def test_not_like_is_the_opposite_of_like() -> None:
    values = ["abc", "xbc", None]
    assert value_of("x LIKE 'a%'", values, pa.string()) == [True, False, None]
    assert value_of("x NOT LIKE 'a%'", values, pa.string()) == [False, True, None]
    assert value_of("NOT x LIKE 'a%'", values, pa.string()) == [False, True, None]


def test_a_result_of_38_digits_keeps_them_all() -> None:
    most = Decimal("9" * 38)
    kind = pa.decimal128(38, 0)
    assert value_of("try_multiply(x, -1)", [most, Decimal(-7)], kind) == [Decimal("-" + "9" * 38), Decimal(7)]
    assert value_of("try_subtract(x, CAST(1 AS DECIMAL(38, 0)))", [most], kind) == [Decimal("9" * 37 + "8")]
    assert value_of("try_add(x, x)", [most, Decimal(7)], kind) == [None, Decimal(14)]
    assert value_of("x + x", [most, Decimal(7)], kind) == [None, Decimal(14)]
    assert value_of("x * 2 - x", [most, Decimal(7)], kind) == [None, Decimal(7)]


def test_bits_are_shifted_as_far_as_the_sign() -> None:
    assert value_of("shiftleft(x, 31)", [1, 2, -1], pa.int32()) == [-(2**31), 0, -(2**31)]
    assert value_of("shiftright(x, 63)", [-(2**63), 2**63 - 1], pa.int64()) == [-1, 0]
