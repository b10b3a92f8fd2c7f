"""sqlglot's syntax trees of expressions translated to typed expressions, with Flink's meaning.

One function per kind of node; a node or a part of a node that is not listed is refused. Names are resolved through
:mod:`planner.translation.scope`, function calls through :mod:`planner.expressions.scalars` and
:mod:`planner.translation.aggregates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from planner.context import FunctionEntry
from planner.expressions import scalars
from planner.expressions.casts import flink_cast
from planner.expressions.coercion import castable
from planner.expressions.comparisons import between, compared, is_in
from planner.expressions.functions.times import UNIT_FUNCTIONS, UNITS, unit_literal
from planner.expressions.likes import like_pattern
from planner.expressions.literals import interval_literal, number_literal, temporal_literal
from planner.expressions.operands import arithmetic, comparable, mismatch, not_distinct, shift_time
from planner.expressions.typed import BOOLEAN, NULL, STRING, Call, Expr, Literal, call, literal
from planner.syntax.dialect import offset_of
from planner.syntax.source import Source
from planner.translation import aggregates, grouping_sets
from planner.translation.calls import scalar_call
from planner.translation.scope import Scope, resolve
from plans.declarations.types import parse_type

__all__ = ["Translator", "only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """What an expression is translated in: the names it may use, and where it stands (``clause``, for messages).

    ``functions`` are the user-defined ones by name in lower case; None where none can be called. ``values`` are what
    sub-queries that are values are worth, by their place; none where there can be none.
    """

    source: Source
    scope: Scope
    clause: str
    aggregates: bool = False
    functions: Mapping[str, FunctionEntry] | None = None
    values: Mapping[int, Expr] = field(default_factory=dict)

    def expression(self, node: exp.Expr) -> Expr:
        """The typed expression for ``node``; SqlError where it is wrong or not supported."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            what, advice = _REFUSED.get(type(node), (f"{node.key.upper()} expressions", "write it another way"))
            raise self.source.error(f"{what} are not supported", offset_of(node), advice)
        if node.args.get("negate") and handler is not _like:  # what a version of sqlglot may say of other nodes, too
            raise self.source.error(f"NOT {node.key.upper()} is not supported", offset_of(node), "write NOT (...)")
        return handler(self, node)

    def condition(self, node: exp.Expr) -> Expr:
        """Like :meth:`expression`, but it must be boolean."""
        found = self.expression(node)
        return self.boolean(found, node)

    def boolean(self, found: Expr, node: exp.Expr) -> Expr:
        if found.type.root not in ("BOOLEAN", "NULL"):
            raise self.source.error(
                f"expected a condition, found {found.type}", offset_of(node), "compare it with something"
            )
        return found


def only(source: Source, node: exp.Expr, *known: str) -> None:
    """Refuse every part of ``node`` that the caller does not read."""
    for key, value in node.args.items():
        if key not in known and value:
            place = value[0] if isinstance(value, list) else value
            offset = offset_of(place) if isinstance(place, exp.Expr) else 0
            what = {"with_": "WITH", "from_": "FROM"}.get(key, key.replace("_", " ").upper())
            raise source.error(f"{what} is not supported here", offset or offset_of(node), "remove it")


Handler = Callable[[Translator, exp.Expr], Expr]


def _column(t: Translator, node: exp.Expr) -> Expr:
    offset = offset_of(node)
    if isinstance(node.this, exp.Star):
        raise t.source.error("'*' cannot stand here", offset, "name the columns")
    path = node.args.get("db")
    qualifier = node.args.get("table")
    if path is not None and qualifier is not None:
        raise t.source.error(
            f"'{path.name}.{qualifier.name}.{node.name}' has too many parts",
            offset,
            "write column or table.column; fields of a ROW cannot be read yet",
        )
    return resolve(t.source, t.scope, qualifier.name if qualifier else None, node.name, offset)


def _literal(t: Translator, node: exp.Expr) -> Expr:
    if node.args["is_string"]:
        return literal(node.name, STRING, offset_of(node))
    return number_literal(t.source, node.name, offset_of(node))


def _typed_literal(t: Translator, node: exp.Expr) -> Expr:
    """``DATE '...'`` and ``TIMESTAMP '...'``; CAST(...) does not come here."""
    offset = offset_of(node)
    kind = node.args["to"].this.name
    if not isinstance(node.this, exp.Literal) or kind not in ("DATE", "TIMESTAMP"):
        raise t.source.error(f"a {kind} literal is not supported", offset, "use CAST('...' AS <type>)")
    return temporal_literal(t.source, kind, node.this.name, offset)


