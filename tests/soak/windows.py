"""Windows of event time in the job of the soak: their tables, the times of orders, and the right results.

Event time moves by 10 s a file. Some orders are out of order by less than the delay, so every window gets them. Some
come 8 min late: a micro-batch has at most forty files, so the watermark before it is past all their windows, however
the files are cut into batches. What is closed and what is open follows from the orders alone.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["COLUMNS", "FILES_OF_A_BATCH", "OPERATORS", "QUERIES", "Orders", "inserts", "stored", "tables"]

COLUMNS = "visitor BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND"
OPERATORS = ("window_orders", "join_a_b", "rank_kept", "window_kept")
"""The operators that keep open windows."""
QUERIES = ("window_orders", "window_kept")
"""Their queries."""
FILES_OF_A_BATCH = 40
_STEP_MS, _DELAY_MS, _DISORDER_MS, _SIZE_MS, _GAP_MS, _LATE_MS = 10_000, 10_000, 8_000, 60_000, 15_000, 500_000
_LATE_ROWS, _VISITORS, _VISITED, _NOBODY = 3, 100, 0.03, -1
_FEW, _PLACES = 5, 20
_WITH_TARGET = ("rank_kept", "window_kept")
_BEGIN = datetime(2024, 1, 1)

Row = tuple[Any, ...]


def tables(options: Callable[[str], str]) -> str:
    """The tables of results, and the views of orders; ``options`` gives the options of a table."""
    columns = {
        "sold": "product BIGINT, starting BIGINT, ending BIGINT, orders BIGINT, n BIGINT",
        "compared": "id BIGINT, ending BIGINT, orders BIGINT, n BIGINT",
        "firsts": "n BIGINT, ending BIGINT, place BIGINT, id BIGINT",
        "visits": "visitor BIGINT, starting BIGINT, ending BIGINT, orders BIGINT",
        "late_orders": "id BIGINT, customer BIGINT, product BIGINT, n BIGINT, visitor BIGINT, ts TIMESTAMP(3), "
        "operator STRING, watermark TIMESTAMP_LTZ(3)",
    }
    created = "".join(f"CREATE TABLE {name} ({listed}) WITH ({options(name)});\n" for name, listed in columns.items())
    return f"""{created}
CREATE VIEW kept AS SELECT * FROM orders /*+ OPTIONS('late-rows.target' = 'late_orders') */;
CREATE VIEW visiting AS SELECT * FROM kept WHERE visitor IS NOT NULL;
CREATE VIEW by_product AS
  SELECT product, window_start, window_end, COUNT(*) AS orders, SUM(n) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY product, window_start, window_end;
"""


def inserts() -> str:
    def seconds(column: str) -> str:
        return f"TIMESTAMPDIFF(SECOND, TIMESTAMP '{_BEGIN}', {column})"

    return f"""
INSERT INTO sold SELECT product, {seconds("window_start")}, {seconds("window_end")}, orders, n FROM by_product;
INSERT INTO compared SELECT a.id, {seconds("a.window_end")}, b.orders, b.n
  FROM (
    SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE customer < {_FEW}
  ) AS a JOIN by_product AS b
  ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.product = b.product;
