"""The operator `values` in a plan: its columns, what `explain` says of it, what hand edits are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import check_columns, output_columns
from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.compare.carryover import carried
from hintplan.plans.compare.query_record import query_records
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import GivenColumn, Values
from hintplan.plans.show.explain import plan_tree

X = GivenColumn(name="x", type="BIGINT")


def compiled(query: str) -> Plan:
    files = "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x')"
    sink = "CREATE TABLE s (x BIGINT, y STRING) WITH ('connector' = 'print');"
    return compile_sql(f"CREATE TABLE a (x BIGINT, y STRING) {files}; {sink} INSERT INTO s {query};")


def shown(plan: Plan) -> str:
    (line,) = (line for line in plan_tree(plan).splitlines() if "values_" in line)
    return line.split("values_s")[1].strip()


def test_explain_shows_the_rows_and_how_many_there_are_of_many() -> None:
    assert shown(compiled("VALUES (1, 'a'), (2, 'b')")) == "VALUES (1, 'a'), (2, 'b') AS (x, y)"
    many = ", ".join(f"({n}, 'row number {n}')" for n in range(40))
    assert shown(compiled(f"VALUES {many}")) == (
        "VALUES (0, 'row number 0'), (1, 'row number 1'), (2, 'row number 2'), ... AS (x, y) · 40 rows"
    )


def test_its_rows_are_only_added_and_have_the_columns_that_it_says() -> None:
    plan = compiled("VALUES (1, 'a')")
    assert output_kinds(plan)["values_s"] == ("+I",)
    assert [(c.name, c.type) for c in output_columns(plan)["values_s"]] == [("x", "BIGINT"), ("y", "STRING")]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rows": (("1",),)}, "operators.values_s.rows[0]: this row has 1 value, the operator 2 columns"),
        ({"columns": (X, X)}, "operators.values_s.columns: two columns are called 'x'"),
        (
            {"columns": (X, GivenColumn(name="__y", type="INT"))},
            "operators.values_s.columns: column names that start with __ are reserved: '__y'",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(changes: dict[str, Any], problem: str) -> None:
    values, sink = compiled("VALUES (1, 'a')").operators
    assert isinstance(values, Values)
    found = check_columns(Plan(name="p", operators=(replace(values, **changes), sink)))[1]
    assert f"{found[0].path}: {found[0].message}" == problem


def test_other_rows_are_another_source_which_begins() -> None:
    old, new = (
        compiled("SELECT x, y FROM a UNION ALL VALUES (1, 'a')"),
        compiled("SELECT x, y FROM a UNION ALL VALUES (2, 'a')"),
    )
    before, after = (query_records(plan, queries(plan)) for plan in (old, new))
    (same,), (other,) = carried(before, before), carried(before, after)
    assert same.sources == ()
    assert [(source.operator, source.outcome) for source in other.sources] == [
        ("values_s", "new"),
        ("values_s", "left behind"),
    ]
