"""Java's texts of DOUBLE and FLOAT, which depend on the version of Java.

``Double.toString`` of Java 19 and later writes the fewest digits that identify a number. Earlier versions stop by
another rule: 2.0E23 is 1.9999999999999998E23 there.

>>> java_text(2e23, single=False, java=21), java_text(1e10, single=False, java=17)
('2.0E23', '1.0E10')
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_SHORTEST_SINCE = 19
_BITS_OF_5 = [0, *(len(f"{5**power:b}") for power in range(1, 27))]
"""Java's table of the bits of powers of five, with 0 for 1."""


def java_text(value: float, *, single: bool, java: int) -> str:
    """Return ``Double.toString``, or ``Float.toString`` for a ``single``, in this version of Java."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    size = abs(value)
    if math.isinf(size):
        return f"{sign}Infinity"
    if size == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest(size, single) if java >= _SHORTEST_SINCE else _before_19(size, single)
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-1 - exponent)}{digits}"
    return f"{sign}{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


def _shortest(size: float, single: bool) -> tuple[str, int]:
    """Return the shortest digits without trailing zeros, and the exponent of the first digit."""
    number: np.floating[Any] = np.float32(size) if single else np.float64(size)
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="-").split("e")
    digits = mantissa.replace(".", "").rstrip("0")
    if len(digits) == 1:  # of the numbers with two digits, Java takes the closest
        mantissa, exponent = f"{size:.1e}".split("e")
        digits = mantissa.replace(".", "").rstrip("0")
    return digits, int(exponent)


def _before_19(size: float, single: bool) -> tuple[str, int]:
    """Return the digits of Java's ``FloatingDecimal.dtoa``, without trailing zeros, and the exponent of the first."""
    mantissa, binary = math.frexp(size)
    binary -= 1
    significant = min(24, binary + 150) if single else min(53, binary + 1075)  # fewer bits in subnormal numbers
    fraction = int(mantissa * 2**53)
    used = (fraction // (fraction & -fraction)).bit_length()
    tiny = max(0, used - binary - 1)
    if tiny == 0 and binary <= 62:
        return _of_integer(int(size), binary, significant)
    decimal = math.floor((mantissa * 2 - 1.5) * 0.289529654 + 0.176091259 + binary * 0.301029995663981)
    b5, s5 = max(0, -decimal), max(0, decimal)
    b2, s2 = b5 + binary + tiny, s5 + tiny
    m2 = b2 - significant
    b2 -= used - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common - (used == 1)
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    bits = max(used + b2 + _bits_of_5(b5), s2 + 1 + _bits_of_5(s5 + 1))
    width = next((width for width in (32, 64) if bits < width), 0)
    rest, unit, margin = (fraction >> (53 - used)) * 5**b5 << b2, 5**s5 << s2, 5**b5 << m2

    def step() -> tuple[int, bool, bool]:
        """Return the next digit, and whether the digits so far, or the digits plus one, identify the number."""
        nonlocal rest, margin
        digit, rest = divmod(rest, unit)
        rest, margin = rest * 10, _wrapped(margin * 10, width)
        if not width:
            return digit, rest < margin, rest + margin >= unit * 10
        return digit, rest < margin, _wrapped(rest + margin, width) > unit * 10

    digit, low, high = step()
    digits = [digit]
    if digit == 0 and not high:
        decimal -= 1
        digits = []
    if decimal < -3 or decimal >= 8:  # a number with an exponent has two digits
        low = high = False
    while not (low or high):
        digit, low, high = step()
        digits.append(digit)
        if margin <= 0:
            low = high = True
    written = int("".join(map(str, digits)))
    if high and not (low and (rest * 2 < unit * 10 or (rest * 2 == unit * 10 and written % 2 == 0))):
        written += 1
    text = str(written)
    return text.rstrip("0"), decimal + len(text) - len(digits)


def _wrapped(number: int, width: int) -> int:
    """Return a number that overflows in Java's integers of so many bits; 0 stands for integers without limits."""
    if not width:
        return number
    half = 1 << (width - 1)
    return (number + half) % (1 << width) - half


def _of_integer(value: int, binary: int, significant: int) -> tuple[str, int]:
    """Return the digits of an integer; digits below the precision of the number are rounded."""
    power = binary - significant - 1
    dropped = int(power * math.log10(2)) if power > 1 else 0
    if dropped:
        value, rest = divmod(value, 10**dropped)
        value += rest >= 10**dropped // 2
    digits = str(value)
    return digits.rstrip("0"), len(digits) - 1 + dropped


def _bits_of_5(power: int) -> int:
    """Return Java's estimate of the bits of a power of five."""
    return _BITS_OF_5[power] if power < len(_BITS_OF_5) else power * 3