INSERT INTO firsts SELECT n, {seconds("window_end")}, place, id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, n ORDER BY id) AS place
  FROM TABLE(TUMBLE(TABLE kept, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE place <= {_PLACES};
INSERT INTO visits SELECT visitor, {seconds("window_start")}, {seconds("window_end")}, COUNT(*)
  FROM TABLE(SESSION(TABLE visiting PARTITION BY visitor, DESCRIPTOR(ts), INTERVAL '15' SECOND))
  GROUP BY visitor, window_start, window_end;
"""


class Orders:
    """Gives orders their times and visitors, and keeps what the windows must make of them."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._highest = 0
        self._sold: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
        self._few: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._firsts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._visits: dict[int, list[int]] = defaultdict(list)
        self._late: list[int] = []

    @property
    def late(self) -> int:
        """The number of late orders so far."""
        return len(self._late)

    def time(self, file: int, rows: Sequence[dict[str, Any]]) -> None:
        """Add a time and a visitor to each row of a file."""
        begin = (file + 1) * _STEP_MS
        late = set(self._dice.sample(range(len(rows)), _LATE_ROWS)) if begin > _LATE_MS else set()
        for index, row in enumerate(rows):
            time, visitor = begin + index * _STEP_MS // len(rows), None
            if index in late:
                time, visitor, row["customer"] = time - _LATE_MS, _NOBODY, 0
                self._late.append(row["id"])
            else:
                time -= self._dice.randint(0, _DISORDER_MS) if self._dice.random() < 0.1 else 0
                visitor = self._dice.randrange(_VISITORS) if self._dice.random() < _VISITED else None
                self._keep(row, time, visitor)
            row["ts"] = (_BEGIN + timedelta(milliseconds=time)).isoformat(" ", "milliseconds")
            row["visitor"] = visitor

    def _keep(self, row: Mapping[str, Any], time: int, visitor: int | None) -> None:
        self._highest = max(self._highest, time)
        end = time // _SIZE_MS * _SIZE_MS + _SIZE_MS
        sold = self._sold[end][row["product"]]
        sold[0] += 1
        sold[1] += row["n"]
        if row["customer"] < _FEW:
            self._few[end].append((row["id"], row["product"]))
        firsts = self._firsts[end][row["n"]]
        if len(firsts) < _PLACES:
            firsts.append(row["id"])
        if visitor is not None:
            self._visits[visitor].append(time)

    def _sessions(self) -> Iterator[tuple[int, int, int, int]]:
        """Each session: its visitor, start, end, and number of orders."""
        for visitor, times in self._visits.items():
            ordered = sorted(times)
            # A row that is more than the gap behind the row before it begins a session.
            begins = [0, *(i for i in range(1, len(ordered)) if ordered[i] > ordered[i - 1] + _GAP_MS), len(ordered)]
            for first, beyond in pairwise(begins):
                yield visitor, ordered[first], ordered[beyond - 1] + _GAP_MS, beyond - first

    def _closed(self, end: int) -> bool:
        return end - 1 <= self._highest - _DELAY_MS

    def expected(self) -> dict[str, Counter[Row]]:
        """The rows of each table of results, once all orders are read."""
        closed = [end for end in self._sold if self._closed(end)]
        return {
            "sold": Counter(
                (product, _seconds(end - _SIZE_MS), _seconds(end), *sums)
                for end in closed
                for product, sums in self._sold[end].items()
            ),
            "compared": Counter(
                (order, _seconds(end), *self._sold[end][product]) for end in closed for order, product in self._few[end]
            ),
            "firsts": Counter(
                (n, _seconds(end), place, order)
                for end in closed
                for n, orders in self._firsts[end].items()
                for place, order in enumerate(orders, start=1)
            ),
            "visits": Counter(
                (visitor, _seconds(begin), _seconds(end), count)
                for visitor, begin, end, count in self._sessions()
                if self._closed(end)
            ),
            "late_orders": Counter((order, name) for order in self._late for name in _WITH_TARGET),
        }

    def open_rows(self) -> dict[str, int]:
        """The number of rows that each of :data:`OPERATORS` must hold, once all orders are read."""
        open_ = [end for end in self._sold if not self._closed(end)]
        return {
            "window_orders": sum(len(self._sold[end]) for end in open_),
            "join_a_b": sum(len(self._few[end]) for end in open_),
            "rank_kept": sum(len(orders) for end in open_ for orders in self._firsts[end].values()),
            "window_kept": sum(not self._closed(end) for _, _, end, _ in self._sessions()),
        }


def stored(directory: Path) -> dict[str, Counter[Row]]:
    """The rows of the tables of results; of late orders, their numbers and the operators that have dropped them."""
    columns = {"late_orders": "id, operator"}
    with closing(sqlite3.connect(directory / "result.db")) as database:
        return {
            name: Counter(database.execute(f"SELECT {columns.get(name, '*')} FROM {name}"))
            for name in ("sold", "compared", "firsts", "visits", "late_orders")
        }


def _seconds(time: int) -> int:
    return time // 1000
