"""For every rule of the linter, a plan that breaks it and one that does not, both made from one SQL script."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import hintplan
from hintplan import compile_sql
from hintplan.plans.declarations.windows import Window
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.config import SHARED_VIEWS, TIME_ZONE
from hintplan.plans.operators import Aggregate, Operator
from hintplan.plans.settings.state import StateEntry, ttl_settings
from tests.plans.windowed import HOP, assigner, counted, plan_of, scan, united, watermark

SQL = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (id BIGINT, customer BIGINT, currency STRING, total DOUBLE, pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE customers (id BIGINT, country STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/customers', 'format' = 'json');
CREATE TABLE rates (currency STRING, rate DOUBLE, PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'rates');
CREATE TABLE revenue (country STRING, revenue DOUBLE, PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'revenue');
INSERT INTO revenue
SELECT /*+ STATE_TTL('t' = '30 d') */ country, SUM(total)
FROM (
  SELECT /*+ STATE_TTL('c' = '20 d'),
    LOOKUP('table' = 'r', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay',
      'fixed-delay' = '10 s', 'max-attempts' = '3') */ c.country, o.total * r.rate AS total
  FROM orders AS o
  LEFT JOIN customers AS c ON o.customer = c.id
  LEFT JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.currency
) AS t
GROUP BY country;
"""
GOOD = compile_sql(SQL, name="revenue")
PARTIAL = ("lookup_r.cache.lookup.cache", "PARTIAL")
EXPIRY = "lookup_r.cache.lookup.partial-cache.expire-after-write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """``bad`` has one finding of the rule, ``good`` has none."""

    bad: str
    good: str


def edited(*edits: tuple[str, str]) -> str:
    """The plan after ``hintplan set``."""
    plan = GOOD
    for path, value in edits:
        plan, _ = set_value(plan, path, value)
    return hintplan.dumps(plan).decode()


def patched(change: Callable[[Any], None]) -> str:
    """The plan after someone has changed its JSON in an editor, and ``--allow-fact-edits`` has blessed the facts."""
    document = json.loads(hintplan.dumps(GOOD))
    change(document)
    text = json.dumps(document)
    plan = hintplan.loads(text, allow_fact_edits=True, check_meaning=False)
    return hintplan.dumps(plan).decode()


def respelled() -> str:
    text = hintplan.dumps(GOOD).decode()
    assert text.count('"ttl": "20 d"') == 1
    return text.replace('"ttl": "20 d"', '"ttl": "480 h"')


def full_with_retry(document: Any) -> None:
    document["tables"]["rates"]["options"] |= {
        "lookup.cache": "FULL",
        "lookup.full-cache.periodic-reload.interval": "10 min",
    }
    lookup = next(operator for operator in document["operators"] if operator["op"] == "lookup-join")
    lookup["async"] |= {"enabled": False}
    del lookup["async"]["origin"]["default"]["enabled"]
    lookup["async"]["origin"]["default"] = {"enabled": False, **lookup["async"]["origin"]["default"]}
    reload = "lookup.full-cache.periodic-reload."
    lookup["cache"] = {
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "PERIODIC",
        f"{reload}interval": "10 min",
        f"{reload}schedule-mode": "FIXED_DELAY",
        "lookup.max-retries": 3,
        "origin": {
            "default": {
                "lookup.full-cache.reload-strategy": "PERIODIC",
                f"{reload}schedule-mode": "FIXED_DELAY",
                "lookup.max-retries": 3,
            },
            "table": {"lookup.cache": "FULL", f"{reload}interval": "10 min"},
        },
    }


def full_without_retry(document: Any) -> None:
    full_with_retry(document)
    next(operator for operator in document["operators"] if operator["op"] == "lookup-join")["retry"] = None


def with_table(document: Any) -> None:
    document["tables"]["archive"] = {
        "columns": [{"name": "id", "type": "BIGINT"}],
        "options": {"connector": "blackhole"},
    }


def with_reason(document: Any) -> None:
    document["reasons"] = {LEFT: "late payments"}


BRANCHES = compile_sql(
    SQL[: SQL.index("INSERT INTO")]
    + """
