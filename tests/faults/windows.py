"""Windows of event time in the jobs of the kills: aggregates, first rows and a join of windows; the right results.

Orders come at most 4 s later than orders of the same source with later times. The delay is 5 s, so no such order is
late, and the windows that are closed depend on the orders alone. Every twentieth order comes an hour later: long
after its windows, however orders are cut into batches. Each aggregate drops it, and writes it to a table.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tests.faults.jobs import Row

__all__ = [
    "BY_CUSTOMER",
    "BY_WINDOW",
    "COLUMN",
    "LATE_COLUMNS",
    "TABLES",
    "Order",
    "expected",
    "inserts",
    "is_late",
    "late_rows",
    "tables",
    "target",
    "time_of",
    "time_text",
    "views",
]

DELAY_MS, DISORDER_MS, SIZE_MS, LATE_MS = 5_000, 4_000, 10_000, 3_600_000
COLUMN = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
TABLES = ("counted", "best", "compared")
BY_CUSTOMER, BY_WINDOW = ("window_orders", "window_orders_in_by_customer"), ("window_orders_in_by_window",)
"""The aggregates of each view. First rows need fewer columns than counts, so the first view has two of them."""
_KEYS = "window_start, window_end"
_WINDOWS = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
_SECONDS = "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {})"
LATE_COLUMNS = "id BIGINT, customer BIGINT, amount BIGINT, ts TIMESTAMP(3), operator STRING, watermark TIMESTAMP_LTZ(3)"


class Order(NamedTuple):
    """An order with its time in ms."""

    customer: int
    amount: int
    time: int


def tables(options: str) -> str:
    """The tables of results; ``options`` are the options of a database, without the name of a table."""
    columns = {
        "counted": "customer BIGINT, ending BIGINT, orders BIGINT, amount BIGINT",
        "best": "ending BIGINT, place BIGINT, customer BIGINT, amount BIGINT",
        "compared": "customer BIGINT, ending BIGINT, amount BIGINT, orders BIGINT, dearest BIGINT",
    }
    return "".join(
        f"CREATE TABLE {name} ({given}) WITH ({options}, 'table-name' = '{name}');\n" for name, given in columns.items()
    )


def target(table: str) -> str:
    """The option of ``orders`` with which late orders go to ``table``."""
    return f"'late-rows.target' = '{table}'"


def views(also: str) -> str:
    """The aggregates of windows; late orders of the second view go to the table ``also``."""
    return f"""
CREATE VIEW orders_again AS SELECT * FROM orders /*+ OPTIONS({target(also)}) */;
CREATE VIEW by_customer AS SELECT customer, {_KEYS}, COUNT(*) AS orders, SUM(amount) AS amount
  FROM {_WINDOWS.format("orders")} GROUP BY customer, {_KEYS};
CREATE VIEW by_window AS SELECT {_KEYS}, COUNT(*) AS orders, MAX(amount) AS dearest
  FROM {_WINDOWS.format("orders_again")} GROUP BY {_KEYS};
"""


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
    return number * 1000 - dice.randint(0, DISORDER_MS) - (LATE_MS if is_late(number) else 0)


def is_late(number: int) -> bool:
    """Return True if an order is late. The first batch has none of them, because no watermark is before it."""
    return number >= 60 and number % 20 == 0


def time_text(time: int) -> str:
    return (datetime(2024, 1, 1) + timedelta(milliseconds=time)).isoformat(" ", "milliseconds")


def late_rows(orders: Iterable[Sequence[Any]], operators: Iterable[str]) -> list[Row]:
    """The late ones of ``orders``, as each of ``operators`` drops them; an order begins with its number."""
    return sorted((operator, *order) for order in orders if is_late(order[0]) for operator in operators)


def expected(splits: Iterable[Sequence[Order]]) -> dict[str, list[Row]]:
    """The rows of each table, when all orders of all splits of the source are read; ``splits`` have no late ones."""
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
