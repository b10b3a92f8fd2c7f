"""Trees and differences in the words of the author: expressions, sides of joins, views; and on narrow screens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.compare.carryover import carried
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.query_record import query_records
from hintplan.plans.compare.report import changes_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Rank
from hintplan.plans.show.explain import explain_json, plan_tree
from hintplan.plans.show.page import plan_page
from hintplan.plans.show.picture import picture

TABLES = """
CREATE TABLE orders (id BIGINT, raw STRING, segment STRING, total DECIMAL(10, 2), ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE lines (order_id BIGINT, sku STRING, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'l', 'format' = 'json');
CREATE TABLE hours (hour_of TIMESTAMP(3), a STRING, segment STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE flat (id BIGINT, segment STRING, total DECIMAL(10, 2)) WITH ('connector' = 'print');
"""
JOB = f"""{TABLES}
CREATE VIEW latest AS SELECT id, raw, segment, total, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn FROM orders) AS numbered WHERE rn = 1;
INSERT INTO hours SELECT FLOOR(o.ts TO HOUR), JSON_VALUE(o.raw, '$.a'), o.segment, COUNT(*)
FROM latest AS o JOIN lines AS l ON o.id = l.order_id AND (l.qty > 3 OR o.total > 5)
GROUP BY FLOOR(o.ts TO HOUR), JSON_VALUE(o.raw, '$.a'), o.segment;
"""
FLAT = f"{TABLES} INSERT INTO flat SELECT id, COALESCE(segment, 'n/a') AS segment, total FROM orders WHERE total > 3;"


@pytest.fixture(scope="module")
def job() -> Plan:
    return compile_sql(JOB)


def test_a_tree_says_what_the_author_wrote(job: Plan) -> None:
    tree = plan_tree(job)
    assert "expr0 = FLOOR(ts TO HOUR) · expr1 = JSON_VALUE(raw, '$.a')" in tree
    assert "JOIN ON o.id = l.order_id AND (l.qty > 3 OR o.total > 5)" in tree


def test_pictures_pages_and_json_say_the_same(job: Plan) -> None:
    calc = next(each for each in explain_json(job)["operators"] if "FLOOR" in each["description"])
    assert "FLOOR(ts TO HOUR)" in calc["description"]
    assert any("FLOOR(ts TO HOUR)" in box.text for box in picture(job).boxes)
    page = plan_page(job)
    assert "JSON_VALUE(raw, '$.a')" in page.replace("\\u0027", "'").replace("&#x27;", "'")
    assert "hp_json" not in page
    assert "substring(" not in page


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("'n/a'", "'unknown'", "segment: coalesce(segment, 'n/a') → coalesce(segment, 'unknown')"),
        ("COALESCE(segment, 'n/a')", "segment", "segment: coalesce(segment, 'n/a') → segment"),
        ("COALESCE(segment, 'n/a')", "JSON_VALUE(raw, '$.s')", "coalesce(segment, 'n/a') → JSON_VALUE(raw, '$.s')"),
        ("total > 3", "total > 3 AND CHAR_LENGTH(raw) > 1", "total > 3 → total > 3 AND CHAR_LENGTH(raw) > 1"),
    ],
)
def test_another_expression_of_a_column_is_told_as_such(before: str, after: str, told: str) -> None:
    assert before in FLAT
    text = changes_text(compare_plans(compile_sql(FLAT), compile_sql(FLAT.replace(before, after))))
    (line,) = (line for line in text.splitlines() if "calc_orders." in line)
    assert told in line
    assert "added" not in line
    assert "removed" not in line


def test_the_condition_of_a_join_is_compared_by_the_names_of_its_sides(job: Plan) -> None:
    text = changes_text(compare_plans(job, compile_sql(JOB.replace("qty > 3", "qty > 4"))))
    assert "l.qty > 3 OR o.total > 5 → l.qty > 4 OR o.total > 5" in text


def test_another_type_of_a_column_is_told_with_it() -> None:
    typed = FLAT.replace("total DECIMAL(10, 2))", "total DECIMAL(10, 1))").replace(
        "'n/a') AS segment, total", "'n/a'), 1"
    )
    text = changes_text(
        compare_plans(compile_sql(FLAT.replace("'n/a') AS segment, total", "'n/a'), 1")), compile_sql(typed))
    )
    assert "total: DECIMAL(10, 2) TRY_CAST(1 AS DECIMAL(10, 2)) → DECIMAL(10, 1) TRY_CAST(1 AS DECIMAL(10, 1))" in text


def test_a_state_is_called_after_the_view_that_it_is_in_and_is_kept(job: Plan) -> None:
    (rank,) = (each for each in job.operators if isinstance(each, Rank))
    assert [entry.input for entry in rank.state] == ["latest"]
    older = replace(rank, state=tuple(replace(entry, input=rank.inputs[0]) for entry in rank.state))
    before = replace(job, operators=tuple(older if each is rank else each for each in job.operators))
    records = [query_records(plan, queries(plan)) for plan in (before, job)]
    verdicts = carried(*records, renumber=True)
    assert {state.outcome for verdict in verdicts for state in verdict.states} == {"carries over"}
    assert all(change.keeps_state for change in compare_plans(before, job))


def test_views_of_the_same_query_share_their_state() -> None:
    first = (
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn FROM orders) WHERE rn = 1"
    )
    inserts = "".join(
        f"CREATE VIEW {name} AS {first}; INSERT INTO flat SELECT id, '{name}', 1.0 FROM {name};"
        for name in ("one", "two")
    )
    plan = compile_sql(TABLES + inserts)
    assert [each.state[0].input for each in plan.operators if isinstance(each, Rank)] == ["one"]


def test_a_ttl_without_end_is_never(job: Plan) -> None:
    hinted = compile_sql(
        JOB.replace("INSERT INTO hours SELECT", "INSERT INTO hours SELECT /*+ STATE_TTL('o' = '1 d') */")
    )
    assert "default never" in plan_tree(hinted)
    assert "0 ms" not in plan_tree(hinted)
    (line,) = (line for line in changes_text(compare_plans(job, hinted)).splitlines() if ".ttl" in line)
    assert "never → 1 d" in line
    assert "0 ms" not in line


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_a_tree_fits_the_terminal(job: Plan, width: int) -> None:
    lines = plan_tree(job, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == len(plan_tree(job).splitlines())
    assert any(line.endswith("…") for line in lines) == (max(map(len, plan_tree(job).splitlines())) > width)


def test_a_long_description_is_whole_if_asked_for() -> None:
    long = FLAT.replace("total > 3", " AND ".join(f"total > {n}" for n in range(60)))
    plan = compile_sql(long)
    assert "total > 59" not in plan_tree(plan)
    assert "total > 59" in plan_tree(plan, whole=True)
