"""Integer expressions at random, and what Java makes of them: computed exactly, and cut to the width of their type."""

from __future__ import annotations

import random
from dataclasses import dataclass

BITS = {"t": 8, "s": 16, "i": 32, "b": 64}
"""Columns, by the width of their type."""
ROWS = [
    {"t": -128, "s": -32768, "i": -(1 << 31), "b": -(1 << 63)},
    {"t": 127, "s": 32767, "i": (1 << 31) - 1, "b": (1 << 63) - 1},
    {"t": -1, "s": -1, "i": -1, "b": -1},
    {"t": 7, "s": -300, "i": 123_456_789, "b": -1_234_567_890_123_456_789},
    {"t": 1, "s": 0, "i": None, "b": 3},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """An expression, the width of its type, and its value in each of ``ROWS``."""

    text: str
    bits: int
    values: tuple[int | None, ...]


def _cut(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def number(rng: random.Random, depth: int = 3) -> Number:
    """An expression of at most ``depth`` operators on top of each other."""
    choice = rng.random()
    if depth == 0 or choice < 0.15:
        if rng.random() < 0.3:
            value = rng.choice((1, 2, 31, 1000, 2_000_000_000, 3_000_000_000, 1 << 62))
            return Number(text=str(value), bits=32 if value < 1 << 31 else 64, values=(value,) * len(ROWS))
        name = rng.choice("tsib")
        return Number(text=name, bits=BITS[name], values=tuple(row[name] for row in ROWS))
    first = number(rng, depth - 1)
    if choice < 0.3:
        sign = rng.choice(("-", "abs"))
        made = [None if v is None else _cut(-v if sign == "-" else abs(v), first.bits) for v in first.values]
        return Number(text=f"{sign}({first.text})", bits=first.bits, values=tuple(made))
    second = number(rng, depth - 1)
    operator, bits = rng.choice("+-*"), max(first.bits, second.bits)
    values: list[int | None] = []
    for a, b in zip(first.values, second.values, strict=True):
        if a is None or b is None:
            values.append(None)
        else:
            values.append(_cut({"+": a + b, "-": a - b, "*": a * b}[operator], bits))
    return Number(text=f"({first.text}) {operator} ({second.text})", bits=bits, values=tuple(values))
