"""Text beside numbers and times: read where Flink reads it, else refused with its place and what to write."""

from __future__ import annotations

import pytest

from hintplan.plans.errors import SqlError
from tests.planner.expressions.one_expression import expression_of, plan_of


@pytest.mark.parametrize(
    ("sql", "expression"),
    [
        ("i > '1.9'", "`i` > 1"),
        ("' -2 ' < i", "- 2 < `i`"),
        ("i IN ('1', '2')", "`i` IN ( 1 , 2 )"),
        ("p BETWEEN '1.255' AND '2'", "`p` BETWEEN 1.255 AND 2"),
        ("y >= '2024-01-31'", "`y` >= DATE '2024-01-31'"),
        ("y < s", "`y` < CAST ( `s` AS DATE )"),
        ("s > 5", "CAST ( CAST ( `s` AS DECIMAL ( 38 , 18 ) ) AS INT ) > 5"),
    ],
)
def test_a_text_is_read_as_the_other_side(sql: str, expression: str) -> None:
    assert expression_of(sql, "BOOLEAN")[0].sql == expression


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("i = '5'", "'=' does not take INT and STRING"),
        ("i IN ('1', 'x')", "'x' is no INT"),
        ("t < '128'", "'128' does not fit into TINYINT"),
        ("i < ''", "'' is no INT"),
        ("s IN (1, 2)", "IN does not take STRING and INT"),
        ("y < '2024-2-30'", "'2024-2-30' is not a DATE"),
        ("CASE WHEN o THEN i ELSE '1' END = 1", "the values of CASE have no common type"),
        ("CONVERT_TZ(s, 'UTC', 'Nowhere') = ''", "'Nowhere' is no time zone that CONVERT_TZ knows"),
    ],
)
def test_what_is_not_read_is_refused(sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_of(sql, "BOOLEAN")
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].hint