def _interval(t: Translator, node: exp.Expr) -> Expr:
    unit = node.args.get("unit")
    value = node.this.name if isinstance(node.this, exp.Literal) else ""
    return interval_literal(t.source, value, unit.name if isinstance(unit, exp.Var) else "", offset_of(node))


def _boolean(t: Translator, node: exp.Expr) -> Expr:
    return literal("TRUE" if node.this else "FALSE", BOOLEAN, offset_of(node))


def _null(t: Translator, node: exp.Expr) -> Expr:
    return literal(None, NULL, offset_of(node))


def _paren(t: Translator, node: exp.Expr) -> Expr:
    return t.expression(node.this)


def _logic(t: Translator, node: exp.Expr) -> Expr:
    return call(
        "AND" if isinstance(node, exp.And) else "OR",
        (t.condition(node.this), t.condition(node.expression)),
        BOOLEAN,
        offset_of(node),
    )


def _not(t: Translator, node: exp.Expr) -> Expr:
    inner = t.condition(node.this)
    if isinstance(inner, Call) and inner.function == "IS NULL":
        return call("IS NOT NULL", inner.args, BOOLEAN, inner.offset)
    return call("NOT", (inner,), BOOLEAN, offset_of(node))


_COMPARISONS: dict[type, str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def _comparison(t: Translator, node: exp.Expr) -> Expr:
    operator, offset = _COMPARISONS[type(node)], offset_of(node)
    values = comparable(t.source, f"'{operator}'", (t.expression(node.this), t.expression(node.expression)), offset)
    return compared(operator, values, offset)


def _null_safe(t: Translator, node: exp.Expr) -> Expr:
    offset = offset_of(node)
    a, b = t.expression(node.this), t.expression(node.expression)
    if NULL in (a.type, b.type):
        value = a if b.type == NULL else b
        same: Expr = call("IS NULL", (value,), BOOLEAN, offset)
    else:
        same = not_distinct(t.source, "IS DISTINCT FROM", a, b, offset)
    return same if isinstance(node, exp.NullSafeEQ) else call("NOT", (same,), BOOLEAN, offset)


def _is(t: Translator, node: exp.Expr) -> Expr:
    offset = offset_of(node)
    value = t.expression(node.this)
    if isinstance(node.expression, exp.Null):
        return call("IS NULL", (value,), BOOLEAN, offset)
    if isinstance(node.expression, exp.Boolean):
        truth = t.boolean(value, node.this)
        wanted = truth if node.expression.this else call("NOT", (truth,), BOOLEAN, offset)
        return call("coalesce", (wanted, literal("FALSE", BOOLEAN, offset)), BOOLEAN, offset)
    raise t.source.error("this IS is not supported", offset, "write IS NULL, IS TRUE, IS FALSE or IS DISTINCT FROM")


def _between(t: Translator, node: exp.Expr) -> Expr:
    only(t.source, node, "this", "low", "high")
    parts = (t.expression(node.this), t.expression(node.args["low"]), t.expression(node.args["high"]))
    return between(comparable(t.source, "BETWEEN", parts, offset_of(node)), offset_of(node))


def _in(t: Translator, node: exp.Expr) -> Expr:
    query = node.args.get("query")
    if query is not None and offset_of(query) in t.values:
        return t.values[offset_of(query)]
    if query is not None:
        raise t.source.error(
            "IN (SELECT ...) is supported only in WHERE, below AND and OR",
            offset_of(node),
            "put it there, or write EXISTS (SELECT ... WHERE inner.x = outer.x)",
        )
    only(t.source, node, "this", "expressions")
    values = (t.expression(node.this), *(t.expression(e) for e in node.expressions))
    return is_in(comparable(t.source, "IN", values, offset_of(node)), offset_of(node))


def _like(t: Translator, node: exp.Expr) -> Expr:
    escape = None
    if isinstance(node, exp.Escape):
        escape = node.expression.name if isinstance(node.expression, exp.Literal) else ""
        node = node.this
    offset = offset_of(node)
    value, pattern = t.expression(node.this), node.expression
    if not isinstance(node, exp.Like) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise t.source.error("the pattern of LIKE must be a literal", offset_of(pattern), "write LIKE '...'")
    if not value.type.is_text:
        raise mismatch(t.source, "LIKE", value.type, STRING, offset)
    try:
        text = like_pattern(pattern.name, escape)
    except ValueError as error:
        raise t.source.error(str(error), offset_of(pattern), "write an escape before %, _ or itself") from None
    found = call("LIKE", (value, literal(text, STRING, offset_of(pattern))), BOOLEAN, offset)
    return call("NOT", (found,), BOOLEAN, offset) if node.args.get("negate") else found


_ARITHMETIC: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def _arithmetic(t: Translator, node: exp.Expr) -> Expr:
    operator, offset = _ARITHMETIC[type(node)], offset_of(node)
    left, right = t.expression(node.this), t.expression(node.expression)
    if "INTERVAL" in (left.type.root, right.type.root):
        return shift_time(t.source, operator, left, right, offset)
    if not (left.type.is_numeric and right.type.is_numeric):
        raise mismatch(t.source, f"'{operator}'", left.type, right.type, offset)
    return arithmetic(t.source, operator, left, right, offset)


def _negate(t: Translator, node: exp.Expr) -> Expr:
    value = t.expression(node.this)
    if not value.type.is_numeric:
        raise t.source.error(f"'-' does not take {value.type}", offset_of(node), "use a number")
    if isinstance(value, Literal) and value.text is not None and not value.text.startswith("-"):
        return literal("-" + value.text, value.type, offset_of(node))
    return call("NEGATE", (value,), value.type, offset_of(node))


def _concat(t: Translator, node: exp.Expr) -> Expr:
    values = (t.expression(node.this), t.expression(node.expression))
    for value, part in zip(values, (node.this, node.expression), strict=True):
        if not value.type.is_text:
            raise t.source.error(f"'||' does not take {value.type}", offset_of(part), "write CAST(... AS STRING)")
    return call("||", values, STRING, offset_of(node))


def _case(t: Translator, node: exp.Expr) -> Expr:
    offset = offset_of(node)
    subject = node.this if isinstance(node.this, exp.Expr) else None
    parts: list[Expr] = []
    for branch in node.args["ifs"]:
        if subject is None:
            parts.append(t.condition(branch.this))
        else:
            parts.append(_comparison(t, exp.EQ(this=subject.copy(), expression=branch.this)))
        parts.append(t.expression(branch.args["true"]))
    default = node.args.get("default")
    parts.append(t.expression(default) if default is not None else literal(None, NULL, offset))
    return scalars.case(t.source, tuple(parts), offset)


def _call(t: Translator, node: exp.Expr) -> Expr:
    name, offset = node.name.upper(), offset_of(node)
    if name in ("CAST", "TRY_CAST"):
        return _cast(t, node, name)
    if t.functions is not None and name.lower() in t.functions:
        return _user_call(t, node)
    if name in aggregates.NAMES:
        return aggregates.translate(t, node, None)
    if name in grouping_sets.FUNCTIONS:
        return grouping_sets.translate(t, node)
    if any(isinstance(a, exp.Distinct) for a in node.expressions):
        raise t.source.error(f"{name} does not take DISTINCT", offset, "remove DISTINCT")
    if name == "MOD" and len(node.expressions) == 2:
        return _arithmetic(t, exp.Mod(this=node.expressions[0], expression=node.expressions[1]))
    if name not in scalars.known_functions():
        return _user_call(t, node)
    return scalars.translate(t.source, name, tuple(_arguments(t, name, node)), offset)


def _arguments(t: Translator, name: str, node: exp.Expr) -> Iterator[Expr]:
    """The arguments of a call; the unit of TIMESTAMPADD and its like is a bare word."""
    for i, argument in enumerate(node.expressions):
        if i == 0 and name in UNIT_FUNCTIONS and isinstance(argument, exp.Column):
            if argument.name.upper() not in UNITS or argument.args.get("table"):
                raise t.source.error(
                    f"'{argument.name}' is not a unit", offset_of(argument), f"units are {', '.join(UNITS)}"
                )
            yield unit_literal(argument.name.upper(), offset_of(argument))
        else:
            yield t.expression(argument)


def _user_call(t: Translator, node: exp.Expr) -> Expr:
    name, offset = node.name, offset_of(node)
    if t.functions is None:
        message = f"{t.clause} can call built-in functions only, and '{name}' is none"
        raise t.source.error(message, offset, "call it in the query, or in a view")
    entry = t.functions.get(name.lower())
    if entry is None:
        scalar = [other for other, found in t.functions.items() if found.is_scalar]
        raise scalars.unknown(t.source, name, offset, scalar)
    return scalar_call(t.source, entry, name, tuple(t.expression(a) for a in node.expressions), offset)


def _cast(t: Translator, node: exp.Expr, name: str) -> Expr:
    value, target = node.expressions
    found, offset = t.expression(value), offset_of(node)
    try:
        data_type = parse_type(target.name)
    except ValueError as error:
        raise t.source.error(str(error), offset_of(target), "use a type such as BIGINT or STRING") from None
    if not castable(found.type, data_type):
        raise t.source.error(
            f"{name} from {found.type.as_nullable()} to {data_type} is not supported",
            offset,
            "Flink and Spark disagree on it, or it has no meaning; cast to another type",
        )
    if isinstance(found, Literal) and found.text is not None and found.type.is_text and data_type.root in ("DATE",):
        return temporal_literal(t.source, data_type.root, found.text, offset)
    return flink_cast(found, data_type, offset, function=name)


def _sub_query(t: Translator, node: exp.Expr) -> Expr:
    """A sub-query that was compiled before, see :mod:`planner.query.scalar_subqueries`."""
    offset = offset_of(node)
    if offset in t.values:
        return t.values[offset]
    if t.clause == "an aggregate":
        advice = "compute its value as a column of a sub-query in FROM"
        raise t.source.error("a sub-query inside an aggregate function is not supported", offset, advice)
    raise t.source.error(
        f"a sub-query cannot stand in {t.clause}", offset, "put it in SELECT, WHERE or HAVING, or join the tables"
    )


def _filter(t: Translator, node: exp.Expr) -> Expr:
    if not isinstance(node.this, exp.Anonymous) or node.this.name.upper() not in aggregates.NAMES:
        raise t.source.error("FILTER belongs to an aggregate function", offset_of(node), "remove it")
    return aggregates.translate(t, node.this, node.expression.this)


def _special(function: str, *parts: str) -> Handler:
    """A call that has a syntax of its own: its parts in order become the arguments of ``function``."""

    def handle(t: Translator, node: exp.Expr) -> Expr:
        only(t.source, node, *parts)
        arguments = (node.args.get(part) for part in parts)
        return scalars.translate(
            t.source, function, tuple(t.expression(a) for a in arguments if isinstance(a, exp.Expr)), offset_of(node)
        )

    return handle


def _extract(t: Translator, node: exp.Expr) -> Expr:
    return scalars.translate(t.source, node.name.upper(), (t.expression(node.expression),), offset_of(node))


def _trim(t: Translator, node: exp.Expr) -> Expr:
    only(t.source, node, "this", "position", "expression")
    character = node.args.get("expression")
    blank = character is None or (isinstance(character, exp.Literal) and character.name == " ")
    arguments = (t.expression(node.this), *([] if blank or character is None else [t.expression(character)]))
    function = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or "").upper(), "TRIM")
    return scalars.translate(t.source, function, arguments, offset_of(node))


