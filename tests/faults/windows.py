"""Windows of event time in the jobs of the kills: aggregates, first rows and a join of windows; the right results.

Orders come at most 4 s later than orders of the same source with later times. The delay is 5 s, so no order is late,
and the windows that are closed depend on the orders alone.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.faults.jobs import Row

__all__ = ["COLUMN", "TABLES", "VIEWS", "Order", "expected", "inserts", "tables", "time_of", "time_text"]

DELAY_MS, DISORDER_MS, SIZE_MS = 5_000, 4_000, 10_000
COLUMN = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
TABLES = ("counted", "best", "compared")
_KEYS = "window_start, window_end"
_WINDOWS = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
_SECONDS = "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {})"
VIEWS = f"""
CREATE VIEW by_customer AS SELECT customer, {_KEYS}, COUNT(*) AS orders, SUM(amount) AS amount
  FROM {_WINDOWS} GROUP BY customer, {_KEYS};
CREATE VIEW by_window AS SELECT {_KEYS}, COUNT(*) AS orders, MAX(amount) AS dearest FROM {_WINDOWS} GROUP BY {_KEYS};
"""


class Order(NamedTuple):
    """An order with its time in ms."""

    customer: int
    amount: int
    time: int


def tables(options: str) -> str:
    """The tables of results; ``options`` are those of a database, without the name of a table."""
    columns = {
        "counted": "customer BIGINT, ending BIGINT, orders BIGINT, amount BIGINT",
        "best": "ending BIGINT, place BIGINT, customer BIGINT, amount BIGINT",
        "compared": "customer BIGINT, ending BIGINT, amount BIGINT, orders BIGINT, dearest BIGINT",
    }
    return "".join(
        f"CREATE TABLE {name} ({given}) WITH ({options}, 'table-name' = '{name}');\n" for name, given in columns.items()
    )


def inserts() -> str:
    ending, joined = _SECONDS.format("window_end"), _SECONDS.format("a.window_end")
    return f"""
INSERT INTO counted SELECT customer, {ending}, orders, amount FROM by_customer;
INSERT INTO best SELECT {ending}, place, customer, amount FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY {_KEYS} ORDER BY amount DESC, customer) AS place FROM by_customer
) WHERE place <= 2;
INSERT INTO compared SELECT a.customer, {joined}, a.amount, b.orders, b.dearest FROM by_customer AS a
  JOIN by_window AS b ON a.window_start = b.window_start AND a.window_end = b.window_end;
"""


def time_of(number: int, dice: random.Random) -> int:
    """The time of an order: one comes each second."""
    return number * 1000 - dice.randint(0, DISORDER_MS)


def time_text(time: int) -> str:
    return (datetime(2024, 1, 1) + timedelta(milliseconds=time)).isoformat(" ", "milliseconds")


def expected(splits: Iterable[Sequence[Order]]) -> dict[str, list[Row]]:
    """The rows of each table, when all orders of all splits of the source are read."""
    splits = [orders for orders in splits if orders]
    watermark = min((max(order.time for order in orders) - DELAY_MS for orders in splits), default=0)
    windows: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for order in (order for orders in splits for order in orders):
        last = order.time // SIZE_MS * SIZE_MS + SIZE_MS - 1
        if last <= watermark:
            windows[last][order.customer].append(order.amount)
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for last, customers in windows.items():
        ending = int((datetime(2024, 1, 1) - datetime(1970, 1, 1)).total_seconds()) + (last + 1) // 1000
        amounts = [amount for each in customers.values() for amount in each]
        ranked = sorted((-sum(each), customer) for customer, each in customers.items())
        for customer, each in customers.items():
            found["counted"].append((customer, ending, len(each), sum(each)))
            found["compared"].append((customer, ending, sum(each), len(amounts), max(amounts)))
        for place, (negative, customer) in enumerate(ranked[:2], start=1):
            found["best"].append((ending, place, customer, -negative))
    return {name: sorted(rows) for name, rows in found.items()}
