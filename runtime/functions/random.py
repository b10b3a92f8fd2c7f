"""RAND, RAND_INTEGER and UUID. With a seed, they draw the same numbers as ``java.util.Random``, as in Flink.

A plan calls them like user-defined functions (:mod:`hintplan.plans.declarations.built_in`), so the values that they
draw for a row are pinned if anything depends on them.

>>> JavaRandom(42).integer(10), JavaRandom(42).double()
(0, 0.7275636800328681)
"""

from __future__ import annotations

import random
import uuid
from typing import ClassVar

from hintplan.plans.errors import RunError
from hintplan.runtime.functions.api import FunctionContext, ScalarFunction

_MASK = (1 << 48) - 1
_MULTIPLIER = 0x5DEECE66D
_INT_MAX = (1 << 31) - 1


class JavaRandom:
    """The sequence of ``java.util.Random`` that begins with ``seed``."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _bits(self, count: int) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> (48 - count)

    def double(self) -> float:
        """Return the next value in [0, 1)."""
        return float(((self._bits(26) << 27) + self._bits(27)) * 2.0**-53)

    def integer(self, bound: int) -> int:
        """Return the next value in [0, bound)."""
        if bound & -bound == bound:
            return (bound * self._bits(31)) >> 31
        while True:
            bits = self._bits(31)
            if bits - bits % bound + (bound - 1) <= _INT_MAX:
                return bits % bound


class _Sequences:
    """The sequences of an operator in this worker, by seed."""

    def __init__(self) -> None:
        self._known: dict[int, JavaRandom] = {}

    def of(self, seed: int) -> JavaRandom:
        if seed not in self._known:
            self._known[seed] = JavaRandom(seed)
        return self._known[seed]


def _checked(bound: int) -> int:
    if bound <= 0:
        raise RunError(
            f"RAND_INTEGER takes a bound above 0, found {bound}",
            hint="make the bound NULL where there is none: CASE WHEN bound > 0 THEN bound END",
        )
    return bound


class Rand(ScalarFunction):
    """RAND()."""

    arguments = ()
    result = "DOUBLE"
    deterministic: ClassVar[bool] = False

    def eval(self) -> float:
        return random.random()


class RandSeeded(ScalarFunction):
    """RAND(seed) with a constant seed: the next value of its sequence; each worker has its own sequence."""

    arguments = ("INT",)
    result = "DOUBLE"
    deterministic: ClassVar[bool] = False

    def open(self, context: FunctionContext) -> None:
        self._sequences = _Sequences()

    def eval(self, seed: int | None) -> float | None:
        return None if seed is None else self._sequences.of(seed).double()


class RandOfSeed(ScalarFunction):
    """RAND(seed) with a seed from the row: the first value of its sequence."""

    arguments = ("INT",)
    result = "DOUBLE"

    def eval(self, seed: int | None) -> float | None:
        return None if seed is None else JavaRandom(seed).double()


class RandInteger(ScalarFunction):
    """RAND_INTEGER(bound)."""

    arguments = ("INT",)
    result = "INT"
    deterministic: ClassVar[bool] = False

    def eval(self, bound: int | None) -> int | None:
        return None if bound is None else random.randrange(_checked(bound))


class RandIntegerSeeded(ScalarFunction):
    """RAND_INTEGER(seed, bound) with a constant seed."""

    arguments = ("INT", "INT")
    result = "INT"
    deterministic: ClassVar[bool] = False

    def open(self, context: FunctionContext) -> None:
        self._sequences = _Sequences()

    def eval(self, seed: int | None, bound: int | None) -> int | None:
        if seed is None or bound is None:
            return None
        return self._sequences.of(seed).integer(_checked(bound))


class RandIntegerOfSeed(ScalarFunction):
    """RAND_INTEGER(seed, bound) with a seed from the row."""

    arguments = ("INT", "INT")
    result = "INT"

    def eval(self, seed: int | None, bound: int | None) -> int | None:
        return None if seed is None or bound is None else JavaRandom(seed).integer(_checked(bound))


class Uuid(ScalarFunction):
    """UUID(): version 4, as text."""

    arguments = ()
    result = "STRING"
    deterministic: ClassVar[bool] = False

    def eval(self) -> str:
        return str(uuid.uuid4())
