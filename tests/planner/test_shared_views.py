"""A view with state that several places read is computed once for all of them, where the configuration asks for it.

What must come out SQLite says, asked about all rows at once.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import hintplan
from hintplan.planner.compile import compile_script
from hintplan.plans.lint.double_rules import doubled_state
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan
from tests.planner.goldens import ALLOWED, CASES, read_cases, with_tables
from tests.runtime.pipeline import Pipeline

TABLES = """
CREATE TABLE o (id BIGINT, k BIGINT, v BIGINT, s STRING)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE c (k BIGINT, name STRING, z BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'c');
"""
VIEWS = {
    "joined": "SELECT o.id, o.k, o.v, o.s, c.name, c.z FROM o JOIN c ON o.k = c.k",
    "padded": "SELECT o.id, o.k, o.v, o.s, c.name, c.z FROM o LEFT JOIN c ON o.k = c.k",
    "summed": "SELECT k, s, SUM(v) AS v, COUNT(*) AS n, MIN(id) AS id FROM o GROUP BY k, s",
    "top": "SELECT id, k, v, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM o) AS t "
    "WHERE n <= 2",
    "above": "SELECT k, s, v * 2 AS v, n FROM summed WHERE v > 1",
    "plain": "SELECT id, k, v + 1 AS v, s FROM o WHERE v > 2",
}
BATCHES: tuple[Mapping[str, list[tuple]], ...] = (
    {"o": [(1, 1, 5, "a"), (2, 2, 7, "b"), (3, 1, 1, "a")], "c": [(1, "x", 3)]},
    {"o": [(4, 2, 2, "a"), (5, None, 4, "b")], "c": [(2, "y", 4), (3, "w", 5)]},
    {"o": [(6, 1, 9, "b"), (7, 3, 3, None), (8, 3, 0, "a")], "c": [(1, "z", 6)]},
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """``queries`` with the number of states that the job has if views are not shared, and if they are."""

    queries: tuple[str, ...]
    apart: int
    shared: int


CASES_OF_VIEWS = {
    "columns differ": Case(queries=("SELECT id, name FROM joined", "SELECT k, v FROM joined"), apart=2, shared=1),
    "conditions differ": Case(
        queries=("SELECT id, s FROM joined WHERE v > 4", "SELECT id, s FROM joined WHERE name = 'x'"), apart=2, shared=1
    ),
    "one reads all": Case(queries=("SELECT * FROM padded", "SELECT id FROM padded WHERE z IS NULL"), apart=2, shared=1),
    "they aggregate": Case(
        queries=("SELECT name, SUM(v) FROM joined GROUP BY name", "SELECT s, COUNT(*) FROM joined GROUP BY s"),
        apart=4,
        shared=3,
    ),
    "aggregates differ": Case(queries=("SELECT k, s, v FROM summed", "SELECT k, s, n FROM summed"), apart=2, shared=1),
    "a Top-N": Case(queries=("SELECT id, v FROM top", "SELECT id, k FROM top WHERE s = 'a'"), apart=2, shared=1),
    "a view in a view": Case(
        queries=("SELECT k, v FROM above", "SELECT k, n FROM above", "SELECT s, id FROM summed"), apart=3, shared=1
    ),
    "twice in one query": Case(
        queries=("SELECT id, v FROM joined WHERE v > 4 UNION ALL SELECT k, z FROM joined",), apart=2, shared=1
    ),
    "joined with itself": Case(
        queries=("SELECT a.id, b.v FROM joined AS a JOIN joined AS b ON a.id = b.id WHERE a.z > 3",), apart=3, shared=2
    ),
    "no state": Case(queries=("SELECT id FROM plain", "SELECT k, v FROM plain WHERE s = 'a'"), apart=0, shared=0),
}


def compiled(case: Case, *, shared: bool) -> Plan:
    views = "".join(f"CREATE VIEW {name} AS {query};" for name, query in VIEWS.items())
    jobs = "".join(
        f"CREATE TABLE r{number} WITH ('connector' = 'print') AS {query};" for number, query in enumerate(case.queries)
    )
    return hintplan.compile_sql(TABLES + views + jobs, {SHARED_VIEWS: "true"} if shared else {}, name="job")


def states(plan: Plan) -> int:
    return sum(bool(operator.state) for operator in plan.operators)


def results(plan: Plan) -> list[Counter]:
    """What each sink has in the end."""
    found = []
    for sink in plan.sinks:
        needed = plan.upstream(sink.id)
        pipeline = Pipeline(replace(plan, operators=tuple(each for each in plan.operators if each.id in needed)))
        for rows in BATCHES:
            pipeline.batch(rows)
        found.append(Counter({row: count for row, count in pipeline.result.items() if count}))
    return found


def expected(case: Case) -> list[Counter]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE o (id, k, v, s)")
    connection.execute("CREATE TABLE c (k, name, z)")
    for rows in BATCHES:
        connection.executemany("INSERT INTO o VALUES (?, ?, ?, ?)", rows["o"])
        connection.executemany("INSERT INTO c VALUES (?, ?, ?)", rows["c"])
    for name, query in VIEWS.items():
        connection.execute(f'CREATE VIEW "{name}" AS {query}')
    return [Counter(connection.execute(query).fetchall()) for query in case.queries]


@pytest.mark.parametrize("name", CASES_OF_VIEWS)
def test_a_view_is_kept_once_and_gives_the_same(name: str) -> None:
    case = CASES_OF_VIEWS[name]
    apart, shared = compiled(case, shared=False), compiled(case, shared=True)
    assert (states(apart), states(shared)) == (case.apart, case.shared)
    assert results(apart) == results(shared) == expected(case)


def test_what_is_kept_is_what_some_reader_reads() -> None:
    plan = compiled(CASES_OF_VIEWS["columns differ"], shared=True)
    (scan,) = (operator for operator in plan.operators if isinstance(operator, Scan) and operator.table == "o")
    (other,) = (operator for operator in plan.operators if isinstance(operator, Scan) and operator.table == "c")
    assert (scan.columns, other.columns) == (("id", "k", "v"), ("k", "name"))
    assert len(plan.sinks) == 2


def test_a_view_of_which_each_reader_takes_some_rows_is_noted() -> None:
    """Below the state of a view of its own, the condition of each would leave out rows."""
    jobs = "CREATE TABLE r{0} WITH ('connector' = 'print') AS SELECT id FROM joined{1};"
    view = f"CREATE VIEW joined AS\n{VIEWS['joined']};"

    def notes(*conditions: str) -> list[tuple[str, int | None]]:
        script = TABLES + view + "".join(jobs.format(number, each) for number, each in enumerate(conditions))
        done = compile_script(script, {SHARED_VIEWS: "true"})
        return [(found.diagnostic.message, found.diagnostic.line) for found in done.findings]

    said = "view 'joined' is kept once with all its rows, though each of its 2 readers takes only some"
    assert notes(" WHERE k = 1", " WHERE k = 2") == [(said, TABLES.count("\n") + 1)]
    assert notes(" WHERE k = 1", "") == []


def test_lint_tells_of_what_is_kept_twice() -> None:
    """Not of a join of the same tables by keys that are computed otherwise."""
    case = CASES_OF_VIEWS["columns differ"]
    (finding,) = doubled_state(compiled(case, shared=False))
    assert finding.message.startswith("it stores what join_o_c stores, too")
    assert list(doubled_state(compiled(case, shared=True))) == []
    join = "SELECT o.id, c.name FROM (SELECT id, k + {} AS k FROM o) AS o JOIN c ON o.k = c.k"
    other = Case(queries=(join.format(1), join.format(2)), apart=2, shared=2)
    assert list(doubled_state(compiled(other, shared=False))) == []


def test_the_setting_changes_nothing_where_views_are_read_once() -> None:
    case = Case(queries=("SELECT id, name FROM joined", "SELECT k, v FROM summed"), apart=2, shared=2)
    plain, shared = (hintplan.dumps(compiled(case, shared=shared)) for shared in (False, True))
    assert plain == shared


def test_a_row_number_that_a_reader_limits_is_left_to_it() -> None:
    numbered = "CREATE VIEW v AS SELECT id, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM o;"
    jobs = "".join(
        f"CREATE TABLE r{number} WITH ('connector' = 'print') AS SELECT id, k FROM v WHERE n <= {number};"
        for number in (1, 2)
    )
    plan = hintplan.compile_sql(TABLES + numbered + jobs, {SHARED_VIEWS: "true"})
    assert [operator.op for operator in plan.operators if operator.state] == ["rank", "rank"]


@pytest.mark.part(of=2)
@pytest.mark.parametrize("file", sorted(CASES.glob("*.test")), ids=lambda path: path.stem)
def test_all_golden_queries_compile_with_it(file: Path) -> None:
    """With as many states as without it, or fewer; what is refused is refused in the same words."""
    for tables, case in with_tables(read_cases(file)):
        found = []
        for shared in ("false", "true"):
            try:
                script = f"{tables}\n{case.sql}"
                plan = compile_script(script, {SHARED_VIEWS: shared}, file="job", allow_modules=ALLOWED).plan
                found.append(states(plan))
            except hintplan.SqlError as error:
                found.append(str(error))
        apart, together = found
        assert apart == together or together < apart, case.title
