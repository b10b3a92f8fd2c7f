"""STATE_TTL hints and the states they set: the examples of FLIP-373, and what Flink 2.3 was measured to do.

Where the answer differs from Flink's, a comment says so and why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hintplan.planner.compile import Compilation, compile_script

__all__ = ["CONFIG", "FILES", "MEASURED", "ON", "SEED", "TABLES", "Example", "compiled"]

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
        {"join_o_c.leftState": "1 d", "join_o_c.rightState": "2 d", "aggregate_wanted.groupAggregateState": CONFIG},
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
