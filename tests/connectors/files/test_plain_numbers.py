"""Plain numbers are recognised as the grammar of JSON has them."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from random import Random

import pyarrow as pa
import pytest

from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.text_values import are_plain_numbers, column_of
from tests.sample import gate_seed

PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""RFC 8259, section 6, without the exponent."""
DECIMALS = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
"""The texts without a plus sign that java.math.BigDecimal takes, as Spark does for a DECIMAL, without exponents."""
ODD = [
    "", "-", ".", "-.", "--1", "1-", "1-2", "01", "-01", "00", "1.", ".5", "-.5", "1..2", "1.2.3", "0.", "+1", "1/2",
    "1e5", "1E5", "null", "true", " 1", "1 ", "1,2", "a", "\u0661",
]  # fmt: skip
RIGHT = ["0", "-0", "10", "-10", "0.5", "-0.5", "0.05", "100.25", "9" * 30, "1.0"]


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_text_among_numbers(odd: str) -> None:
    for place in range(3):
        texts = [*RIGHT[:place], odd, *RIGHT[place:]]
        assert not are_plain_numbers(pa.array(texts)), texts
        assert not are_plain_numbers(pa.array(["x", *texts]).slice(1)), texts


def test_numbers_are_plain() -> None:
    assert are_plain_numbers(pa.array(RIGHT))
    assert are_plain_numbers(pa.array(["x", *RIGHT, "x"]).slice(1, len(RIGHT)))
    for right in RIGHT:
        assert are_plain_numbers(pa.array([right, right]))
    assert are_plain_numbers(pa.array(["1", None, "2"]))
    assert not are_plain_numbers(pa.array(["1", None, ""]))


def test_random_texts_are_plain_if_the_grammar_has_them() -> None:
    chance = Random(gate_seed())
    for _ in range(20_000):
        texts = ["".join(chance.choices("-.0129", k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        assert are_plain_numbers(pa.array(texts)) == all(PLAIN.fullmatch(text) for text in texts), texts


def test_random_texts_as_decimals() -> None:
    """The digits behind the scale are left to Spark, which rounds them."""
    chance = Random(gate_seed())
    for _ in range(5_000):
        precision = chance.choice([3, 5, 18, 19, 38])
        scale = chance.randint(0, min(precision, 18))
        texts = [_random_text(chance) for _ in range(chance.randint(1, 4))]
        column = pa.array(texts, pa.string()).take(pa.array(range(len(texts))))
        found = column_of(column, parse_type(f"DECIMAL({precision}, {scale})"))
        values = [_decimal(text, precision, scale) for text in texts]
        if all(text is None or value is not None for text, value in zip(texts, values, strict=True)):
            assert found is not None, (texts, precision, scale)
            found.validate(full=True)
            assert found.to_pylist() == values, (texts, precision, scale)
        else:
            assert found is None, (texts, precision, scale)


def _random_text(chance: Random) -> str | None:
    kind = chance.random()
    if kind < 0.1:
        return None
    if kind < 0.3:
        return "".join(chance.choices("-.0129", k=chance.randint(0, 5)))
    whole = "".join(chance.choices("0123456789", k=chance.choice([1, 1, 2, 3, 17, 18, 19, 20])))
    return chance.choice(["", "-"]) + whole + chance.choice(["", ".", "." + "".join(chance.choices("0123456789", k=2))])


def _decimal(text: str | None, precision: int, scale: int) -> Decimal | None:
    """Return the value of a text; None if it has none, more digits than the scale, or more than the precision."""
    if text is None or DECIMALS.fullmatch(text) is None:
        return None
    with localcontext(prec=60):
        value = Decimal(text)
        rounded = value.quantize(Decimal(1).scaleb(-scale))
    fits = value == rounded and abs(rounded) < Decimal(10) ** (precision - scale)
    return rounded if fits else None
