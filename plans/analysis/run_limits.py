"""The limits of a run, checked together with a plan: the depth of the plan, and the nesting of its expressions.

A plan may come from a stranger, and Spark walks plans and expressions recursively on a stack of limited size.

>>> nesting("CASE WHEN f(')') THEN (1) END"), nesting("a + b")
(2, 0)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hintplan.plans.errors import Diagnostic, RunError
from hintplan.plans.lazy import load
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

MAX_DEPTH = 300
"""Operators on one path from a source to a sink: Spark 4.3 runs 300 calcs; 1,000 overflow its analyser's stack."""

MAX_NESTING = 200
"""The maximum number of nested brackets and CASEs in an expression."""

_RECURSION_LIMIT = 6000
"""sqlglot uses some 20 Python frames per level of nesting, and parses a chain of 1,000 conditions to a tree as deep."""

_LONG = 400
_MARKS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\w+|[()\[\]]""", re.DOTALL)
_STEPS = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the recursion limit for walks of syntax trees, which are as deep as expressions are nested or chained."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def check_depth(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for the first operator of a valid graph that is too far above a source."""
    depths: dict[str, int] = {}
    for operator in plan.operators:
        depths[operator.id] = 1 + max((depths.get(name, 0) for name in operator.inputs), default=0)
        if depths[operator.id] > MAX_DEPTH:
            yield Diagnostic(
                message=f"more than {MAX_DEPTH} operators are on one path from a source to '{operator.id}'",
                path=f"operators.{operator.id}",
                hint="write an intermediate result to a table, and read the table in a second plan",
            )
            return


def check_nesting(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for every expression that is nested too deeply."""
    for operator in plan.operators:
        for path, text in expressions_of(operator):
            if len(text) > MAX_NESTING and nesting(text) > MAX_NESTING:
                message = f"the expression is nested more than {MAX_NESTING} levels deep"
                where = f"operators.{operator.id}.{path}"
                yield Diagnostic(message=message, path=where, hint="compute it in several steps")


def nesting(text: str) -> int:
    """Return the maximum number of open brackets and CASEs in a Spark expression, ignoring literals and quotes."""
    depth = most = 0
    for mark in _MARKS.findall(text):
        depth += _STEPS.get(mark.lower(), 0)
        most = max(most, depth)
    return most


def expressions_of(operator: Operator) -> Iterator[tuple[str, str]]:
    """Yield the expressions of an operator, each with its path below the operator."""
    expressions = operator.expressions()
    yield from ((path, text) for path, text in expressions if text is not None)


def check_sizes(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each long expression with more parts than a run accepts.

    The check needs a parser, so the runtime makes it. Short expressions are skipped, because they cannot have as many
    parts.
    """
    for operator in plan.operators:
        for path, text in expressions_of(operator):
            if len(text) > _LONG:
                try:
                    load("hintplan.runtime.expressions.allowed:refuse_size")(text, operator=operator.id, path=path)
                except RunError as error:
                    for problem in error.diagnostics:
                        yield replace(problem, path=f"operators.{operator.id}.{path}")
