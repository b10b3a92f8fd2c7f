"""Functions of ARRAY and MAP. As in Flink, they search for NULL and remove it like any other element."""

from __future__ import annotations

from hintplan.planner.expressions.coercion import cast, common_data_type, implicitly_assignable
from hintplan.planner.expressions.functions.arguments import (
    Builder,
    as_pattern,
    check_arguments,
    choose,
    integer_or_none,
    literal_text,
    nonempty_text_literal,
)
from hintplan.planner.expressions.typed import BOOLEAN, INT, NULL, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_ENTRY = ("key", "value")
_UNSORTED = ("ARRAY", "MAP", "MULTISET", "ROW", "BYTES", "BINARY", "VARBINARY")


def _elements(source: Source, name: str, args: tuple[Expr, ...], offset: int, kind: str = "ARRAY") -> DataType:
    """Return the element type of the first argument, which must be an ARRAY; for a MAP, return the type of its keys."""
    if not args or args[0].type.root != kind:
        actual = args[0].type.as_nullable() if args else "nothing"
        place = (args[0].offset if args else 0) or offset
        advice = f"write CAST(NULL AS {kind}<...>)" if args and args[0].type == NULL else f"give it an {kind}"
        raise source.error(f"argument 1 of {name} must be {_article(kind)}, found {actual}", place, advice)
    return args[0].type.children[0]


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "ARRAY" else f"a {kind}"


def _is_null(value: Expr) -> Expr:
    return call("IS NULL", (value,), BOOLEAN, value.offset)


def _is_set(value: Expr) -> bool:
    """Return True if ``value`` is a constant other than NULL."""
    return isinstance(value, Literal) and value.text is not None


