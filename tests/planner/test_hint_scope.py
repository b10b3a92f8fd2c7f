"""Which state a STATE_TTL hint sets: the examples of FLIP-373, and what Flink 2.3 was measured to do.

Where the answer differs from Flink's, a comment says so and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from planner.compile import Compilation, compile_script
from plans.errors import SqlError
from tests.planner.listing import states

FILES = "WITH ('connector' = 'filesystem', 'path' = 'data', 'format' = 'json')"
TABLES = f"""
CREATE TABLE orders (o_orderkey BIGINT, o_custkey BIGINT, o_totalprice DOUBLE, o_shippriority INT) {FILES};
CREATE TABLE customers (c_custkey BIGINT, c_address STRING) {FILES};
CREATE TABLE lineitem (l_orderkey BIGINT, l_partkey BIGINT, l_extendedprice DOUBLE) {FILES};
CREATE TABLE one (x STRING) WITH ('connector' = 'print');
SET 'table.exec.state.ttl' = '90 s';
"""
CONFIG = "90 s"


def compiled(script: str, *, strict: bool = False) -> Compilation:
    """Compile views and, last, a query; nothing but its states matters, so the sink gets a constant for each row."""
    *before, query = script.split(";")
    views = "".join(f"{view};" for view in before)
    text = f"{TABLES}{views} CREATE VIEW wanted AS {query}; INSERT INTO one SELECT 'row' FROM wanted;"
    return compile_script(text, file="job", strict_hints=strict)


@dataclass(frozen=True)
class Example:
    sql: str
    ttls: dict[str, str] = field(default_factory=dict)


SEED = {
    "table names as keys": Example(
        "SELECT /*+ STATE_TTL('orders'= '1d', 'customers' = '20d') */ o_orderkey FROM orders LEFT OUTER JOIN customers "
        "ON orders.o_custkey = customers.c_custkey",
        {"join_orders_customers.leftState": "1 d", "join_orders_customers.rightState": "20 d"},
    ),
    "table aliases as keys": Example(
        "SELECT /*+ STATE_TTL('o'= '12h', 'c' = '3d') */ o_orderkey FROM orders o LEFT OUTER JOIN customers c "
        "ON o.o_custkey = c.c_custkey",
        {"join_o_c.leftState": "12 h", "join_o_c.rightState": "3 d"},
    ),
    "temporary view names as keys": Example(
        "CREATE TEMPORARY VIEW left_input AS SELECT o_custkey AS join_key, o_totalprice FROM orders;"
        "CREATE TEMPORARY VIEW right_input AS SELECT c_custkey AS join_key FROM customers;"
        "SELECT /*+ STATE_TTL('left_input'= '36000s', 'right_input' = '15h') */ o_totalprice "
        "FROM left_input JOIN right_input ON left_input.join_key = right_input.join_key",
        {"join_left_input_right_input.leftState": "10 h", "join_left_input_right_input.rightState": "15 h"},
    ),
    "aggregate, table name": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ o_orderkey, SUM(o_totalprice) AS revenue FROM orders "
        "GROUP BY o_orderkey",
        {"aggregate_orders.groupAggregateState": "1 d"},
    ),
    "aggregate, table alias": Example(
        "SELECT /*+ STATE_TTL('o' = '1d') */ o_orderkey, SUM(o_totalprice) AS revenue FROM orders AS o "
        "GROUP BY o_orderkey",
        {"aggregate_o.groupAggregateState": "1 d"},
    ),
    "aggregate, query block alias": Example(
        "SELECT /*+ STATE_TTL('tmp' = '1d') */ o_orderkey, SUM(o_totalprice) AS revenue FROM ("
        "SELECT o_orderkey, o_totalprice FROM orders WHERE o_shippriority = 0) tmp GROUP BY o_orderkey",
        {"aggregate_tmp.groupAggregateState": "1 d"},
    ),
    # the seed writes orders.o_custkey in ON, which is not in scope there: the block is called agg
    "aggregate as input of a join": Example(
        "SELECT /*+ STATE_TTL('agg' = '1d', 'customers' = '7d') */ c_address, order_num FROM ("
        "SELECT /*+ STATE_TTL('orders' = '30d') */ o_custkey, COUNT(o_orderkey) AS order_num FROM orders "
        "GROUP BY o_custkey) agg LEFT OUTER JOIN customers ON agg.o_custkey = customers.c_custkey",
        {
            "aggregate_orders.groupAggregateState": "30 d",
            "join_agg_customers.leftState": "1 d",
            "join_agg_customers.rightState": "7 d",
        },
    ),
    # the seed leaves out GROUP BY c_custkey
    "join as input of an aggregate": Example(
        "SELECT /*+ STATE_TTL('tmp' = '1d') */ c_custkey, SUM(o_totalprice) AS revenue FROM ("
        "SELECT /*+ STATE_TTL('o' = '12h', 'c' = '3d') */ * FROM orders o LEFT OUTER JOIN customers c "
        "ON o.o_custkey = c.c_custkey) tmp GROUP BY c_custkey",
        {"join_o_c.leftState": "12 h", "join_o_c.rightState": "3 d", "aggregate_tmp.groupAggregateState": "1 d"},
    ),
    "cascade: the intermediate result keeps the configured TTL": Example(
        "SELECT /*+ STATE_TTL('o' = '3d', 'l' = '1d', 'c' = '10d') */ o_totalprice, l_partkey, c_address "
        "FROM orders o LEFT OUTER JOIN lineitem l ON o.o_orderkey = l.l_orderkey "
        "LEFT OUTER JOIN customers c ON o.o_custkey = c.c_custkey",
        {
            "join_o_l.leftState": "3 d",
            "join_o_l.rightState": "1 d",
            "join_o_l_c.leftState": CONFIG,
            "join_o_l_c.rightState": "10 d",
        },
    ),
    "cascade split by a view: every state has a name": Example(
        "CREATE TEMPORARY VIEW V AS SELECT /*+ STATE_TTL('o' = '3d', 'l' = '1d') */ * FROM orders o "
        "JOIN lineitem l ON o.o_orderkey = l.l_orderkey;"
        "SELECT /*+ STATE_TTL('V' = '5d', 'c' = '10d') */ l_partkey FROM V JOIN customers c "
        "ON V.o_custkey = c.c_custkey",
        {
            "join_o_l.leftState": "3 d",
            "join_o_l.rightState": "1 d",
            "join_v_c.leftState": "5 d",
            "join_v_c.rightState": "10 d",
        },
    ),
    "aggregate with two group keys": Example(
        "SELECT /*+ STATE_TTL('lineitem' = '1d')*/ l_partkey, SUM(l_extendedprice) AS revenue FROM lineitem "
        "GROUP BY l_partkey",
        {"aggregate_lineitem.groupAggregateState": "1 d"},
    ),
    "aggregate in the middle of a cascade": Example(
        "SELECT /*+ STATE_TTL('o' = '3d', 'agg' = '1d', 'c' = '10d') */ o_totalprice, revenue, c_address "
        "FROM orders o LEFT OUTER JOIN (SELECT /*+ STATE_TTL('lineitem' = '1h')*/ l_orderkey, l_partkey, "
        "SUM(l_extendedprice) AS revenue FROM lineitem GROUP BY l_orderkey, l_partkey) agg "
        "ON o.o_orderkey = agg.l_orderkey LEFT OUTER JOIN customers c ON o.o_custkey = c.c_custkey",
        {
            "aggregate_lineitem.groupAggregateState": "1 h",
            "join_o_agg.leftState": "3 d",
            "join_o_agg.rightState": "1 d",
            "join_o_agg_c.leftState": CONFIG,
            "join_o_agg_c.rightState": "10 d",
        },
    ),
    "cascade below an aggregate": Example(
        "SELECT /*+ STATE_TTL('tmp' = '48h')*/ o_orderkey, c_custkey, SUM(l_extendedprice) AS revenue FROM ("
        "SELECT /*+ STATE_TTL('o' = '3d', 'l' = '1d', 'c' = '10d') */* FROM orders o LEFT OUTER JOIN lineitem l "
        "ON o.o_orderkey = l.l_orderkey LEFT OUTER JOIN customers c ON o.o_custkey = c.c_custkey) tmp "
        "GROUP BY o_orderkey, c_custkey",
        {
            "join_o_l.leftState": "3 d",
            "join_o_l.rightState": "1 d",
            "join_o_l_c.leftState": CONFIG,
            "join_o_l_c.rightState": "10 d",
            "aggregate_tmp.groupAggregateState": "2 d",
        },
    ),
}

ON = "ON o.o_custkey = c.c_custkey"
MEASURED = {
    "one key: the other side keeps the configured TTL": Example(
        f"SELECT /*+ STATE_TTL('c' = '3d') */ o_orderkey FROM orders o JOIN customers c {ON}",
        {"join_o_c.leftState": CONFIG, "join_o_c.rightState": "3 d"},
    ),
    "comma joins cascade as written": Example(
        "SELECT /*+ STATE_TTL('o' = '1d', 'l' = '2d', 'c' = '3d') */ o_orderkey FROM orders o, lineitem l, customers c "
        "WHERE o.o_custkey = c.c_custkey AND o.o_orderkey = l.l_orderkey",
        {
            "join_o_l.leftState": "1 d",
            "join_o_l.rightState": "2 d",
            "join_o_l_c.leftState": CONFIG,
            "join_o_l_c.rightState": "3 d",
        },
    ),
    "parentheses: the inner join takes its two inputs, the outer one its left": Example(
        "SELECT /*+ STATE_TTL('o' = '1d', 'l' = '2d', 'c' = '3d') */ o_orderkey FROM orders o JOIN (lineitem l "
        "JOIN customers c ON l.l_partkey = c.c_custkey) ON o.o_orderkey = l.l_orderkey",
        {
            "join_l_c.leftState": "2 d",
            "join_l_c.rightState": "3 d",
            "join_o_l_c.leftState": "1 d",
            "join_o_l_c.rightState": CONFIG,
        },
    ),
    **{
        f"{kind} join: sides as written": Example(
            f"SELECT /*+ STATE_TTL('o' = '1d', 'c' = '2d') */ o_orderkey FROM orders o {kind} JOIN customers c {ON}",
            {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d"},
        )
        for kind in ("LEFT", "RIGHT", "FULL")
    },
    "NATURAL join": Example(
        "SELECT /*+ STATE_TTL('o' = '1d', 't' = '2d') */ o_orderkey FROM orders o NATURAL JOIN "
        "(SELECT c_custkey AS o_custkey FROM customers) t",
        {"join_o_t.leftState": "1 d", "join_o_t.rightState": "2 d"},
    ),
    "SELECT DISTINCT is an aggregate": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ DISTINCT o_custkey FROM orders",
        {"aggregate_orders.groupAggregateState": "1 d"},
    ),
    "HAVING, FILTER, COUNT(DISTINCT)": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ o_custkey, COUNT(DISTINCT o_orderkey) FILTER "
        "(WHERE o_totalprice > 1) FROM orders GROUP BY o_custkey HAVING COUNT(*) > 1",
        {"aggregate_orders.groupAggregateState": "1 d"},
    ),
    "aggregate without GROUP BY": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ COUNT(*) FROM orders",
        {"aggregate_orders.groupAggregateState": "1 d"},
    ),
    "join and GROUP BY in one block: the join takes the keys": Example(
        f"SELECT /*+ STATE_TTL('o' = '1d', 'c' = '2d') */ c_address, COUNT(*) FROM orders o JOIN customers c {ON} "
        "GROUP BY c_address",
        {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d", "aggregate_o_c.groupAggregateState": CONFIG},
    ),
    "UNION ALL sub-query: its alias is the key": Example(
        "SELECT /*+ STATE_TTL('u' = '1d') */ k, COUNT(*) FROM (SELECT o_custkey AS k FROM orders UNION ALL "
        "SELECT c_custkey FROM customers) u GROUP BY k",
        {"aggregate_u.groupAggregateState": "1 d"},
    ),
    # Flink drops hints on semi and anti joins without a word; here they set the states of that join
    "IN (SELECT): a semi join takes the hint": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d', 'customers' = '2d') */ o_orderkey FROM orders WHERE o_custkey IN "
        "(SELECT c_custkey FROM customers)",
        {"join_orders_customers.leftState": "1 d", "join_orders_customers.rightState": "2 d"},
    ),
    "NOT EXISTS: an anti join takes the hint": Example(
        "SELECT /*+ STATE_TTL('o' = '1d', 'c' = '2d') */ o_orderkey FROM orders o WHERE NOT EXISTS "
        "(SELECT 1 FROM customers c WHERE c.c_custkey = o.o_custkey)",
        {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d"},
    ),
    # in Flink the outer hint reaches the inner join and fails there, because it names none of its inputs
    "EXISTS over a block with a join of its own: the outer hint stays outside": Example(
        "SELECT /*+ STATE_TTL('o' = '1d') */ o_orderkey FROM orders o WHERE EXISTS ("
        "SELECT /*+ STATE_TTL('l' = '2d') */ 1 FROM lineitem l JOIN customers c "
        "ON l.l_partkey = c.c_custkey WHERE l.l_orderkey = o.o_orderkey)",
        {
            "join_l_c.leftState": "2 d",
            "join_l_c.rightState": CONFIG,
            "join_o_l_c.leftState": "1 d",
            "join_o_l_c.rightState": CONFIG,
        },
    ),
    "a CTE's hint stays in the CTE, the outer hint outside": Example(
        "WITH x AS (SELECT /*+ STATE_TTL('orders' = '1d') */ o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) "
        "SELECT /*+ STATE_TTL('x' = '2d', 'customers' = '3d') */ n FROM x JOIN customers ON o_custkey = c_custkey",
        {
            "aggregate_orders.groupAggregateState": "1 d",
            "join_x_customers.leftState": "2 d",
            "join_x_customers.rightState": "3 d",
        },
    ),
    "a hint on the outer block does not reach an unhinted inner one": Example(
        "SELECT /*+ STATE_TTL('t' = '2d') */ n, COUNT(*) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders "
        "GROUP BY o_custkey) t GROUP BY n",
        {"aggregate_orders.groupAggregateState": CONFIG, "aggregate_t.groupAggregateState": "2 d"},
    ),
    "different keys in several hints are merged": Example(
        f"SELECT /*+ STATE_TTL('o' = '1d'), STATE_TTL('c' = '2d') */ o_orderkey FROM orders o JOIN customers c {ON}",
        {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d"},
    ),
    "the name of the hint is case-insensitive, a key may be a bare identifier": Example(
        f"SELECT /*+ state_ttl(o = '1d',\n  c = '2d') */ o_orderkey FROM orders o JOIN customers c {ON}",
        {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d"},
    ),
    "a zero TTL overrides the configured one": Example(
        "SELECT /*+ STATE_TTL('orders' = '0s') */ COUNT(*) FROM orders",
        {"aggregate_orders.groupAggregateState": "0 ms"},
    ),
    "the full path of a table is its name": Example(
        "SELECT /*+ STATE_TTL('default_catalog.default_database.orders' = '1d') */ COUNT(*) FROM orders",
        {"aggregate_orders.groupAggregateState": "1 d"},
    ),
    # Flink merges aggregates that differ only in their TTL, and gives both the first one's
    "aggregates that differ only in TTL stay two": Example(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ o_custkey, COUNT(*) FROM orders GROUP BY o_custkey UNION ALL "
        "SELECT /*+ STATE_TTL('orders' = '2d') */ o_custkey, COUNT(*) FROM orders GROUP BY o_custkey",
        {
            "aggregate_orders.groupAggregateState": "1 d",
            "aggregate_orders_in_wanted.groupAggregateState": "2 d",
        },
    ),
}


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
        "BROADCAST has no effect: Spark chooses how a batch job joins",
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
            {f"aggregate_orders{below}.groupAggregateState"},
        )
        for clause, below, query in (
            ("WHERE, GROUP BY", "_customers", f"COUNT(*) FROM orders WHERE {IN_SUBQUERY} GROUP BY o_custkey"),
            ("WHERE, DISTINCT", "_customers", f"DISTINCT o_custkey FROM orders WHERE {IN_SUBQUERY}"),
            ("WHERE, as a value", "_customers", f"COUNT(*) FROM orders WHERE o_custkey > {OF_VALUE}"),
            ("HAVING", "", f"COUNT(*) FROM orders GROUP BY o_custkey HAVING COUNT(*) > {OF_VALUE}"),
            ("SELECT", "", f"COUNT(*) - {OF_VALUE} FROM orders GROUP BY o_custkey"),
            ("SELECT DISTINCT", "_customers", f"DISTINCT o_custkey - {OF_VALUE} FROM orders"),
        )
    },
    # measured in Flink, which builds an aggregate more
    "the block of a value, with a sub-query of its own": (
        "SELECT COUNT(*) FROM lineitem WHERE l_orderkey > (SELECT /*+ STATE_TTL('orders' = '1d') */ MIN(o_orderkey) "
        f"FROM orders WHERE {IN_SUBQUERY})",
        [OF_AGGREGATE],
        {"aggregate_orders_customers.groupAggregateState"},
    ),
    # Flink knows no name for the input of a sub-query here: the key would be an error
    "the sub-query's input": (
        f"SELECT /*+ STATE_TTL('orders' = '1d', 'customers' = '2d') */ COUNT(*) FROM orders WHERE {IN_SUBQUERY}",
        [
            OF_AGGREGATE,
            "STATE_TTL key 'customers' sets a state of the join with the sub-query, not that of the aggregation of "
            "this block",
        ],
        {"aggregate_orders_customers.groupAggregateState", "join_orders_customers.rightState"},
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
    hinted = {f"{o.id}.{s.name}" for o in done.plan.operators for s in getattr(o, "state", ()) if "hint" in s.origin}
    assert applied == hinted


def test_origin_records_the_layers_that_spoke() -> None:
    sql = f"SELECT /*+ STATE_TTL('o' = '1d') */ o_orderkey FROM orders o JOIN customers c {ON}"
    configured = compiled(sql).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [dict(s.origin) for s in configured] == [{"config": "90 s", "hint": "1 d"}, {"config": "90 s"}]
    query = sql.replace("o_orderkey FROM", "CAST(o_orderkey AS STRING) FROM")
    text = TABLES.replace("SET 'table.exec.state.ttl' = '90 s';", "") + f"INSERT INTO one {query};"
    plain = compile_script(text).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [dict(s.origin) for s in plain] == [{"default": "0 ms", "hint": "1 d"}, {"default": "0 ms"}]
    assert [s.ttl for s in plain] == ["1 d", "0 ms"]
    overridden = compile_script(text, {"table.exec.state.ttl": "3600s"}).plan.operator("join_o_c").state  # type: ignore[union-attr]
    assert [dict(s.origin) for s in overridden] == [{"config": "1 h", "hint": "1 d"}, {"config": "1 h"}]
