"""Constructors of ROW, ARRAY and MAP, and access to their parts, with Flink's semantics.

A missing element of an ARRAY is NULL, and so is the value of a missing key in a MAP. Positions count from 1 in SQL, and
from 0 in Spark's ``get``.

>>> from hintplan.planner.expressions.typed import literal
>>> two = array_constructor(Source(text=""), (literal(1, INT), literal("2.5", parse_type("DECIMAL(2, 1)"))), 0)
>>> str(two.type), str(item(Source(text=""), two, literal(2, INT), 0).type)
('ARRAY<DECIMAL(11, 1)>', 'DECIMAL(11, 1)')
"""

from __future__ import annotations

from hintplan.planner.expressions.coercion import cast, common_data_type, implicitly_assignable
from hintplan.planner.expressions.nested_parts import field_at, row_of
from hintplan.planner.expressions.typed import INT, NULL, VALUE, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.text.names import did_you_mean

__all__ = ["array_constructor", "field", "item", "map_constructor", "parse_type", "row_constructor"]


def field(source: Source, whole: Expr, name: str, offset: int) -> Expr:
    """Return the field ``name`` of a ROW; raise SqlError if there is none."""
    if whole.type.root != "ROW":
        message = f"'{name}' cannot be read of {whole.type.as_nullable()}: only a ROW has fields"
        raise source.error(message, offset, "use arr[1] for an element, and m['k'] for the value of a key")
    if name not in whole.type.names:
        raise source.error(
            f"unknown field '{name}' of {whole.type.as_nullable()}",
            offset,
            did_you_mean(name, whole.type.names, what="fields"),
        )
    return field_at(whole, whole.type.names.index(name), offset)


def item(source: Source, whole: Expr, key: Expr, offset: int) -> Expr:
    """Return ``whole[key]``: an element, the value of a key, or a field by name or position; raise SqlError if none."""
    root = whole.type.root
    if root == "ROW":
        return _row_item(source, whole, key, offset)
    if root == "ARRAY":
        return _element(source, whole, key, offset)
    if root != "MAP":
        raise source.error(f"'[...]' does not take {whole.type.as_nullable()}", offset, "use an ARRAY, MAP or ROW")
    of, value = whole.type.children
    if not implicitly_assignable(key.type, of):
        message = f"the keys of this MAP are {of}, found {key.type.as_nullable()}"
        raise source.error(message, key.offset or offset, f"convert the key: CAST(... AS {of})")
    wanted = key if isinstance(key, Literal) and of.is_text else cast(key, of, offset)
    return call(VALUE, (whole, wanted), value, offset)


def _element(source: Source, whole: Expr, key: Expr, offset: int) -> Expr:
    place = key.offset or offset
    if key.type != INT:
        message = f"the position of an element must be INT, found {key.type.as_nullable()}"
        raise source.error(message, place, "convert it: CAST(... AS INT)")
    index: Expr
    if isinstance(key, Literal) and key.text is not None:
        if int(key.text) < 1:
            raise source.error(f"elements of an array count from 1, found {key.text}", place, "write arr[1]")
        index = literal(int(key.text) - 1, INT)
    else:
        index = call("-", (key, literal(1, INT)), INT, offset)
    return call("get", (whole, index), whole.type.children[0], offset)


def _row_item(source: Source, whole: Expr, key: Expr, offset: int) -> Expr:
    if isinstance(key, Literal) and key.text is not None and key.type.is_text:
        return field(source, whole, key.text, offset)
    places = range(1, len(whole.type.children) + 1)
    if isinstance(key, Literal) and key.type.is_integer and key.text is not None and int(key.text) in places:
        return field_at(whole, int(key.text) - 1, offset)
    message = f"a field of {whole.type.as_nullable()} is read by its name, or its place from 1 to {len(places)}"
    raise source.error(message, key.offset or offset, "write a literal, or row.field")


def row_constructor(source: Source, values: tuple[Expr, ...], offset: int) -> Expr:
    """Return ``ROW(a, b)``, with Flink's default names for its fields."""
    if not values:
        raise source.error("a ROW needs at least one value", offset, "write ROW(a, b)")
    if any(value.type == NULL for value in values):
        raise source.error("NULL in a ROW needs a type", offset, "write CAST(NULL AS <type>)")
    names = tuple(f"EXPR${place}" for place in range(len(values)))
    return row_of(DataType(root="ROW", names=names, children=_types(values)), values, offset)


def array_constructor(source: Source, values: tuple[Expr, ...], offset: int) -> Expr:
    """Return ``ARRAY[a, b]``, with the common type of all elements."""
    if not values:
        raise source.error("an ARRAY needs at least one element", offset, "write ARRAY[a, b]")
    kind = DataType(root="ARRAY", children=(_shared(source, "ARRAY", "elements", values, offset),))
    return call("array", tuple(cast(value, kind.children[0], value.offset) for value in values), kind, offset)


def map_constructor(source: Source, values: tuple[Expr, ...], offset: int) -> Expr:
    """Return ``MAP[k, v, ...]``, with the common types of the keys and of the values."""
    if not values or len(values) % 2:
        raise source.error("a MAP needs keys and values in turn", offset, "write MAP['k', v]")
    parts = (("keys", values[::2]), ("values", values[1::2]))
    kinds = tuple(_shared(source, "MAP", what, some, offset) for what, some in parts)
    converted = tuple(cast(value, kinds[place % 2], value.offset) for place, value in enumerate(values))
    return call("map", converted, DataType(root="MAP", children=kinds), offset)


def _shared(source: Source, name: str, what: str, values: tuple[Expr, ...], offset: int) -> DataType:
    common = common_data_type(_types(values))
    if common is None:
        types = ", ".join(dict.fromkeys(map(str, _types(values))))
        raise source.error(f"the {what} of this {name} have no common type: {types}", offset, "convert them with CAST")
    if common == NULL:
        raise source.error(f"the {what} of this {name} need a type", offset, "write CAST(NULL AS <type>)")
    return common


def _types(values: tuple[Expr, ...]) -> tuple[DataType, ...]:
    return tuple(value.type.as_nullable() for value in values)