CREATE VIEW priced AS SELECT o.id, o.currency, o.total * r.rate AS total
FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.currency;
INSERT INTO revenue SELECT currency, MAX(total) FROM priced WHERE total > 10 GROUP BY currency;
INSERT INTO revenue SELECT 'all', MAX(total) FROM priced WHERE id > 0;
""",
    name="revenue",
)


def branches(*operators: str) -> str:
    """A plan in which two branches look up alike, after ``hintplan set`` of these lookups."""
    plan = BRANCHES
    for operator in operators:
        plan, _ = set_value(plan, f"{operator}.async.capacity", "50")
    return hintplan.dumps(plan).decode()


def three_joined(hint: str) -> str:
    """The plan of a join of three tables, of which the hint is for some."""
    tables, _, _ = SQL.replace("'1 d'", "'7 d'").partition("INSERT INTO")
    query = (
        f"SELECT {hint} o.id, c.country, p.id AS p FROM orders AS o JOIN customers AS c ON o.customer = c.id "
        "JOIN orders AS p ON o.id = p.id"
    )
    sink = f"CREATE TABLE r WITH ('connector' = 'print') AS {query};"
    return hintplan.dumps(compile_sql(tables + sink, name="revenue")).decode()


LEFT, RIGHT = "join_o_c.state.leftState.ttl", "join_o_c.state.rightState.ttl"
SAME = compile_sql(SQL.replace("'c' = '20 d'", "'o' = '1 d', 'c' = '20 d'"), name="revenue")


def reading_twice(shared: str) -> str:
    """The plan of two INSERTs that read other columns of one view."""
    tables, _, _ = SQL.partition("INSERT INTO")
    view = "CREATE VIEW v AS SELECT o.id, o.total, c.country FROM orders AS o JOIN customers AS c ON o.customer = c.id;"
    jobs = "".join(
        f"CREATE TABLE r_{column} WITH ('connector' = 'print') AS SELECT id, {column} FROM v;"
        for column in ("total", "country")
    )
    return hintplan.dumps(compile_sql(tables + view + jobs, {SHARED_VIEWS: shared}, name="revenue")).decode()


def writing(how: str) -> str:
    """A batch job that writes a table in this way."""
    table = "(k INT) WITH ('connector' = 'filesystem', 'path' = '/{0}', 'format' = 'json');"
    tables = "".join(f"CREATE TABLE {name} {table.format(name)}" for name in ("o", "r"))
    script = f"SET 'execution.runtime-mode' = 'batch';{tables}INSERT {how} r SELECT k FROM o;"
    return hintplan.dumps(compile_sql(script, name="written")).decode()


def windowed(*more: Operator, delay: str = "4 s", window: Window = HOP, config: dict[str, str] | None = None) -> str:
    """A plan of windows with this delay, and with operators above it."""
    timed = replace(assigner(), settings=watermark(delay))
    return hintplan.dumps(plan_of(scan(), timed, counted(window), *more, config=config)).decode()


BIDS = """CREATE TABLE bid (auction BIGINT, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'bid', 'format' = 'json');
CREATE TABLE highest (auction BIGINT, price BIGINT) WITH ('connector' = 'print');"""
OF_WINDOWS = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))"


def highest(bids: str, condition: str) -> str:
    """The highest bids of each window, from ``bids`` that meet the maximum of the window by ``condition``."""
    maximum = f"""SELECT window_start, window_end, MAX(price) AS price FROM {OF_WINDOWS}
    GROUP BY window_start, window_end"""
    query = f"SELECT b.auction, b.price FROM {bids} AS b JOIN ({maximum}) AS m ON b.price = m.price AND {condition}"
    return hintplan.dumps(compile_sql(f"{BIDS} INSERT INTO highest {query};", name="highest")).decode()


def grouped(*keys: str) -> Aggregate:
    """A regular aggregate of windows by these columns."""
    state = StateEntry(index=0, name="groupAggregateState", input="w", settings=ttl_settings(edit="1 d"))
    return Aggregate(
        id="aggregate_w", inputs=("window_bid",), keys=keys, aggregates=(), changelog=("+I",), state=(state,)
    )


def idle_after(timeout: str) -> str:
    """A plan that counts the rows of two tables, which are left out after this time without rows."""
    plan = united()
    for name in ("watermark_a", "watermark_b")[: 2 if timeout != "0 ms" else 1]:
        plan, _ = set_value(plan, f"{name}.idle-timeout", timeout if timeout != "0 ms" else "1 min")
    return hintplan.dumps(plan).decode()


EXAMPLES = {
    "HP000": Example(bad=edited().replace('"join-type": "left"', '"join-type": "inner"', 1), good=edited()),
    "HP101": Example(bad=edited((RIGHT, "1 d")), good=edited((RIGHT, "2 d"))),
    "HP102": Example(bad=hintplan.dumps(SAME).decode(), good=edited()),
    "HP104": Example(
        bad=patched(with_reason),
        good=hintplan.dumps(set_value(GOOD, LEFT, "2 d", reason="late payments")[0]).decode(),
    ),
    "HP105": Example(bad=patched(with_table), good=edited()),
    "HP106": Example(
        bad=edited(("tables.orders.options.lookup.cache", "NONE")),
        good=edited(("tables.rates.options.lookup.cache", "NONE")),
    ),
    "HP201": Example(bad=edited((LEFT, "0 ms")), good=edited((LEFT, "7 d"))),
    "HP202": Example(
        bad=edited(("aggregate_t.state.groupAggregateState.ttl", "1 h")),
        good=edited(("aggregate_t.state.groupAggregateState.ttl", "1 d")),
    ),
    "HP203": Example(bad=edited((LEFT, "20 s")), good=edited((LEFT, "2 h"))),
    "HP204": Example(
        bad=edited(("tables.orders.options.json.ignore-parse-errors", "true")),
        good=edited(("tables.orders.options.json.ignore-parse-errors", "false")),
    ),
    "HP205": Example(bad=writing("OVERWRITE"), good=writing("INTO")),
    "HP206": Example(bad=reading_twice("false"), good=reading_twice("true")),
    "HP207": Example(
        bad=three_joined("/*+ STATE_TTL('o' = '1 d') */"), good=three_joined("/*+ STATE_TTL('o' = '7 d') */")
    ),
    "HP301": Example(bad=patched(full_with_retry), good=patched(full_without_retry)),
    "HP302": Example(bad=edited(("lookup_r.retry", "31 x 10 s")), good=edited(("lookup_r.retry", "30 x 10 s"))),
    "HP303": Example(bad=edited(("lookup_r.async.capacity", "1")), good=edited(("lookup_r.async.capacity", "2"))),
    "HP304": Example(bad=branches("lookup_r"), good=branches("lookup_r", "lookup_r_in_priced")),
    "HP305": Example(bad=edited(PARTIAL, (EXPIRY, "0 s")), good=edited(PARTIAL, (EXPIRY, "1 s"))),
    "HP401": Example(
        bad=windowed(window=Window(type="hop", size="1 h", slide="30 s")),
        good=windowed(window=Window(type="hop", size="1 h", slide="1 min")),
    ),
    "HP402": Example(
        bad=windowed(grouped("auction", "window_start")),
        good=windowed(grouped("auction", "window_start", "window_end")),
    ),
    "HP403": Example(bad=windowed(delay="10001 ms"), good=windowed(delay="10 s")),
    "HP404": Example(bad=idle_after("0 ms"), good=idle_after("1 min")),
    "HP405": Example(bad=windowed(config={TIME_ZONE: "Europe/Berlin"}), good=windowed()),
    "HP406": Example(
        bad=highest("bid", "b.ts >= m.window_start AND b.ts < m.window_end"),
        good=highest(OF_WINDOWS, "b.window_start = m.window_start AND b.window_end = m.window_end"),
    ),
}
"""By rule. HP001 and HP002 are about ignores, HP103 about SQL; ``test_lint.py`` has theirs."""