_HANDLERS: dict[type, Handler] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Cast: _typed_literal,
    exp.Interval: _interval,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _not,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: _null_safe,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _like,
    exp.Neg: _negate,
    exp.DPipe: _concat,
    exp.Case: _case,
    exp.Anonymous: _call,
    exp.Filter: _filter,
    exp.Substring: _special("SUBSTRING", "this", "start", "length"),
    exp.StrPosition: _special("POSITION", "substr", "this"),
    exp.Extract: _extract,
    exp.Trim: _trim,
    **dict.fromkeys((exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Exists), _sub_query),
    exp.CurrentTimestamp: _special("CURRENT_TIMESTAMP"),
    exp.CurrentDate: _special("CURRENT_DATE"),
    exp.Localtimestamp: _special("LOCALTIMESTAMP"),
}

_JOIN_INSTEAD = "join the tables, or use IN (SELECT ...) or EXISTS as a condition of WHERE"
_REFUSED: dict[type, tuple[str, str]] = {
    exp.Window: ("window functions (OVER)", "use GROUP BY"),
    exp.Dot: ("fields of a ROW", "flatten the column when reading it"),
    exp.Bracket: ("elements of arrays and maps", "flatten the column when reading it"),
    exp.Star: ("'*' in expressions", "name the columns"),
    exp.Placeholder: ("placeholders", "write the value"),
    exp.All: ("comparisons with ALL", _JOIN_INSTEAD),
    exp.Any: ("comparisons with ANY", _JOIN_INSTEAD),
    exp.SimilarTo: ("SIMILAR TO conditions", "use LIKE"),
    exp.ILike: ("ILIKE conditions", "write UPPER(x) LIKE '...'"),
}
