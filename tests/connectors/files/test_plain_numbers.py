"""Plain numbers are recognised as the grammar of JSON has them."""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pytest

from hintplan.runtime.connectors.filesystem.text_values import are_plain_numbers
from tests.sample import gate_seed

PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""RFC 8259, section 6, without the exponent."""
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
    assert not are_plain_numbers(pa.array(["1", None]))


def test_random_texts_are_plain_if_the_grammar_has_them() -> None:
    chance = Random(gate_seed())
    for _ in range(20_000):
        texts = ["".join(chance.choices("-.0129", k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        assert are_plain_numbers(pa.array(texts)) == all(PLAIN.fullmatch(text) for text in texts), texts
