"""Translates sqlglot's syntax trees of expressions to typed expressions, with Flink's meaning.

This module lists a function for each kind of node; unlisted nodes and unread parts of nodes are refused. Names are
resolved by :mod:`hintplan.planner.translation.scope`, function calls by :mod:`hintplan.planner.expressions.scalars` and
:mod:`hintplan.planner.translation.aggregates`.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.translation import function_calls, literals, nested, operators, periods
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Handler, Translator

_HANDLERS: dict[type, Handler] = {
    exp.Column: nested.column,
    exp.Dot: nested.dotted,
    exp.Bracket: nested.bracket,
    exp.Array: nested.translate_array,
    exp.Tuple: nested.translate_row,
    exp.Literal: literals.plain_literal,
    exp.RawString: literals.octets,
    exp.Cast: literals.typed_literal,
    exp.Interval: literals.interval,
    exp.Boolean: literals.truth_value,
    exp.Null: literals.null,
    exp.Paren: literals.in_parentheses,
    exp.And: operators.logic,
    exp.Or: operators.logic,
    exp.Not: operators.negation,
    **dict.fromkeys(operators.COMPARISONS, operators.comparison),
    **dict.fromkeys(operators.ARITHMETIC, operators.arithmetic_operation),
    exp.NullSafeEQ: operators.null_safe_equality,
    exp.NullSafeNEQ: operators.null_safe_equality,
    exp.Is: operators.is_condition,
    exp.Between: operators.between_bounds,
    exp.In: operators.in_list,
    exp.Like: operators.like,
    exp.Escape: operators.like,
    exp.SimilarTo: operators.similar,
    exp.Neg: operators.minus,
    exp.DPipe: operators.concatenation,
    exp.Case: operators.translate_case,
    exp.Anonymous: function_calls.function_call,
    exp.Filter: function_calls.filtered_aggregate,
    exp.Substring: function_calls.special_form("SUBSTRING", "this", "start", "length"),
    exp.StrPosition: function_calls.special_form("POSITION", "substr", "this"),
    exp.Extract: function_calls.extract,
    exp.Trim: function_calls.trim,
    **dict.fromkeys(
        (exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Exists), function_calls.sub_query
    ),
    exp.CurrentTimestamp: function_calls.special_form("CURRENT_TIMESTAMP"),
    exp.CurrentTime: function_calls.special_form("CURRENT_TIME"),
    exp.Localtime: function_calls.special_form("LOCALTIME"),
    exp.Overlaps: periods.overlaps,
    exp.CurrentDate: function_calls.special_form("CURRENT_DATE"),
    exp.Localtimestamp: function_calls.special_form("LOCALTIMESTAMP"),
}


def clause_translator(context: Context, scope: Scope, clause: str, *, aggregates: bool = False) -> Translator:
    """Return a translator for the expressions of a clause, which can call the declared functions."""
    return Translator(
        source=context.source,
        scope=scope,
        clause=clause,
        aggregates=aggregates,
        functions=context.catalog.functions,
        failed=context.catalog.failed,
        handlers=_HANDLERS,
    )
