"""Which state a STATE_TTL hint sets, by the examples, and what is said of hints and keys that set none."""

from __future__ import annotations

import re

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.settings.layers import layers_of
from tests.planner.listing import states
from tests.planner.query.hint_scope_examples import MEASURED, ON, SEED, TABLES, Example, compiled


@pytest.mark.parametrize("example", [pytest.param(e, id=n) for n, e in {**SEED, **MEASURED}.items()])
def test_hint_sets_the_states_it_should(example: Example) -> None:
    done = compiled(example.sql, strict=True)
    assert states(done) == example.ttls
    assert all(h.status == "applied" for h in done.hints)


REFUSED = {
    # FLIP-373, scenario 1; the text is Flink's ValidationException in other words
    "a table that is not there": (
        f"SELECT /*+ STATE_TTL('foo'= '1d', 'c' = '20d') */ o_orderkey FROM orders o LEFT JOIN customers c {ON}",
        "STATE_TTL key 'foo' is not an input of this query block; its inputs are 'o', 'c'",
        "write one of 'o', 'c'",
    ),
    "a table's name where it has an alias": (
        "SELECT /*+ STATE_TTL('orders' = '1d') */ COUNT(*) FROM orders o",
        "STATE_TTL key 'orders' is not an input of this query block; its inputs are 'o'",
        "the alias hides the name: write 'o'",
    ),
    "a view's name where it has an alias": (
        "CREATE VIEW v AS SELECT * FROM orders; SELECT /*+ STATE_TTL('v' = '1d') */ COUNT(*) FROM v w",
        "STATE_TTL key 'v' is not an input of this query block; its inputs are 'w'",
        "the alias hides the name: write 'w'",
    ),
    "a table inside a view": (
        "CREATE VIEW v AS SELECT * FROM orders; SELECT /*+ STATE_TTL('orders' = '1d') */ COUNT(*) FROM v",
        "STATE_TTL key 'orders' is not an input of this query block; its inputs are 'v'",
        "'orders' is an input inside view 'v': put the hint after the SELECT there",
    ),
    "another case": (
        "SELECT /*+ STATE_TTL('Orders' = '1d') */ COUNT(*) FROM orders",
        "STATE_TTL key 'Orders' is not an input of this query block; its inputs are 'orders'",
        "did you mean 'orders'?",
    ),
    # Flink compares only the last parts of the names, so that any qualifier matches
    "a path that leads elsewhere": (
        "SELECT /*+ STATE_TTL('otherdb.orders' = '1d') */ COUNT(*) FROM orders",
        "STATE_TTL key 'otherdb.orders' is not an input of this query block; its inputs are 'orders'",
        "did you mean 'orders'?",
    ),
    "a qualified alias": (
        "SELECT /*+ STATE_TTL('nope.x' = '1d') */ COUNT(*) FROM orders x",
        "STATE_TTL key 'nope.x' is not an input of this query block; its inputs are 'x'",
        "write one of 'x'",
    ),
    "a UNION ALL sub-query without an alias": (
        "SELECT /*+ STATE_TTL('orders' = '1d') */ COUNT(*) FROM (SELECT o_custkey AS k FROM orders UNION ALL "
        "SELECT c_custkey FROM customers)",
        "STATE_TTL key 'orders' is not an input of this query block; its inputs are none that has a name",
        "'orders' is an input of the inner query at LINE:COLUMN: put the hint after its SELECT",
    ),
    "a name of the inner block": (
        "SELECT /*+ STATE_TTL('orders' = '1d') */ n, COUNT(*) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders "
        "GROUP BY o_custkey) t GROUP BY n",
        "STATE_TTL key 'orders' is not an input of this query block; its inputs are 't'",
        "'orders' is an input of the inner query at LINE:COLUMN: put the hint after its SELECT",
    ),
    "a name of the outer block": (
        "SELECT n, COUNT(*) FROM (SELECT /*+ STATE_TTL('t' = '1d') */ o_custkey, COUNT(*) AS n FROM orders "
        "GROUP BY o_custkey) t JOIN customers ON o_custkey = c_custkey GROUP BY n",
        "STATE_TTL key 't' is not an input of this query block; its inputs are 'orders'",
        "'t' is an input of the outer query at LINE:COLUMN: put the hint after its SELECT",
    ),
}


@pytest.mark.parametrize(("sql", "message", "advice"), [pytest.param(*r, id=n) for n, r in REFUSED.items()])
def test_key_that_names_no_input_is_refused_where_it_stands(sql: str, message: str, advice: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql)
    (found,) = caught.value.diagnostics
    assert found.message == message
    before, _, after = advice.partition("LINE:COLUMN")
    assert found.hint is not None
    assert found.hint.startswith(before)
    assert found.hint.endswith(after)


