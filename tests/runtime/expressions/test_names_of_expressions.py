"""A plan that `validate` accepts calls no function, and reads no column, that a run refuses for it."""

from __future__ import annotations

from hintplan.plans.errors import RunError
from hintplan.plans.expressions.names import columns_named, refused_function
from hintplan.runtime.expressions.allowed import check_expression
from tests.runtime.expressions.test_every_expression import VALUES, expressions, of_odd_shape

DANGEROUS = (
    "reflect('java.lang.System', 'getenv')",
    "java_method('a', 'b')",
    "input_file_name()",
    "coalesce(user(), s)",
    "i > 1 AND s.reflect('a')",
    "`reflect`('a')",
    "CASE WHEN o THEN uuid() END",
    "s IN (current_user(), 'a')",
    "rand ()",
    "from_json(s, 'a INT')",
    "aggregate(arr, 0, (x, y) -> x + y)",
    "raise_error(session_user())",
    "count(i)",
)
"""Calls that run code, read something, or are none of one row."""


def test_validate_knows_the_functions_and_columns_that_a_run_takes() -> None:
    columns = {(name,): name for name in VALUES}

    def taken(text: str) -> bool:
        try:
            check_expression(text, columns, operator="c", path="p")
        except RunError:
            return False
        return True

    allowed = [text for text in (*expressions(), *of_odd_shape()) if taken(text)]
    assert len(allowed) > 3000
    for text in allowed:
        assert refused_function(text) is None, text
        assert {column[0] for column in columns_named(text)} <= set(VALUES), text
    for text in DANGEROUS:
        assert not taken(text), text
        assert refused_function(text) is not None, text
