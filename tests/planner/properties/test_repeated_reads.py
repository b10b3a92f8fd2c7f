"""A lookup or call that is written once, in a view or CTE, and made more than once for its readers: said at compile."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.show.explain import explain_json, plan_tree
from hintplan.plans.text.findings import CompilerFinding

TABLES = """
CREATE TABLE orders (id BIGINT, cur STRING, total DOUBLE, pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE rates (cur STRING, rate DOUBLE, kind STRING, PRIMARY KEY (cur) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'rates');
CREATE TABLE p (id BIGINT, rate DOUBLE) WITH ('connector' = 'print');
CREATE TABLE q (id BIGINT, rate DOUBLE) WITH ('connector' = 'print');
CREATE TABLE k (id BIGINT, kind STRING) WITH ('connector' = 'print');
CREATE TABLE f (id BIGINT, rate DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'json');
CREATE FUNCTION score AS 'tests.planner.declared.Score' LANGUAGE PYTHON;
CREATE FUNCTION geo AS 'tests.planner.declared.Locate' LANGUAGE PYTHON;
""".replace("\n", " ")
VIEW = (
    "CREATE VIEW v AS SELECT o.id, o.total, r.rate, r.kind "
    "FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.cur = r.cur;"
)
BATCH = "SET 'execution.runtime-mode' = 'batch';"

READERS = {
    "two sinks": (
        "INSERT INTO p SELECT id, rate FROM v; INSERT INTO f SELECT id, rate FROM [v];",
        2,
        ["lookup_r"],
    ),
    "two sinks, other rows of the stream": (
        "INSERT INTO p SELECT id, rate FROM v WHERE id > 5; INSERT INTO q SELECT id, rate FROM [v] WHERE id < 5;",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "two sinks, other columns": (
        "INSERT INTO p SELECT id, rate FROM v; INSERT INTO k SELECT id, kind FROM [v];",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "two sinks, one below an aggregate": (
        "INSERT INTO p SELECT id, rate FROM v; INSERT INTO q SELECT id, SUM(rate) FROM [v] GROUP BY id;",
        2,
        ["lookup_r"],
    ),
    "a union with itself": (
        "INSERT INTO p SELECT id, rate FROM v UNION ALL SELECT id, rate FROM [v];",
        2,
        ["lookup_r"],
    ),
    "a union of what it is filtered for, by what is found": (
        "INSERT INTO p SELECT id, rate FROM v WHERE rate > 5 UNION ALL SELECT id, rate FROM [v] WHERE rate < 5;",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "a union of what it is filtered for, by constants that are keys": (
        "INSERT INTO p SELECT id, rate FROM v WHERE kind = 'a' UNION ALL SELECT id, rate FROM [v] WHERE kind = 'b';",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "a join with itself": (
        "INSERT INTO p SELECT a.id, a.rate + b.rate FROM v AS a JOIN [v] AS b ON a.id = b.id;",
        2,
        ["lookup_r"],
    ),
    "a join with itself, other columns": (
        "INSERT INTO p SELECT a.id, b.rate FROM v AS a JOIN [v] AS b ON a.id = b.id;",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "a sub-query of WHERE": (
        "INSERT INTO p SELECT id, rate FROM v WHERE id IN (SELECT id FROM [v] WHERE rate > 1);",
        2,
        ["lookup_r", "lookup_r_in_v"],
    ),
    "a view that reads it twice, read twice": (
        "CREATE VIEW w AS SELECT id, rate FROM v UNION ALL SELECT id, rate FROM [v]; "
        "INSERT INTO p SELECT a.id, a.rate + b.rate FROM w AS a JOIN w AS b ON a.id = b.id;",
        4,
        ["lookup_r"],
    ),
    "two views that read it": (
        "CREATE VIEW w AS SELECT id, rate FROM v; CREATE VIEW x AS SELECT id, rate FROM [v]; "
        "INSERT INTO p SELECT id, rate FROM w; INSERT INTO f SELECT id, rate FROM x;",
        2,
        ["lookup_r"],
    ),
}
"""SQL with the second reader in brackets, the times a batch job asks the source, and who asks, counted by hand."""


def compiled(sql: str, before: str = "") -> tuple[list[CompilerFinding], str, list[dict[str, object]]]:
    """Findings, the tree, and what is asked more than once; the first line is that of the declarations."""
    done = compile_script(
        f"{before}{TABLES}\n{sql.replace('[', '').replace(']', '')}", allow_modules=["tests.planner.declared"]
    )
    return list(done.findings), plan_tree(done.plan), explain_json(done.plan)["repeated"]


def column(sql: str) -> int:
    return sql.index("[") + 1


@pytest.mark.parametrize("mode", ["", BATCH], ids=["streaming", "batch"])
@pytest.mark.parametrize("readers", READERS)
def test_a_lookup_of_a_view_that_each_branch_asks_for_itself_is_said(readers: str, mode: str) -> None:
    sql, times, operators = READERS[readers]
    script = f"{VIEW} {sql}"
    findings, tree, repeated = compiled(script, mode)
    if mode != BATCH and len(operators) == 1:  # a query, which computes an operator once for all that read it
        assert (findings, repeated, "asked" in tree) == ([], [], False)
        return
    (found,) = findings
    said = found.diagnostic
    assert (found.severity, said.line, said.column) == ("warning", 2, column(script))
    assert said.message == (
        "'v' is read again here, and each reader makes its lookup join with 'rates' at 2:72 separately: "
        f"the source gets a request for each of {times} branches, and the responses may differ"
    )
    assert said.hint is not None
    assert ("CACHED" in said.hint) is (mode == BATCH)
    assert (f"each of {', '.join(operators)} has settings of its own" in said.hint) is (len(operators) > 1)
    assert repeated == [{"target": "rates", "operators": operators, "times": times}]
    assert f"sent once per branch, responses may differ: rates {times} times ({', '.join(operators)})\n" in tree


@pytest.mark.parametrize("readers", READERS)
def test_the_advice_of_the_warning_makes_a_lookup_once(readers: str) -> None:
    sql, _, operators = READERS[readers]
    findings, _, _ = compiled(f"{VIEW} {sql}")
    advice = "SET 'table.optimizer.shared-views.enabled' = 'true'"
    if len(operators) > 1:
        assert advice in (findings[0].diagnostic.hint or "")
    findings, _, repeated = compiled(f"{VIEW} {sql}", f"{advice};")
    assert not repeated
    assert not any("read again" in finding.diagnostic.message for finding in findings)


def test_the_advice_is_given_only_where_it_helps() -> None:
    """A CTE is not shared, nor are values that are drawn."""
    random = "CREATE VIEW v AS SELECT id, UUID() AS rate FROM orders WHERE total > 0;"
    lookup = "SELECT o.id, r.rate FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.cur = r.cur"
    cte = f"WITH v AS ({lookup}) "
    for script in (
        f"CREATE TABLE s (id BIGINT, u STRING) WITH ('connector' = 'print'); {random}"
        "INSERT INTO s SELECT id, rate FROM v WHERE id > 1; INSERT INTO s SELECT id, rate FROM v WHERE id < 1;",
        f"INSERT INTO p {cte} SELECT id, rate FROM v WHERE rate > 1 UNION ALL SELECT id, rate FROM v WHERE rate < 1;",
    ):
        (finding,) = compiled(script)[0]
        assert "write the rows of 'v' to a table" in (finding.diagnostic.hint or "")


def test_sinks_of_one_query_share_the_answers() -> None:
    sql = f"{VIEW} INSERT INTO p SELECT id, rate FROM v; INSERT INTO q SELECT id, rate FROM v;"
    findings, tree, repeated = compiled(sql)
    assert (findings, repeated) == ([], [])
    assert "asked" not in tree
    assert "sink_p + sink_q from lookup_r" in tree


def test_one_reader_is_not_warned_of() -> None:
    assert compiled(f"{VIEW} INSERT INTO p SELECT id, rate FROM v WHERE rate > 1;")[0] == []


@pytest.mark.parametrize(
    "cached",
    [
        f"{VIEW} CACHE TABLE v;",
        VIEW.replace("SELECT", "SELECT /*+ CACHED */", 1),
        f"SET 'table.exec.cached-results.enabled' = 'true'; {VIEW}",
    ],
)
def test_branches_of_a_batch_job_share_a_cached_result(cached: str) -> None:
    sql = f"{cached} INSERT INTO p SELECT id, rate FROM v WHERE id > 5; INSERT INTO k SELECT id, kind FROM v;"
    findings, tree, repeated = compiled(sql, BATCH)
    assert (findings, repeated) == ([], [])
    assert "asked" not in tree


def test_a_cte_is_told_of_as_a_view_is() -> None:
    sql = (
        "INSERT INTO p WITH c AS (SELECT o.id, r.rate FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r "
        "ON o.cur = r.cur) SELECT id, rate FROM c UNION ALL SELECT id, rate FROM [c] WHERE rate > 1"
    )
    (found,), _, _ = compiled(sql)
    assert (found.diagnostic.line, found.diagnostic.column) == (2, column(sql))
    assert found.diagnostic.message.startswith("'c' is read again here")


@pytest.mark.parametrize(
    ("view", "place", "function"),
    [
        ("SELECT id, score(cur, total) AS rate FROM orders", "2:29", "score"),
        ("SELECT id, T.lat AS rate FROM orders, LATERAL TABLE(geo(cur)) AS T(lat, lon)", "2:70", "geo"),
    ],
)
def test_a_call_is_a_note(view: str, place: str, function: str) -> None:
    sql = (
        f"CREATE VIEW v AS {view}; INSERT INTO p SELECT id, rate FROM v WHERE id > 5; INSERT INTO f SELECT * FROM [v];"
    )
    (found,), tree, _ = compiled(sql)
    assert found.severity == "note"
    assert (found.diagnostic.line, found.diagnostic.column) == (2, column(sql))
    assert found.diagnostic.message == (
        f"'v' is read again here, and each reader makes its call of '{function}' at {place} separately: it is called "
        f"once for each of 2 branches, and its results may differ"
    )
    assert f"responses may differ: {function} 2 times (" in tree


def test_lookups_that_are_written_one_by_one_are_shown_and_not_warned_of() -> None:
    lookup = "FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.cur = r.cur"
    sql = f"INSERT INTO p SELECT o.id, r.rate {lookup}; INSERT INTO k SELECT o.id, r.kind {lookup};"
    findings, _, repeated = compiled(sql)
    assert (findings, [found["times"] for found in repeated]) == ([], [2])


def test_lookups_one_above_the_other_are_no_branches() -> None:
    sql = (
        "INSERT INTO p SELECT o.id, a.rate + b.rate FROM orders AS o "
        "JOIN rates FOR SYSTEM_TIME AS OF o.pt AS a ON o.cur = a.cur AND a.kind = 'buy' "
        "JOIN rates FOR SYSTEM_TIME AS OF o.pt AS b ON o.cur = b.cur AND b.kind = 'sell'"
    )
    findings, _, repeated = compiled(sql)
    assert (findings, repeated) == ([], [])
