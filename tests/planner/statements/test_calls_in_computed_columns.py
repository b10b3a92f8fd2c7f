"""A computed column that calls a function of the user is the call in a sub-query, and costs nothing unread."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.plans.model.plan import Plan

FUNCTIONS = """
CREATE FUNCTION clean AS 'tests.planner.declared.Clean' LANGUAGE PYTHON;
CREATE FUNCTION words AS 'tests.planner.declared.Words' LANGUAGE PYTHON;
CREATE TABLE k (a BIGINT, b STRING) WITH ('connector' = 'print');
"""
PLAIN = "CREATE TABLE t (id BIGINT, c STRING) WITH ('connector' = 'datagen');"
COMPUTED = PLAIN.replace("c STRING", "c STRING, d AS clean(UPPER(c))")
WITHIN = """
CREATE TABLE o (id BIGINT, p AS PROCTIME()) WITH ('connector' = 'datagen');
CREATE TABLE t (id BIGINT, c STRING{computed})
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 't');
"""


def compiled(sql: str) -> Plan:
    return compile_sql(FUNCTIONS + sql, name="job", allow_modules=["tests.planner.declared"])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, d FROM {t}",
        "SELECT id, c FROM {t} WHERE d <> 'x'",
        "SELECT COUNT(*), d FROM {t} GROUP BY d",
        "SELECT t.id, w FROM {t}, LATERAL TABLE(words(d)) AS W(w)",
        "SELECT t.id, clean(d) FROM {t}",
        "SELECT id, c FROM {t}",
    ],
)
def test_a_computed_column_is_the_call_in_its_place(query: str) -> None:
    asked = compiled(f"{COMPUTED} INSERT INTO k {query.format(t='t')}")
    below = "(SELECT id, c, clean(UPPER(c)) AS d FROM t) AS t"
    written = compiled(f"{PLAIN} INSERT INTO k {query.format(t=below)}")
    assert [operator.id for operator in asked.operators] == [operator.id for operator in written.operators]
    assert asked.operators == written.operators
    assert asked.functions == written.functions
    assert asked.tables["t"].columns[-1].expression == "clean(UPPER(c))"


def test_a_computed_column_of_a_table_that_is_looked_up_is_the_call_in_its_place() -> None:
    join = "FROM o JOIN t FOR SYSTEM_TIME AS OF o.p ON o.id = t.id"
    asked = compiled(f"{WITHIN.format(computed=', d AS clean(c)')} INSERT INTO k SELECT t.id, d {join}")
    written = compiled(f"{WITHIN.format(computed='')} INSERT INTO k SELECT t.id, clean(c) {join}")
    assert [type(o) for o in asked.operators] == [type(o) for o in written.operators]
    assert asked.functions == written.functions