IGNORED = {
    # Flink ignores all of these silently
    "a block without join and aggregate": (
        "SELECT /*+ STATE_TTL('orders' = '1d') */ o_orderkey FROM orders",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
    ),
    "even with a key that does not exist": (
        "SELECT /*+ STATE_TTL('foo' = '1d') */ o_orderkey FROM orders",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
    ),
    "the removal of duplicates by UNION": (
        "SELECT /*+ STATE_TTL('orders' = '1d') */ o_orderkey FROM orders UNION SELECT c_custkey FROM customers",
        "STATE_TTL has no effect: this query block has no join and no aggregation",
    ),
    "a hint that is a comment": (
        "SELECT /* + STATE_TTL('orders' = '1d') */ COUNT(*) FROM orders",
        "this is a comment, not a hint: '/*' and '+' are apart",
    ),
    "a batch join hint": (
        "SELECT /*+ BROADCAST(orders) */ COUNT(*) FROM orders",
        "BROADCAST has no effect: it is for batch jobs of Flink, and here Spark chooses how they join",
    ),
    # measured: within one hint the last of equal keys wins
    "one key twice in one hint": (
        "SELECT /*+ STATE_TTL('orders'='2d','orders'='1d') */ COUNT(*) FROM orders",
        "STATE_TTL key 'orders' is given twice: 2 d here is overridden by 1 d at LINE:COLUMN",
    ),
    # measured: among several hints the first wins
    "one key in two hints": (
        "SELECT /*+ STATE_TTL('orders'='2d'), STATE_TTL('orders'='8d') */ COUNT(*) FROM orders",
        "STATE_TTL key 'orders' is given twice: 8 d here is overridden by 2 d at LINE:COLUMN",
    ),
}


@pytest.mark.parametrize(("sql", "message"), [pytest.param(*r, id=n) for n, r in IGNORED.items()])
def test_hint_without_effect_is_a_warning_and_an_error_if_strict(sql: str, message: str) -> None:
    before = message.partition("LINE:COLUMN")[0]
    (finding,) = compiled(sql).findings
    assert finding.severity == "warning"
    assert finding.diagnostic.message.startswith(before)
    with pytest.raises(SqlError) as caught:
        compiled(sql, strict=True)
    assert caught.value.diagnostics == (finding.diagnostic,)


def test_last_key_wins_within_a_hint_and_the_first_among_hints() -> None:
    within = compiled("SELECT /*+ STATE_TTL('orders'='2d','orders'='1d') */ COUNT(*) FROM orders")
    among = compiled("SELECT /*+ STATE_TTL('orders'='2d'), STATE_TTL('orders'='8d') */ COUNT(*) FROM orders")
    assert states(within) == {"aggregate_orders.groupAggregateState": "1 d"}
    assert states(among) == {"aggregate_orders.groupAggregateState": "2 d"}
    # Flink's test join-with-state-ttl-hint: STATE_TTL('v1'='1d','v2'='4d'), STATE_TTL('v2'='8d') gives 1 d and 4 d
    both = compiled(
        "SELECT /*+ STATE_TTL('o'='1d','c'='4d'), STATE_TTL('c'='8d') */ o_orderkey FROM orders o "
        f"JOIN customers c {ON}"
    )  # fmt: skip
    assert states(both) == {"join_o_c.leftState": "1 d", "join_o_c.rightState": "4 d"}


def test_equal_values_of_one_key_are_no_reason_to_complain() -> None:
    done = compiled("SELECT /*+ STATE_TTL('orders'='24 h','orders'='1d') */ COUNT(*) FROM orders", strict=True)
    assert [(h.status, h.detail.split(" at ")[0]) for h in done.hints] == [
        ("overridden", "'orders'='1 d'"),
        ("applied", "aggregate_orders.groupAggregateState"),
    ]


