"""The job of the kills whose operators go by event time without windows, into SQLite; its input and right results.

orders ──┬─ interval left join of orders  ─ pairs   (appended)
         ├─ over, the last 30 s           ─ sums    (appended)
         ├─ temporal left join of rates   ─ priced  (appended)
         └─ first row of each customer    ─ firsts  (appended)

No row is late: orders and rates come at most 4 s out of order, and the delay is 5 s. So all results depend on the input
alone, and the reference kernels of the tests of event time compute them at a single blow.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import hintplan
from hintplan.plans.model.plan import Plan
from tests.faults.jobs import Job, Row, difference, events_of
from tests.faults.windows import COLUMN, DELAY_MS, DISORDER_MS, time_text
from tests.runtime.event_time import models_of_rows
from tests.runtime.event_time.models import Row as Timed
from tests.runtime.event_time.times import NEVER

__all__ = ["times_job"]

_ORDERS, _RATES, _CUSTOMERS = 12, 4, 8
_SINKS = {
    "pairs": "customer BIGINT, id BIGINT, other BIGINT",
    "sums": "customer BIGINT, id BIGINT, total BIGINT",
    "priced": "customer BIGINT, id BIGINT, rate BIGINT",
    "firsts": "customer BIGINT, id BIGINT",
}


def compiled(directory: Path, *, files_per_batch: int = 2) -> Plan:
    """The plan, which reads at most ``files_per_batch`` files of each table in a micro-batch."""
    files = f"""'connector' = 'filesystem', 'format' = 'json', 'source.max-files-per-trigger' = '{files_per_batch}',
        'path' = '{directory}/input/"""
    sinks = "".join(
        f"CREATE TABLE {name} ({columns}) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/result.db', 'table-name' = '{name}');\n"
        for name, columns in _SINKS.items()
    )
    script = f"""
CREATE TABLE orders (id BIGINT, customer BIGINT, {COLUMN}) WITH ({files}orders');
CREATE TABLE rates (id BIGINT, customer BIGINT, {COLUMN}, PRIMARY KEY (customer) NOT ENFORCED)
  WITH ({files}rates', 'source.changelog' = 'upsert');
{sinks}
INSERT INTO pairs SELECT a.customer, a.id, b.id FROM orders AS a LEFT JOIN orders AS b
  ON a.customer = b.customer AND b.ts BETWEEN a.ts + INTERVAL '1' SECOND AND a.ts + INTERVAL '7' SECOND;
INSERT INTO sums SELECT customer, id, SUM(id) OVER (
  PARTITION BY customer ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW) FROM orders;
INSERT INTO priced SELECT o.customer, o.id, r.id FROM orders AS o
  LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.customer = r.customer;
INSERT INTO firsts SELECT customer, id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts) AS place FROM orders) WHERE place = 1;
"""
    return hintplan.compile_sql(script, {"parallelism.default": "2"}, name="times")


class Feed:
    """Writes input files of orders and rates, whose times differ."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory, self._random, self._files = directory, random.Random(seed), 0
        for table in ("orders", "rates"):
            (directory / "input" / table).mkdir(parents=True, exist_ok=True)

    def add(self) -> None:
        """One more file for each table, of the same seconds."""
        for table, count in (("orders", _ORDERS), ("rates", _RATES)):
            rows = [self._row(self._files * count + place, _ORDERS // count) for place in range(count)]
            draft = self._directory / "draft.json"
            draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            # Files are read in the order of their times, which the clock of a file system may not tell apart.
            os.utime(draft, (1_700_000_000 + self._files,) * 2)
            draft.rename(self._directory / "input" / table / f"{self._files:06}.json")
        self._files += 1

    def _row(self, number: int, seconds: int) -> dict[str, Any]:
        """A row; its milliseconds are its number, so that no time comes twice within 1,000 rows."""
        second = number * seconds - self._random.randint(0, DISORDER_MS // 1000 - 1)
        time = second * 1000 + number % 1000
        return {"id": number, "customer": self._random.randrange(_CUSTOMERS), "ts": time_text(time), "time": time}


def expected(directory: Path) -> dict[str, list[Row]]:
    """What the tables must hold once all input files are read, and no window is drained."""
    orders, rates = (_rows(directory, table, side) for side, table in enumerate(("orders", "rates")))
    if not orders or not rates:
        return {name: [] for name in _SINKS}
    watermark = max(row.time for row in orders) - DELAY_MS
    of_both = min(watermark, max(row.time for row in rates) - DELAY_MS)
    # The kernels take a join as left.time from right.time - low to right.time + high.
    pairs = models_of_rows.IntervalJoin("left", 7_000, -1_000)
    priced = models_of_rows.TemporalJoin(is_outer=True, key=lambda row: row.key)
    results = {
        "pairs": pairs.batch([*orders, *(row._replace(side=1) for row in orders)], NEVER, watermark),
        "sums": models_of_rows.Over("range", 30_000).batch(orders, NEVER, watermark),
        "priced": priced.batch([*orders, *rates], NEVER, of_both),
        "firsts": models_of_rows.FirstByTime().batch(orders, NEVER, watermark),
    }
    places = {"pairs": (0, 1, 3), "sums": (0, 1, 3), "priced": (0, 1, 3), "firsts": (0, 1)}
    return {
        name: sorted((tuple(row[place] for place in places[name]) for _, row in rows), key=str)
        for name, rows in results.items()
    }


def _rows(directory: Path, table: str, side: int) -> list[Timed]:
    return [
        Timed(row["time"], row["customer"], row["id"], 1, side)
        for path in sorted((directory / "input" / table).iterdir())
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    ]


def rows_of(directory: Path) -> dict[str, list[Row]]:
    """What the tables hold; nothing of tables that are not there yet."""
    with closing(sqlite3.connect(directory / "result.db")) as database:
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return {
            name: sorted(database.execute(f"SELECT * FROM {name}").fetchall(), key=str) if name in there else []
            for name in _SINKS
        }


@contextmanager
def times_job(directory: Path, seed: int) -> Iterator[Job]:
    """The job, for kills."""

    def wrong() -> str:
        try:
            return difference(expected(directory), rows_of(directory))
        except sqlite3.OperationalError as error:
            return str(error)  # it is not there yet, or is written to at this moment

    def sums() -> int:
        try:
            return len(rows_of(directory)["sums"])
        except sqlite3.OperationalError:
            return 0

    feed = Feed(directory, seed)
    yield Job(
        plan=compiled(directory), rest=compiled(directory, files_per_batch=100), feed=feed.add, wrong=wrong,
        events=events_of(directory, sums),
    )  # fmt: skip
