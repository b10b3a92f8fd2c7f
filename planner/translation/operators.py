"""Conditions, arithmetic and CASE: expressions with operators and keywords instead of calls."""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions import scalars
from hintplan.planner.expressions.comparisons import between, compared, is_in
from hintplan.planner.expressions.likes import like_pattern, similar_pattern
from hintplan.planner.expressions.nested_parts import is_constructor
from hintplan.planner.expressions.operands import (
    arithmetic,
    comparison_operands,
    is_not_distinct,
    mismatch,
    mixed_moments,
    shift_time,
)
from hintplan.planner.expressions.texts_read import read_texts
from hintplan.planner.expressions.typed import BOOLEAN, NULL, STRING, Call, Expr, Literal, call, literal
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.json_calls import translate_is_json
from hintplan.planner.translation.translator import Translator, only
from hintplan.plans.declarations.patterns import SLOW_HINT, slow_pattern


def logic(t: Translator, node: exp.Expr) -> Expr:
    """Translate AND and OR."""
    return call(
        "AND" if isinstance(node, exp.And) else "OR",
        (t.condition(node.this), t.condition(node.expression)),
        BOOLEAN,
        offset_of(node),
    )


def negation(t: Translator, node: exp.Expr) -> Expr:
    """Translate NOT."""
    inner = t.condition(node.this)
    if isinstance(inner, Call) and inner.function == "IS NULL":
        return call("IS NOT NULL", inner.args, BOOLEAN, inner.offset)
    return call("NOT", (inner,), BOOLEAN, offset_of(node))


