"""Versions of one plan, as a repository sees them: SQL that moves on, and edits by hand on top of it."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

import hintplan
from hintplan import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan

TABLES = """
CREATE TABLE orders (id BIGINT, customer BIGINT, currency STRING, total DOUBLE, pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');
CREATE TABLE customers (id BIGINT, country STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/customers', 'format' = 'json');
CREATE TABLE rates (currency STRING, rate DOUBLE, PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'rates', {cache});
CREATE TABLE revenue (country STRING, revenue DOUBLE, PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'revenue');
CREATE TABLE log (id BIGINT, total DOUBLE) WITH ('connector' = 'print');
"""
QUERY = """
INSERT INTO revenue
SELECT /*+ STATE_TTL('t' = '7 d') */ country, SUM(total)
FROM (
  SELECT /*+ STATE_TTL('{o}' = '{ttl}', 'c' = '20 d'),
    LOOKUP('table' = 'r', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay',
      'fixed-delay' = '10 s', 'max-attempts' = '{attempts}') */ c.country, {o}.total * r.rate AS total
  FROM orders AS {o}
  LEFT JOIN customers AS c ON {o}.customer = c.id
  LEFT JOIN rates FOR SYSTEM_TIME AS OF {o}.pt AS r ON {o}.currency = r.currency
  {where}
) AS t
GROUP BY country;
"""
DEFAULTS = {
    "config": "1 h",
    "path": "data/orders",
    "cache": "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '1000'",
    "o": "o",
    "ttl": "1 d",
    "attempts": "3",
    "where": "",
    "log": "",
}
VARIANTS: dict[str, dict[str, str]] = {
    "as it was": {},
    "config": {"config": "2 h"},
    "path": {"path": "data/orders/v2"},
    "cache": {"cache": "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '2000'"},
    "hint": {"ttl": "2 d"},
    "attempts": {"attempts": "5"},
    "filter": {"where": "WHERE {o}.total > 0"},
    "sink": {"log": "INSERT INTO log SELECT id, total FROM orders;"},
    "hint and sink": {"ttl": "3 d", "log": "INSERT INTO log SELECT id, total FROM orders;"},
}
EDITS = (
    ("join_o_c.state.leftState.ttl", ("1 h", "1 d", "2 d", "3 d", "0 ms")),
    ("join_o_c.state.rightState.ttl", ("30 d", "40 d")),
    ("aggregate_t.state.groupAggregateState.ttl", ("9 d", "0 ms")),
    ("config.table.exec.state.ttl", ("2 h", "3 h")),
    ("config.parallelism.default", ("4", "8")),
    ("tables.orders.options.path", ("data/orders/v2", "data/test")),
    ("tables.revenue.options.url", ("jdbc:sqlite:other.db",)),
    ("lookup_r.async.capacity", ("10", "20")),
    ("lookup_r.async.enabled", ("false",)),
    ("lookup_r.retry.max-attempts", ("5", "7")),
    ("lookup_r.retry", ("off", "2 x 1 s")),
    ("lookup_r.cache.lookup.partial-cache.max-rows", ("10", "2000")),
    ("lookup_r.cache.lookup.cache", ("NONE", "FULL")),
    ("name", ("renamed",)),
)


@cache
def compiled(variant: str = "as it was", **more: str) -> Plan:
    """The plan of one version of the SQL."""
    values = {**DEFAULTS, **VARIANTS[variant], **more}
    script = "SET 'table.exec.state.ttl' = '{config}';" + TABLES + QUERY.replace("{where}", values["where"]) + "{log}"
    return compile_sql(script.format(**values), name="revenue")


def edited(plan: Plan, *edits: tuple[str, str]) -> Plan:
    """The plan with each edit that it takes."""
    for path, value in edits:
        try:
            plan, _ = set_value(plan, path, value)
        except PlanError:
            continue  # such as the cache settings of a lookup.cache that an earlier edit has changed
    try:
        return hintplan.loads(hintplan.dumps(plan))
    except PlanError:
        return compiled()


VALUES = st.sampled_from(EDITS).flatmap(lambda edit: st.tuples(st.just(edit[0]), st.sampled_from(edit[1])))
EDIT_LISTS = st.lists(VALUES, max_size=4)
VERSIONS = st.builds(lambda variant, edits: edited(compiled(variant), *edits), st.sampled_from([*VARIANTS]), EDIT_LISTS)
"""Plans of any version of the SQL, edited or not."""