def _with_element(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> tuple[Expr, Expr]:
    """Return an array and a value of its element type; raise SqlError for a value of another type, as Flink does."""
    check_arguments(source, name, args, ("any", "any"), offset)
    kind = _elements(source, name, args, offset)
    if not implicitly_assignable(args[1].type, kind):
        message = f"argument 2 of {name} must be {kind}, found {args[1].type.as_nullable()}"
        raise source.error(message, args[1].offset or offset, f"convert it: CAST(... AS {kind})")
    return args[0], cast(args[1], kind, offset)


def _contains(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ARRAY_CONTAINS, which is TRUE or FALSE unless the array is NULL.

    Spark returns NULL for a NULL value, and for no match in an array with a NULL.
    """
    whole, value = _with_element(source, name, args, offset)
    _refuse_unordered(source, name, value, offset, maps_only=True)
    match = call("array_contains", (whole, value), BOOLEAN, offset)
    contained: Expr = call("coalesce", (match, literal("FALSE", BOOLEAN)), BOOLEAN, offset)
    if not _is_set(value):
        # An array contains NULL if it is shorter without NULLs.
        without = call("size", (call("array_compact", (whole,), whole.type, offset),), INT, offset)
        some = call("<", (without, call("size", (whole,), INT, offset)), BOOLEAN, offset)
        contained = choose(_is_null(value), some, contained)
    return choose(_is_null(whole), literal(None, BOOLEAN), contained)


def _position(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    whole, value = _with_element(source, name, args, offset)
    _refuse_unordered(source, name, value, offset, maps_only=True)
    return call("CAST", (call("array_position", (whole, value), INT, offset),), INT, offset)


def _remove(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    whole, value = _with_element(source, name, args, offset)
    _refuse_unordered(source, name, value, offset, maps_only=True)
    if isinstance(value, Literal) and value.text is None:
        return call("array_compact", (whole,), whole.type, offset)
    removed = call("array_remove", (whole, value), whole.type, offset)
    if _is_set(value):
        return removed
    return choose(_is_null(value), call("array_compact", (whole,), whole.type, offset), removed)


def _refuse_unordered(source: Source, name: str, value: Expr, offset: int, *, maps_only: bool = False) -> None:
    if value.type.has_entries or (not maps_only and value.type.root in _UNSORTED):
        raise source.error(f"{name} does not take elements of type {value.type.root}", offset, "use UNNEST")


def _added(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    return call(name.lower(), (pair := _with_element(source, name, args, offset)), pair[0].type, offset)


def _same(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ARRAY_DISTINCT and ARRAY_REVERSE."""
    check_arguments(source, name, args, ("any",), offset)
    kind = _elements(source, name, args, offset)
    if kind.has_entries and name == "ARRAY_DISTINCT":
        raise source.error(f"{name} does not take elements of type {kind.root}", offset, "use UNNEST")
    return call({"ARRAY_REVERSE": "reverse"}.get(name, name.lower()), args, args[0].type, offset)


_SPARK_OF_SEVERAL = {"ARRAY_CONCAT": "concat", "MAP_UNION": "map_concat"}


def _of_several(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile functions of several arrays or maps, converted to their common type."""
    kinds = ("any*",) if name in _SPARK_OF_SEVERAL else ("any", "any")
    check_arguments(source, name, args, kinds, offset)
    root = name.partition("_")[0]
    for place, arg in enumerate(args, 1):
        if arg.type.root != root:
            message = f"argument {place} of {name} must be {_article(root)}, found {arg.type.as_nullable()}"
            raise source.error(message, arg.offset or offset, f"use an {root}")
    kind = common_data_type([arg.type for arg in args])
    if kind is None:
        types = ", ".join(str(arg.type.as_nullable()) for arg in args)
        raise source.error(f"the arguments of {name} have no common type: {types}", offset, "convert them with CAST")
    if kind.children[0].has_entries and name in ("ARRAY_EXCEPT", "ARRAY_INTERSECT", "ARRAY_UNION"):
        raise source.error(f"{name} does not take elements of type {kind.children[0].root}", offset, "use UNNEST")
    converted = tuple(cast(arg, kind, offset) for arg in args)
    if len(converted) == 1:
        return converted[0]
    return call(_SPARK_OF_SEVERAL.get(name, name.lower()), converted, kind, offset)


def _extreme(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any",), offset)
    kind = _elements(source, name, args, offset)
    if kind.root in _UNSORTED:
        raise source.error(f"{name} does not take elements of type {kind.root}", offset, "use UNNEST")
    return call(name.lower(), args, kind, offset)


def _sort(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ARRAY_SORT: ascending with NULLs first, or descending with NULLs last, unless the call places NULLs."""
    check_arguments(source, name, args, ("any", "boolean?", "boolean?"), offset)
    kind = _elements(source, name, args, offset)
    if kind.root in _UNSORTED:
        raise source.error(f"{name} does not take elements of type {kind.root}", offset, "use UNNEST")
    flags = [_truth(source, name, arg, offset) for arg in args[1:]]
    up = flags[0] if flags else True
    nulls_first = flags[1] if len(flags) > 1 else up
    if nulls_first == up:
        return call("sort_array", (args[0], *([] if up else [literal("FALSE", BOOLEAN)])), args[0].type, offset)
    ascending = call("array_sort", args[:1], args[0].type, offset)
    return ascending if up else call("reverse", (ascending,), args[0].type, offset)


def _truth(source: Source, name: str, value: Expr, offset: int) -> bool:
    if not isinstance(value, Literal) or value.text is None:
        message = f"the order of {name} must be TRUE or FALSE, written out"
        raise source.error(message, value.offset or offset, "choose between two calls with CASE")
    return value.text.upper() == "TRUE"


def _slice(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ARRAY_SLICE: both positions count from 1, or from the end if negative; 0 means 1."""
    check_arguments(source, name, args, ("any", "integer", "integer?"), offset)
    _elements(source, name, args, offset)
    for place, arg in enumerate(args[1:], 2):
        if arg.type != INT:
            message = f"argument {place} of {name} must be INT, found {arg.type.as_nullable()}"
            raise source.error(message, arg.offset or offset, "write CAST(... AS INT)")
    size = call("size", args[:1], INT, offset)
    start = _from_front(args[1], size, offset)
    if (number := integer_or_none(start)) is None or number < 1:
        start = call("greatest", (start, literal(1, INT)), INT, offset)
        nothing = [arg for arg in args[1:2] if not isinstance(arg, Literal) or arg.text is None]
    else:
        nothing = []
    end = _from_front(args[2], size, offset) if len(args) == 3 else size
    length = call("+", (call("-", (end, start), INT, offset), literal(1, INT)), INT, offset)
    length = call("greatest", (length, literal(0, INT)), INT, offset)
    result: Expr = call("slice", (args[0], start, length), args[0].type, offset)
    nothing += [arg for arg in args[2:] if not isinstance(arg, Literal) or arg.text is None]
    for arg in nothing:  # Spark's GREATEST ignores NULLs
        result = choose(_is_null(arg), literal(None, args[0].type), result)
    return result


def _from_front(position: Expr, size: Expr, offset: int) -> Expr:
    """Return the position counted from the front; it is below 1 if ``position`` is before the first element."""
    number = integer_or_none(position)
    if number is not None and number >= 0:
        return literal(max(number, 1), INT)
    last = call("+", (size, literal(1, INT)), INT, offset)
    if number is not None:
        return call("-", (last, literal(-number, INT)), INT, offset)
    from_end = call("+", (last, position), INT, offset)
    at_least_one = call("greatest", (position, literal(1, INT)), INT, offset)
    return choose(call("<", (position, literal(0, INT)), BOOLEAN, offset), from_end, at_least_one)


def _join(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any", "text", "text?"), offset)
    if not _elements(source, name, args, offset).is_text:
        message = f"argument 1 of {name} must be ARRAY<STRING>, found {args[0].type.as_nullable()}"
        raise source.error(message, args[0].offset or offset, "convert it: CAST(... AS ARRAY<STRING>)")
    return call("array_join", args, STRING, offset)


def _element(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ELEMENT: the only element of an array, or NULL if it is empty; several elements make the run fail."""
    check_arguments(source, name, args, ("any",), offset)
    kind = _elements(source, name, args, offset)
    several = call(">", (call("size", args, INT, offset), literal(1, INT)), BOOLEAN, offset)
    message = literal("ELEMENT is given an array that has more than one element", STRING)
    only = call("get", (args[0], literal(0, INT)), kind, offset)
    return choose(several, call("raise_error", (message,), kind, offset), only)


def _cardinality(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any",), offset)
    if args[0].type.root not in ("ARRAY", "MAP"):
        message = f"argument 1 of {name} must be an ARRAY or a MAP, found {args[0].type.as_nullable()}"
        advice = "count the rows of an UNNEST" if args[0].type.root == "MULTISET" else "use CHAR_LENGTH for text"
        raise source.error(message, args[0].offset or offset, advice)
    return call("size", args, INT, offset)


def _of_map(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile MAP_KEYS, MAP_VALUES and MAP_ENTRIES."""
    check_arguments(source, name, args, ("any",), offset)
    _elements(source, name, args, offset, "MAP")
    keys, values = args[0].type.children
    entry = DataType(root="ROW", names=_ENTRY, children=(keys, values))
    inside = {"MAP_KEYS": keys, "MAP_VALUES": values, "MAP_ENTRIES": entry}[name]
    return call(name.lower(), args, DataType(root="ARRAY", children=(inside,)), offset)


def _from_arrays(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any", "any"), offset)
    keys, values = _elements(source, name, args, offset), _elements(source, name, args[1:], offset)
    return call("map_from_arrays", args, DataType(root="MAP", children=(keys, values)), offset)


def _to_map(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile STR_TO_MAP. Separators are patterns in Flink and Spark; only Spark returns an entry for empty text."""
    check_arguments(source, name, args, ("text", "text?", "text?"), offset)
    if len(args) == 2:
        raise source.error(f"{name} takes 1 or 3 arguments, found 2", offset, "write both separators")
    separators = [nonempty_text_literal(source, f"a separator of {name}", each, offset) for each in args[1:]] or [
        ",",
        "=",
    ]
    kind = DataType(root="MAP", children=(STRING, STRING))
    entries = call("str_to_map", (args[0], *(literal(each, STRING) for each in separators)), kind, offset)
    empty = call("=", (args[0], literal("", STRING)), BOOLEAN, offset)
    return choose(empty, call("map", (), kind, offset), entries)


def _split(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile SPLIT: an empty separator splits into characters, and empty text gives an empty array."""
    check_arguments(source, name, args, ("text", "text"), offset)
    kind = DataType(root="ARRAY", children=(STRING,))
    separator = literal_text(args[1])
    if separator is None:
        message = f"the separator of {name} must be a literal"
        raise source.error(message, args[1].offset or offset, "write it in quotes")
    parts = call("split", (args[0], literal(as_pattern(separator), STRING)), kind, offset)
    empty = call("=", (args[0], literal("", STRING)), BOOLEAN, offset)
    return choose(empty, call("CAST", (call("array", (), kind, offset),), kind, offset), parts)


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(("ARRAY_APPEND", "ARRAY_PREPEND"), _added),
    **dict.fromkeys(("ARRAY_CONCAT", "ARRAY_EXCEPT", "ARRAY_INTERSECT", "ARRAY_UNION", "MAP_UNION"), _of_several),
    "ARRAY_CONTAINS": _contains,
    **dict.fromkeys(("ARRAY_DISTINCT", "ARRAY_REVERSE"), _same),
    "ARRAY_JOIN": _join,
    **dict.fromkeys(("ARRAY_MAX", "ARRAY_MIN"), _extreme),
    "ARRAY_POSITION": _position,
    "ARRAY_REMOVE": _remove,
    "ARRAY_SLICE": _slice,
    "ARRAY_SORT": _sort,
    "CARDINALITY": _cardinality,
    "ELEMENT": _element,
    **dict.fromkeys(("MAP_ENTRIES", "MAP_KEYS", "MAP_VALUES"), _of_map),
    "MAP_FROM_ARRAYS": _from_arrays,
    "SPLIT": _split,
    "STR_TO_MAP": _to_map,
}