COMPARISONS: dict[type, str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def comparison(t: Translator, node: exp.Expr) -> Expr:
    """Translate a comparison of two values, or of a value with ANY or ALL of a list."""
    operator, offset = COMPARISONS[type(node)], offset_of(node)
    listed = node.expression
    if isinstance(listed, exp.Anonymous) and listed.name.upper() in ("ANY", "SOME", "ALL"):
        return _compared_with_list(t, node, listed)
    if (isinstance(listed, exp.All) and operator == "=") or (isinstance(listed, exp.Any) and operator == "<>"):
        what = "'= ALL' of a sub-query" if isinstance(listed, exp.All) else "'<> ANY' of a sub-query below NOT or OR"
        advice = (
            "write [NOT] EXISTS (SELECT ... WHERE inner.x <> outer.x): Flink 2.3 answers it in another way than "
            "standard SQL"
        )
        raise t.source.error(f"{what} is not supported", offset, advice)
    pair = read_texts(t.source, operator, (t.expression(node.this), t.expression(node.expression)))
    return compared(operator, comparison_operands(t.source, f"'{operator}'", pair, offset), offset)


def _compared_with_list(t: Translator, node: exp.Expr, listed: exp.Anonymous) -> Expr:
    """Translate ``x > ANY (1, 2)`` to alternatives, and ``x > ALL (1, 2)`` to conditions that must all be true."""
    logic_of = "AND" if listed.name.upper() == "ALL" else "OR"
    combined: Expr | None = None
    for value in listed.expressions:
        condition = comparison(t, type(node)(this=node.this.copy(), expression=value.copy()))
        combined = condition if combined is None else call(logic_of, (combined, condition), BOOLEAN, condition.offset)
    if combined is None:
        raise t.source.error(f"{listed.name.upper()} needs a value", offset_of(listed), "write ANY (1, 2)")
    return combined


def null_safe_equality(t: Translator, node: exp.Expr) -> Expr:
    """Translate IS [NOT] DISTINCT FROM."""
    offset = offset_of(node)
    a, b = t.expression(node.this), t.expression(node.expression)
    if any(each.type.root == "ROW" and is_constructor(each) for each in (a, b)):
        message = "IS DISTINCT FROM of rows such as (a, b) is not supported"
        raise t.source.error(
            message, offset, "compare each column: Flink 2.3 answers it in another way than standard SQL"
        )
    if NULL in (a.type, b.type):
        value = a if b.type == NULL else b
        same: Expr = call("IS NULL", (value,), BOOLEAN, offset)
    else:
        same = is_not_distinct(t.source, "IS DISTINCT FROM", a, b, offset)
    return same if isinstance(node, exp.NullSafeEQ) else call("NOT", (same,), BOOLEAN, offset)


def is_condition(t: Translator, node: exp.Expr) -> Expr:
    """Translate IS NULL, IS TRUE, IS FALSE and IS JSON."""
    offset = offset_of(node)
    value = t.expression(node.this)
    if isinstance(node.expression, exp.Null):
        return call("IS NULL", (value,), BOOLEAN, offset)
    if isinstance(node.expression, exp.Boolean):
        truth = t.boolean(value, node.this)
        wanted = truth if node.expression.this else call("NOT", (truth,), BOOLEAN, offset)
        return call("coalesce", (wanted, literal("FALSE", BOOLEAN, offset)), BOOLEAN, offset)
    if isinstance(node.expression, exp.JSON):
        return translate_is_json(t, node)
    raise t.source.error("this IS is not supported", offset, "write IS NULL, IS TRUE, IS FALSE or IS DISTINCT FROM")


def between_bounds(t: Translator, node: exp.Expr) -> Expr:
    """Translate BETWEEN; with SYMMETRIC, the bounds may come in either order."""
    only(t.source, node, "this", "low", "high", "symmetric")
    offset = offset_of(node)
    operands = (node.this, node.args["low"], node.args["high"])
    parts = read_texts(t.source, "BETWEEN", tuple(map(t.expression, operands)))
    if not mixed_moments(parts):
        parts = comparison_operands(t.source, "BETWEEN", parts, offset)
    value, low, high = parts
    in_range = _between(t, value, low, high, offset)
    if not node.args.get("symmetric"):
        return in_range
    return call("OR", (in_range, _between(t, value, high, low, offset)), BOOLEAN, offset)


def _between(t: Translator, value: Expr, low: Expr, high: Expr, offset: int) -> Expr:
    """Compare with both bounds; a mix of TIMESTAMP and TIMESTAMP_LTZ needs a common type for each bound."""
    if not mixed_moments((value, low, high)):
        return between((value, low, high), offset)
    bounds = ((">=", (value, low)), ("<=", (value, high)))
    parts = (compared(o, comparison_operands(t.source, f"'{o}'", pair, offset), offset) for o, pair in bounds)
    return call("AND", tuple(parts), BOOLEAN, offset)


def in_list(t: Translator, node: exp.Expr) -> Expr:
    """Translate IN with a list; return the value of IN with a sub-query that is compiled already."""
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
    values = read_texts(t.source, "IN", values)
    return is_in(comparison_operands(t.source, "IN", values, offset_of(node)), offset_of(node))


def like(t: Translator, node: exp.Expr) -> Expr:
    """Translate LIKE with a literal pattern."""
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
    condition = call("LIKE", (value, literal(text, STRING, offset_of(pattern))), BOOLEAN, offset)
    return call("NOT", (condition,), BOOLEAN, offset) if node.args.get("negate") else condition


def similar(t: Translator, node: exp.Expr) -> Expr:
    """Translate SIMILAR TO with a literal pattern."""
    offset = offset_of(node)
    value, pattern = t.expression(node.this), node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise t.source.error("the pattern of SIMILAR TO must be a literal", offset_of(pattern), "write it out")
    if not value.type.is_text:
        raise mismatch(t.source, "SIMILAR TO", value.type, STRING, offset)
    try:
        text = similar_pattern(pattern.name)
    except ValueError as error:
        raise t.source.error(str(error), offset_of(pattern), "use LIKE, or REGEXP") from None
    if (slow := slow_pattern(text)) is not None:
        raise t.source.error(f"the pattern of SIMILAR TO {slow}", offset_of(pattern), SLOW_HINT)
    return call("regexp_like", (value, literal(text, STRING, offset_of(pattern))), BOOLEAN, offset)


ARITHMETIC: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def arithmetic_operation(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``+ - * / %`` of two numbers, or of a time and an interval."""
    operator, offset = ARITHMETIC[type(node)], offset_of(node)
    left, right = t.expression(node.this), t.expression(node.expression)
    if "INTERVAL" in (left.type.root, right.type.root):
        return shift_time(t.source, operator, left, right, offset)
    if not (left.type.is_numeric and right.type.is_numeric):
        raise mismatch(t.source, f"'{operator}'", left.type, right.type, offset)
    return arithmetic(t.source, operator, left, right, offset)


def minus(t: Translator, node: exp.Expr) -> Expr:
    """Translate the sign of a number."""
    value = t.expression(node.this)
    if not value.type.is_numeric:
        raise t.source.error(f"'-' does not take {value.type}", offset_of(node), "use a number")
    if isinstance(value, Literal) and value.text is not None and not value.text.startswith("-"):
        return literal("-" + value.text, value.type, offset_of(node))
    return call("NEGATE", (value,), value.type, offset_of(node))


def concatenation(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``||`` of two texts."""
    values = (t.expression(node.this), t.expression(node.expression))
    for value, part in zip(values, (node.this, node.expression), strict=True):
        if not value.type.is_text:
            raise t.source.error(f"'||' does not take {value.type}", offset_of(part), "write CAST(... AS STRING)")
    return call("||", values, STRING, offset_of(node))


def translate_case(t: Translator, node: exp.Expr) -> Expr:
    """Translate CASE, with or without a subject."""
    offset = offset_of(node)
    subject = node.this if isinstance(node.this, exp.Expr) else None
    parts: list[Expr] = []
    for branch in node.args["ifs"]:
        if subject is None:
            parts.append(t.condition(branch.this))
        else:
            parts.append(comparison(t, exp.EQ(this=subject.copy(), expression=branch.this)))
        parts.append(t.expression(branch.args["true"]))
    default = node.args.get("default")
    parts.append(t.expression(default) if default is not None else literal(None, NULL, offset))
    return scalars.case_expression(t.source, tuple(parts), offset)
