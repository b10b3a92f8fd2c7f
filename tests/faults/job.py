"""The job of the fault tests: a changelog joined, then aggregated, into SQLite; its input, and what it must come to.

orders ──┬──────────────────── copies     (appended; twice the same row would show)
         └─ left join ─ aggregate ─ totals (upserted)
customers ──┘
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import planner
import plans

__all__ = ["Feed", "expected", "rows_of", "write_plan"]

_FILES = "'connector' = 'filesystem', 'format' = 'json'"
SCRIPT = f"""
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)
  WITH ({_FILES}, 'path' = 'input/orders', 'source.max-files-per-trigger' = '2');
CREATE TABLE customers (customer BIGINT, country STRING)
  WITH ({_FILES}, 'path' = 'input/customers', 'source.max-files-per-trigger' = '2', 'source.changelog' = 'true');
CREATE TABLE totals (
  country STRING, orders BIGINT, amount BIGINT, dearest BIGINT, PRIMARY KEY (country) NOT ENFORCED
) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:result.db', 'table-name' = 'totals');
CREATE TABLE copies (id BIGINT, customer BIGINT, amount BIGINT)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:result.db', 'table-name' = 'copies');
INSERT INTO totals
  SELECT country, COUNT(*), SUM(amount), MAX(amount) FROM (
    SELECT /*+ STATE_TTL('o' = '3 d', 'c' = '20 d') */ COALESCE(c.country, 'nowhere') AS country, o.amount
    FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.customer
  ) AS joined GROUP BY country;
INSERT INTO copies SELECT id, customer, amount FROM orders;
"""

Row = tuple[Any, ...]


def write_plan(directory: Path) -> None:
    """``plan.json``, compiled; two files a batch, one of which may take back what the other inserts."""
    plans.dump(planner.compile_sql(SCRIPT, {"parallelism.default": "2"}, name="faults"), directory / "plan.json")


class Feed:
    """Writes input files: orders, and customers who come, move and go, in an order that makes sense."""

    def __init__(self, directory: Path, seed: int, *, customers: int = 12, rows: int = 15) -> None:
        self._directory = directory
        self._random = random.Random(seed)
        self._customers = customers
        self._rows = rows
        self._files = 0
        self._countries: dict[int, str] = {}
        self.orders: list[dict[str, int]] = []
        for name in ("orders", "customers"):
            (directory / "input" / name).mkdir(parents=True, exist_ok=True)

    def add(self) -> None:
        """One more file for each table."""
        first = len(self.orders)
        new = [
            {"id": first + i, "customer": self._random.randrange(self._customers), "amount": self._random.randrange(99)}
            for i in range(self._rows)
        ]
        self.orders += new
        self._write("orders", new)
        self._write("customers", [change for _ in range(4) for change in self._change()])
        self._files += 1

    def _change(self) -> Iterator[dict[str, Any]]:
        customer = self._random.randrange(self._customers)
        before = self._countries.get(customer)
        after = self._random.choice(["DE", "FR", "PL", None])
        if before is not None:
            yield {"op": "-D" if after is None else "-U", "customer": customer, "country": before}
        if after is None:
            self._countries.pop(customer, None)
            return
        yield {"op": "+I" if before is None else "+U", "customer": customer, "country": after}
        self._countries[customer] = after

    def _write(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        draft = self._directory / "draft.json"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        # Files are read in the order of their times, which the clock of a file system may not tell apart.
        os.utime(draft, (1_700_000_000 + self._files,) * 2)
        draft.rename(self._directory / "input" / table / f"{self._files:06}.json")

    @property
    def countries(self) -> Mapping[int, str]:
        """Where each customer lives in the end."""
        return self._countries


def expected(feed: Feed) -> dict[str, list[Row]]:
    """What both tables must hold, computed from the rows that were fed, one by one."""
    groups: dict[str, list[int]] = {}
    for order in feed.orders:
        groups.setdefault(feed.countries.get(order["customer"], "nowhere"), []).append(order["amount"])
    totals: list[Row] = sorted((name, len(found), sum(found), max(found)) for name, found in groups.items())
    copies: list[Row] = sorted((order["id"], order["customer"], order["amount"]) for order in feed.orders)
    return {"totals": totals, "copies": copies}


def rows_of(directory: Path) -> dict[str, list[Row]]:
    """What both tables hold, in order."""
    connection = sqlite3.connect(directory / "result.db")
    try:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in ("totals", "copies")}
    finally:
        connection.close()