IN_SUBQUERY = "o_custkey IN (SELECT c_custkey FROM customers)"
OF_VALUE = "(SELECT MIN(c_custkey) FROM customers)"
OF_AGGREGATE = (
    "STATE_TTL key 'orders' sets the state of the aggregation; the joins with sub-queries of this block keep the "
    "configured TTL"
)
DIVIDED = {
    "a join": (
        f"SELECT /*+ STATE_TTL('o' = '1d') */ COUNT(*) FROM orders o JOIN customers c {ON} GROUP BY c_address",
        ["STATE_TTL key 'o' sets the states of the join; the aggregation of this block keeps the configured TTL"],
        {"join_o_c.leftState"},
    ),
    "a join and a sub-query": (
        f"SELECT /*+ STATE_TTL('o' = '1d', 'c' = '2d') */ COUNT(*) FROM orders o JOIN customers c {ON} "
        "WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem) GROUP BY c_address",
        ["STATE_TTL keys 'o', 'c' set the states of the join; the aggregation of this block keeps the configured TTL"],
        {"join_o_c.leftState", "join_o_c.rightState"},
    ),
    **{
        f"a sub-query in {clause}": (
            f"SELECT /*+ STATE_TTL('orders' = '1d') */ {query}",
            [OF_AGGREGATE],
            {f"aggregate_{base}.groupAggregateState"},
        )
        for clause, base, query in (
            ("WHERE, GROUP BY", "wanted", f"COUNT(*) FROM orders WHERE {IN_SUBQUERY} GROUP BY o_custkey"),
            ("WHERE, DISTINCT", "wanted", f"DISTINCT o_custkey FROM orders WHERE {IN_SUBQUERY}"),
            ("WHERE, as a value", "wanted", f"COUNT(*) FROM orders WHERE o_custkey > {OF_VALUE}"),
            ("HAVING", "orders", f"COUNT(*) FROM orders GROUP BY o_custkey HAVING COUNT(*) > {OF_VALUE}"),
            ("SELECT", "orders", f"COUNT(*) - {OF_VALUE} FROM orders GROUP BY o_custkey"),
            ("SELECT DISTINCT", "wanted", f"DISTINCT o_custkey - {OF_VALUE} FROM orders"),
        )
    },
    # measured in Flink, which builds an aggregate more
    "the block of a value, with a sub-query of its own": (
        "SELECT COUNT(*) FROM lineitem WHERE l_orderkey > (SELECT /*+ STATE_TTL('orders' = '1d') */ MIN(o_orderkey) "
        f"FROM orders WHERE {IN_SUBQUERY})",
        [OF_AGGREGATE],
        {"aggregate_wanted.groupAggregateState"},
    ),
    # Flink knows no name for the input of a sub-query here: the key would be an error
    "the sub-query's input": (
        f"SELECT /*+ STATE_TTL('orders' = '1d', 'customers' = '2d') */ COUNT(*) FROM orders WHERE {IN_SUBQUERY}",
        [
            OF_AGGREGATE,
            "STATE_TTL key 'customers' sets a state of the join with the sub-query, not the state of the "
            "aggregation of this block",
        ],
        {"aggregate_wanted.groupAggregateState", "join_orders_customers.rightState"},
    ),
}


@pytest.mark.parametrize(("sql", "notes", "states"), [pytest.param(*d, id=n) for n, d in DIVIDED.items()])
def test_a_block_that_joins_and_aggregates_says_which_states_its_keys_set(
    sql: str, notes: list[str], states: set[str]
) -> None:
    done = compiled(sql, strict=True)
    assert [f.severity for f in done.findings] == ["note"] * len(notes)
    assert [f.diagnostic.message for f in done.findings] == notes
    assert {state for h in done.hints for state in h.detail.split(", ")} == states


def test_hint_of_a_view_that_nobody_reads_is_reported() -> None:
    sql = (
        "CREATE VIEW v AS SELECT /*+ STATE_TTL('orders' = '1d') */ COUNT(*) AS n FROM orders;"
        "SELECT o_orderkey FROM orders"
    )
    (finding,) = compiled(sql).findings
    assert finding.diagnostic.message == (
        "STATE_TTL key 'orders' has no effect: its view or CTE is not used by any INSERT"
    )


def test_hint_of_a_cte_that_nobody_reads_is_reported_even_if_it_had_no_effect() -> None:
    sql = "WITH x AS (SELECT /*+ STATE_TTL('orders' = '1d') */ * FROM orders) SELECT o_orderkey FROM orders"
    (finding,) = compiled(sql).findings
    assert finding.diagnostic.message == (
        "STATE_TTL key 'orders' has no effect: its view or CTE is not used by any INSERT"
    )
    with pytest.raises(SqlError, match="is not used by any INSERT"):
        compiled(sql, strict=True)


@pytest.mark.parametrize("example", [pytest.param(e, id=n) for n, e in {**SEED, **MEASURED}.items()])
def test_every_key_of_every_hint_is_accounted_for(example: Example) -> None:
    blocks = re.findall(r"/\*\+(.*?)\*/", example.sql, re.S)
    written = sum(len(re.findall(r"=\s*'", block)) for block in blocks)
    done = compiled(example.sql)
    assert len(done.hints) == written
    applied = {state for h in done.hints if h.status == "applied" for state in h.detail.split(", ")}
    hinted = {f"{o.id}.{s.name}" for o in done.plan.operators for s in o.state if "hint" in s.settings.origin}
    assert applied == hinted


def test_origin_records_the_layers_that_spoke() -> None:
    sql = f"SELECT /*+ STATE_TTL('o' = '1d') */ o_orderkey FROM orders o JOIN customers c {ON}"
    configured = compiled(sql).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [layers_of(s.settings, "ttl") for s in configured] == [{"config": "90 s", "hint": "1 d"}, {"config": "90 s"}]
    query = sql.replace("o_orderkey FROM", "CAST(o_orderkey AS STRING) FROM")
    text = TABLES.replace("SET 'table.exec.state.ttl' = '90 s';", "") + f"INSERT INTO one {query};"
    plain = compile_script(text).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [layers_of(s.settings, "ttl") for s in plain] == [{"default": "0 ms", "hint": "1 d"}, {"default": "0 ms"}]
    assert [s.ttl for s in plain] == ["1 d", "0 ms"]
    overridden = compile_script(text, {"table.exec.state.ttl": "3600s"}).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [layers_of(s.settings, "ttl") for s in overridden] == [{"config": "1 h", "hint": "1 d"}, {"config": "1 h"}]
