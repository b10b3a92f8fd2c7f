"""JSON_ARRAYAGG and JSON_OBJECTAGG: each row's part of the document is computed below ARRAY_AGG, which keeps it.

The parts are combined above the aggregate, so the only state is ARRAY_AGG's. As in Flink, the names in an object are
sorted, and a name that is NULL or occurs twice makes the run fail.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions.functions.arguments import choose
from hintplan.planner.expressions.functions.json_values import JsonValue, json_member
from hintplan.planner.expressions.nested_parts import row_of
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    FIELD,
    INT,
    STRING,
    AggregateCallExpr,
    Expr,
    call,
    literal,
)
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.json_forms import ON_NULL
from hintplan.planner.translation.aggregates import inside
from hintplan.planner.translation.json_calls import part
from hintplan.planner.translation.translator import Translator
from hintplan.plans.declarations.types import DataType

_TEXTS = DataType(root="ARRAY", children=(STRING,))
_ENTRY = DataType(root="ROW", names=("name", "member"), children=(STRING, STRING))


def translate_json_aggregate(t: Translator, node: exp.Expr) -> Expr:
    """Translate a call to the document of its group, as STRING."""
    name, offset = node.name.upper(), offset_of(node)
    inner = inside(t, name, offset)
    *arguments, last = node.expressions
    clause = last if isinstance(last, exp.Kwarg) and last.name == ON_NULL else None
    if clause is None:
        arguments = [*arguments, last]
    wanted = 1 if name == "JSON_ARRAYAGG" else 2
    if len(arguments) != wanted:
        written = "one value" if wanted == 1 else "one name and one value"
        raise t.source.error(f"{name} takes {written}, found {len(arguments)}", offset, "aggregate one expression")
    value = part(inner, name, arguments[-1], offset)
    absent = clause.expression.name == "ABSENT" if clause is not None else name == "JSON_ARRAYAGG"
    if name == "JSON_ARRAYAGG":
        return _document("[", _all(value, value.text if absent else value.or_null, absent, offset), "]", offset)
    return _object(inner, arguments[0], value, absent=absent, offset=offset)


def _object(t: Translator, key: exp.Expr, value: JsonValue, *, absent: bool, offset: int) -> Expr:
    name = t.expression(key)
    if not name.type.is_text:
        message = f"a name in JSON_OBJECTAGG must be text, found {name.type.as_nullable()}"
        raise t.source.error(message, name.offset or offset, "write CAST(... AS STRING)")
    entry = row_of(_ENTRY, (name, json_member(name, value.or_null, offset)), offset)
    entries = _all(value, entry, absent, offset)
    names = call(FIELD, (entries, literal("name", STRING)), _TEXTS, offset)
    different = call("array_compact", (call("array_distinct", (names,), _TEXTS, offset),), _TEXTS, offset)
    counts = (call("size", (different,), INT, offset), call("size", (entries,), INT, offset))
    in_order = call("array_sort", (entries,), entries.type, offset)
    members = call(FIELD, (in_order, literal("member", STRING)), _TEXTS, offset)
    fault = literal("JSON_OBJECTAGG has a name in a group that is NULL, or there twice", STRING)
    return choose(
        call("<", counts, BOOLEAN, offset),
        call("raise_error", (fault,), STRING, offset),
        _document("{", members, "}", offset),
    )


def _all(value: JsonValue, kept: Expr, absent: bool, offset: int) -> Expr:
    """Collect ``kept`` for the rows of a group; if ``absent``, only for rows in which ``value`` is not NULL."""
    may_be_null = value.text != value.or_null
    where = call("IS NOT NULL", (value.text,), BOOLEAN, offset) if absent and may_be_null else None
    kind = DataType(root="ARRAY", children=(kept.type.as_nullable(),))
    return AggregateCallExpr(
        function="ARRAY_AGG", arguments=(kept,), distinct=False, filter=where, type=kind, offset=offset
    )


def _document(opening: str, parts: Expr, closing: str, offset: int) -> Expr:
    joined = call("array_join", (parts, literal(",", STRING)), STRING, offset)
    inside_of = call("coalesce", (joined, literal("", STRING)), STRING, offset)
    return call("concat", (literal(opening, STRING), inside_of, literal(closing, STRING)), STRING, offset)
