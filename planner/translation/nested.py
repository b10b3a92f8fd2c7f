"""Translates constructors of ROW, ARRAY and MAP, and access to their parts."""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions import nested, scalars
from hintplan.planner.expressions.typed import Expr
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import resolve_path
from hintplan.planner.translation.translator import Translator, only


def column(t: Translator, node: exp.Expr) -> Expr:
    """Translate a column, or a field of a column: ``a``, ``t.a``, ``a.b``, ``t.a.b.c``."""
    offset = offset_of(node)
    if isinstance(node.this, exp.Star):
        raise t.source.error("'*' is not allowed here", offset, "name the columns")
    assert isinstance(node, exp.Column)
    return resolve_path(t.source, t.scope, tuple(part.name for part in node.parts), offset)


def dotted(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``(expression).field``, ``arr[1].field``, and paths with more names than a column node has."""
    offset, name = offset_of(node), node.expression
    if isinstance(name, exp.Star):
        message = "'.*' is allowed only after a table or a column in the SELECT list"
        raise t.source.error(message, offset, "name the fields: (x).a, (x).b")
    if not isinstance(name, exp.Identifier):
        raise t.source.error("a function has no path here", offset, "write its name alone")
    whole = node.this
    names = [name.name]
    while isinstance(whole, exp.Dot) and isinstance(whole.expression, exp.Identifier):
        names.insert(0, whole.expression.name)
        whole = whole.this
    if isinstance(whole, exp.Column):
        return resolve_path(t.source, t.scope, (*(part.name for part in whole.parts), *names), offset)
    value = t.expression(whole)
    for field in names:
        value = nested.field(t.source, value, field, offset)
    return value


def bracket(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``arr[1]``, ``m['k']``, and the constructor ``MAP['k', 1]``."""
    offset, keys = offset_of(node), node.expressions
    if _is_word(node.this, "MULTISET"):
        raise scalars.unknown(t.source, "MULTISET", offset)
    if _is_word(node.this, "MAP"):
        return nested.map_constructor(t.source, tuple(t.expression(key) for key in keys), offset)
    if len(keys) != 1 or isinstance(keys[0], exp.Slice):
        raise t.source.error("'[...]' takes one position or key", offset, "write arr[1], or ARRAY_SLICE(arr, 1, 3)")
    return nested.item(t.source, t.expression(node.this), t.expression(keys[0]), offset)


def _is_word(node: exp.Expr, word: str) -> bool:
    plain = isinstance(node, exp.Column) and len(node.parts) == 1 and isinstance(node.this, exp.Identifier)
    return plain and node.name.upper() == word and not node.this.args.get("quoted")


def translate_array(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``ARRAY[a, b]``."""
    only(t.source, node, "expressions")
    return nested.array_constructor(t.source, tuple(t.expression(each) for each in node.expressions), offset_of(node))


def translate_row(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``ROW(a, b)`` or ``(a, b)``."""
    return nested.row_constructor(t.source, tuple(t.expression(each) for each in node.expressions), offset_of(node))
