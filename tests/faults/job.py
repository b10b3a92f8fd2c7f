"""The job of the kills: a changelog joined, then aggregated, and windows, into SQLite; its input and right results.

orders ──┬──────────────────── copies     (appended; twice the same row would show)
         ├─ left join ─ aggregate ─ totals (upserted)
customers ──┘
         └─ windows of event time          (appended; only in the job that is killed at random)
            └─ late orders                 (appended, by each aggregate)
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import hintplan
from hintplan.plans.model.plan import Plan
from tests.faults import windows
from tests.faults.jobs import Job, Row, difference, events_of

__all__ = ["Feed", "compiled", "expected", "files_job", "rows_of"]

_TABLES = ("orders", "customers")
JOIN = """
    SELECT /*+ STATE_TTL('o' = '3 d', 'c' = '20 d') */ COALESCE(c.country, 'nowhere') AS country, o.amount
    FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.customer
"""
"""Means the same to SQLite, to which the hint is a comment."""


def script(directory: Path, *, files_per_batch: int, database: str = "", lake: str = "", by_time: bool = False) -> str:
    """The job on the files of ``directory``: of each table at most so many a micro-batch, the oldest first.

    ``database`` are the options of another one than the SQLite database there, ``lake`` those of a table's place, up to
    its name. ``by_time`` adds the windows.
    """
    files = f"""'connector' = 'filesystem', 'format' = 'json',
        'source.max-files-per-trigger' = '{files_per_batch}', 'path' = '{directory}/input/"""
    database = database or f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/result.db'"
    timed, time, late = "", "", ""
    if by_time:
        timed = f"""{windows.tables(database)}
CREATE TABLE late_orders ({windows.LATE_COLUMNS}) WITH ({database}, 'table-name' = 'late_orders');
{windows.views("late_orders")}{windows.inserts()}"""
        time, late = f", {windows.COLUMN}", f", {windows.target('late_orders')}"
    database = lake or f"{database}, 'table-name' = '"
    return f"""
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT{time}) WITH ({files}orders'{late});
CREATE TABLE customers (customer BIGINT, country STRING) WITH ({files}customers', 'source.changelog' = 'true');
CREATE TABLE totals (
  country VARCHAR(20), orders BIGINT, amount BIGINT, dearest BIGINT, PRIMARY KEY (country) NOT ENFORCED
) WITH ({database}totals');
CREATE TABLE copies (id BIGINT, customer BIGINT, amount BIGINT) WITH ({database}copies');
INSERT INTO totals
  SELECT country, COUNT(*), SUM(amount), MAX(amount) FROM ({JOIN}) AS joined GROUP BY country;
INSERT INTO copies SELECT id, customer, amount FROM orders;
{timed}"""


def compiled(
    directory: Path, *, files_per_batch: int = 2, database: str = "", lake: str = "", by_time: bool = False
) -> Plan:
    """The plan; with two files a batch, one may take back what the other inserts."""
    text = script(directory, files_per_batch=files_per_batch, database=database, lake=lake, by_time=by_time)
    return hintplan.compile_sql(text, {"parallelism.default": "2"}, name="faults")


class Feed:
    """Writes input files: orders, and customers who come, move and go, in an order that makes sense."""

    def __init__(self, directory: Path, seed: int, *, customers: int = 12, rows: int = 15) -> None:
        self._directory = directory
        self._random = random.Random(seed)
        self._times = random.Random(seed)
        self._customers = customers
        self._rows = rows
        self._files = 0
        self._countries: dict[int, str] = {}
        for table in _TABLES:
            (directory / "input" / table).mkdir(parents=True, exist_ok=True)

    def add(self) -> None:
        """One more file for each table."""
        first = self._files * self._rows
        orders = [
            {"id": first + i, "customer": self._random.randrange(self._customers), "amount": self._random.randrange(99)}
            for i in range(self._rows)
        ]
        for order in orders:
            order["ts"] = windows.time_text(windows.time_of(order["id"], self._times))
        self._write("orders", orders)
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


def expected(directory: Path) -> dict[str, list[Row]]:
    """What both tables must hold once all input files are read: what SQLite makes of them, at a single blow."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE orders (id, customer, amount)")
        database.executemany("INSERT INTO orders VALUES (:id, :customer, :amount)", _lines(directory, "orders"))
        # What is left of a changelog: rows that came more often than they went.
        living: Counter[Row] = Counter()
        for change in _lines(directory, "customers"):
            living[change["customer"], change["country"]] += 1 if change["op"] in ("+I", "+U") else -1
        database.execute("CREATE TABLE customers (customer, country)")
        database.executemany("INSERT INTO customers VALUES (?, ?)", living.elements())
        totals = f"SELECT country, COUNT(*), SUM(amount), MAX(amount) FROM ({JOIN}) GROUP BY country"
        return {
            "totals": sorted(database.execute(totals).fetchall()),
            "copies": sorted(database.execute("SELECT id, customer, amount FROM orders").fetchall()),
        }


def expected_by_time(directory: Path) -> dict[str, list[Row]]:
    """What the tables of windows, and the one of late orders, must hold."""
    begin = datetime(2024, 1, 1)
    lines = [*_lines(directory, "orders")]
    orders = [
        windows.Order(
            line["customer"],
            line["amount"],
            round((datetime.fromisoformat(line["ts"]) - begin).total_seconds() * 1000),
        )
        for line in lines
        if not windows.is_late(line["id"])
    ]
    every = [(line["id"], line["customer"], line["amount"]) for line in lines]
    late = windows.late_rows(every, windows.BY_CUSTOMER + windows.BY_WINDOW)
    return windows.expected([orders]) | {"late_orders": late}


def _lines(directory: Path, table: str) -> Iterator[dict[str, Any]]:
    for path in sorted((directory / "input" / table).iterdir()):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def rows_of(directory: Path, tables: Sequence[str] = ("totals", "copies")) -> dict[str, list[Row]]:
    """What the tables hold, in order; nothing of tables that are not there yet. Of late orders, no times."""
    columns = {"late_orders": "operator, id, customer, amount"}
    with closing(sqlite3.connect(directory / "result.db")) as database:
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return {
            name: sorted(database.execute(f"SELECT {columns.get(name, '*')} FROM {name}").fetchall())
            if name in there
            else []
            for name in tables
        }


@contextmanager
def files_job(directory: Path, seed: int) -> Iterator[Job]:
    """The job, for kills."""

    def wrong() -> str:
        try:
            wanted = expected(directory) | expected_by_time(directory)
            return difference(wanted, rows_of(directory, [*wanted]))
        except sqlite3.OperationalError as error:
            return str(error)  # it is not there yet, or is written to at this moment

    def copies() -> int:
        try:
            return len(rows_of(directory)["copies"])
        except sqlite3.OperationalError:
            return 0

    feed = Feed(directory, seed)
    small, large = (compiled(directory, files_per_batch=most, by_time=True) for most in (2, 100))
    yield Job(plan=small, rest=large, feed=feed.add, wrong=wrong, events=events_of(directory, copies))
