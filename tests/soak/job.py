"""The job of the soak: orders with a price that is looked up, joined with customers, totals by country into SQLite.

Customers are all there from the first batch on and orders are forgotten after a minute, so that the state has a size
that it keeps, and every total is known from what was written: a sum in Python, file by file. The orders have windows of
event time, too (:mod:`tests.soak.windows`).
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import hintplan
from hintplan.plans.model.plan import Plan
from tests.soak import windows

__all__ = ["Feed", "compiled", "totals"]

_CUSTOMERS, _PRODUCTS, _ROWS = 500, 300, 2_000
_COUNTRIES = ("DE", "FR", "PL", "CZ", "DK")


def compiled(directory: Path) -> Plan:
    """The plan on the files of ``directory``."""
    files = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/input/"
    database = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/"
    script = f"""
    SET 'table.exec.state.ttl' = '1 d';
    CREATE TABLE orders (id BIGINT, customer BIGINT, product BIGINT, n BIGINT, pt AS PROCTIME(), {windows.COLUMNS})
      WITH ({files}orders', 'source.max-files-per-trigger' = '{windows.FILES_OF_A_BATCH}');
    CREATE TABLE customers (customer BIGINT, country STRING) WITH ({files}customers');
    CREATE TABLE prices (product BIGINT, price BIGINT) WITH ({database}prices.db', 'table-name' = 'prices',
      'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '200',
      'lookup.partial-cache.expire-after-write' = '20 s');
    CREATE TABLE totals (
      country STRING, orders BIGINT, amount BIGINT, dearest BIGINT, PRIMARY KEY (country) NOT ENFORCED)
      WITH ({database}result.db', 'table-name' = 'totals');
    {windows.tables(lambda name: f"{database}result.db', 'table-name' = '{name}'")}
    {windows.inserts()}
    INSERT INTO totals
    SELECT country, COUNT(*), SUM(amount), MAX(amount) FROM (
      SELECT /*+ STATE_TTL('p' = '1 min', 'c' = '1 d') */ c.country, p.amount FROM (
        SELECT o.customer, o.n * r.price AS amount
        FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF o.pt AS r ON o.product = r.product
      ) AS p JOIN customers AS c ON p.customer = c.customer
    ) AS t GROUP BY country;
    """
    return hintplan.compile_sql(script, {"parallelism.default": "2"}, name="soak")


class Feed:
    """Writes customers, prices and files of orders, and adds up what the totals must be."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._dice = random.Random(seed)
        self.windows = windows.Orders(seed)
        self.files = 0
        self._count: Counter[str] = Counter()
        self._amount: Counter[str] = Counter()
        self._dearest: dict[str, int] = {}
        for table in ("orders", "customers"):
            (directory / "input" / table).mkdir(parents=True)
        self._country = {customer: self._dice.choice(_COUNTRIES) for customer in range(_CUSTOMERS)}
        self._price = {product: self._dice.randint(1, 999) for product in range(_PRODUCTS)}
        self._write("customers", [{"customer": c, "country": n} for c, n in self._country.items()], 0)
        with closing(sqlite3.connect(directory / "prices.db")) as database, database:
            database.execute("CREATE TABLE prices (product INTEGER, price INTEGER)")
            database.execute("CREATE INDEX by_product ON prices (product)")
            database.executemany("INSERT INTO prices VALUES (?, ?)", self._price.items())

    def add(self) -> None:
        """One more file of orders; some have no customer, some no product."""
        rows: list[dict[str, Any]] = []
        for index in range(_ROWS):
            customer, product = self._dice.randrange(_CUSTOMERS + 9), self._dice.randrange(_PRODUCTS + 9)
            n = self._dice.randint(1, 5)
            rows.append({"id": self.files * _ROWS + index, "customer": customer, "product": product, "n": n})
        self.windows.time(self.files, rows)
        for row in rows:
            customer, product, n = row["customer"], row["product"], row["n"]
            if customer in self._country and product in self._price:
                country, amount = self._country[customer], n * self._price[product]
                self._count[country] += 1
                self._amount[country] += amount
                self._dearest[country] = max(amount, self._dearest.get(country, 0))
        self._write("orders", rows, self.files)
        self.files += 1

    @property
    def expected(self) -> list[tuple[str, int, int, int]]:
        """The totals of all files so far."""
        return sorted((c, n, self._amount[c], self._dearest[c]) for c, n in self._count.items())

    def _write(self, table: str, rows: list[dict[str, object]], number: int) -> None:
        draft = self._directory / "draft.json"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.rename(draft, self._directory / "input" / table / f"{number:06}.json")


def totals(directory: Path) -> list[tuple[str, int, int, int]]:
    """What the sink holds."""
    with closing(sqlite3.connect(directory / "result.db")) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'totals'").fetchall():
            return []
        return sorted(database.execute("SELECT * FROM totals").fetchall())
