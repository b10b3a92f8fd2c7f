"""What Arrow would take too lightly in values from user code: fractions for integers, and rows of another shape.

Arrow cuts 1.5 to 1 for an integer, and a dict without a field of a ROW gives NULL. Here both are refused, at any depth.

>>> from plans.types import parse_type
>>> converter(parse_type("ARRAY<ROW<a INT, b STRING>>"))([{"b": "x", "a": 1}, (2, "y")])
[(1, 'x'), (2, 'y')]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plans.types import DataType

__all__ = ["Converter", "converter", "row_values"]

Converter = Callable[[Any], Any]

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def converter(kind: DataType) -> Converter | None:
    """What makes values of ``kind`` fit for Arrow, or raises TypeError or ValueError; None if Arrow itself will do."""
    children = [converter(child) for child in kind.children]
    if kind.root in _INTEGERS:
        return _integer
    if kind.root == "ROW":
        return lambda value: None if value is None else _converted(row_values(value, kind.names), children)
    if kind.root == "ARRAY" and (element := children[0]):
        return lambda value: None if value is None else [element(each) for each in value]
    if kind.root == "MAP" and any(children):
        return lambda value: None if value is None else [_converted(pair, children) for pair in _pairs(value)]
    return None


def row_values(value: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """The values of a row with fields ``names``: a tuple or list in their order, or a dict by name."""
    if isinstance(value, Mapping):
        if len(value) == len(names) and all(name in value for name in names):
            return tuple(value[name] for name in names)
        lacking = [f"it lacks {name!r}" for name in names if name not in value]
        unknown = [f"{name!r} is no field" for name in value if name not in names]
        raise ValueError(", ".join(lacking + unknown))
    if not isinstance(value, tuple | list):
        raise TypeError("it is neither a tuple, nor a list, nor a dict")
    if len(value) != len(names):
        raise ValueError(f"it has {len(value)} {'value' if len(value) == 1 else 'values'}, not {len(names)}")
    return tuple(value)


def _converted(values: Sequence[Any], converters: Sequence[Converter | None]) -> tuple[Any, ...]:
    return tuple(convert(value) if convert else value for value, convert in zip(values, converters, strict=True))


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else list(value)


def _integer(value: Any) -> Any:
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        raise ValueError(f"{value!r} is no whole number")
    return value
