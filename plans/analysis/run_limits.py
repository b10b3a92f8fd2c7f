"""What a run takes on at most, checked wherever a plan is: the depth of a plan, and the nesting of its expressions.

A plan may come from a stranger, and Spark walks both plans and expressions recursively, on a stack that ends.

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
from hintplan.plans.operators import Operator, kind_of

MAX_DEPTH = 300
"""Operators on one path from a source to a sink: 300 calcs run on Spark 4.3; with 1,000, its analyser's stack ends."""

MAX_NESTING = 200
"""Levels of brackets and CASE in an expression."""

_RECURSION_LIMIT = 6000
"""sqlglot takes some 20 Python frames for a level of nesting, and a chain of 1,000 conditions is as deep a tree."""

_LONG = 400
_MARKS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\w+|[()\[\]]""", re.DOTALL)
_STEPS = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for what walks syntax trees, which are as deep as an expression is nested or chained."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def check_depth(plan: Plan) -> Iterator[Diagnostic]:
    """The first operator of a proper graph that stands too deep below a source."""
    depths: dict[str, int] = {}
    for operator in plan.operators:
        depths[operator.id] = 1 + max((depths.get(name, 0) for name in operator.inputs), default=0)
        if depths[operator.id] > MAX_DEPTH:
            yield Diagnostic(
                message=f"more than {MAX_DEPTH} operators stand on one path from a source to '{operator.id}'",
                path=f"operators.{operator.id}",
                hint="write what comes out half-way to a table, and read it in a second plan",
            )
            return


def check_nesting(plan: Plan) -> Iterator[Diagnostic]:
    """Every expression that is nested too deep."""
    for operator in plan.operators:
        for path, text in expressions_of(operator):
            if len(text) > MAX_NESTING and nesting(text) > MAX_NESTING:
                message = f"the expression is nested more than {MAX_NESTING} levels deep"
                where = f"operators.{operator.id}.{path}"
                yield Diagnostic(message=message, path=where, hint="compute it in several steps")


def nesting(text: str) -> int:
    """The most brackets and CASEs of a Spark expression that are open at once; literals and names aside."""
    depth = most = 0
    for mark in _MARKS.findall(text):
        depth += _STEPS.get(mark.lower(), 0)
        most = max(most, depth)
    return most


def expressions_of(operator: Operator) -> Iterator[tuple[str, str]]:
    """The expressions of an operator, each with its path below it."""
    found = kind_of(operator).expressions(operator)
    yield from ((path, text) for path, text in found if text is not None)


def check_sizes(plan: Plan) -> Iterator[Diagnostic]:
    """Long expressions that a run would refuse for the number or chaining of their parts.

    Only a parser tells, so the runtime is asked; not of short ones, which cannot have as many.
    """
    for operator in plan.operators:
        for path, text in expressions_of(operator):
            if len(text) > _LONG:
                try:
                    load("hintplan.runtime.expressions.allowed:refuse_size")(text, operator=operator.id, path=path)
                except RunError as error:
                    for found in error.diagnostics:
                        yield replace(found, path=f"operators.{operator.id}.{path}")
