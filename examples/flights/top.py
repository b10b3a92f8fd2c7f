"""Prints the airlines and makers with the most flights from the database that ``flights.sql`` fills.

python top.py delays.db [ROWS]
"""

from __future__ import annotations

import sqlite3
import sys

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

QUERY = """
SELECT carrier, manufacturer, flights, mean_arr_delay, distance
FROM delays ORDER BY flights DESC, carrier, manufacturer LIMIT ?
"""


def main(path: str, rows: int) -> None:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        groups, flights = connection.execute("SELECT COUNT(*), SUM(flights) FROM delays").fetchone()
        table = Table(title=f"{flights:,} flights in {groups} groups", title_justify="left", box=SIMPLE)
        table.padding = (0, 1, 0, 0)
        table.add_column("airline", no_wrap=True)
        table.add_column("maker", no_wrap=True)
        for column in ("flights", "delay, min", "1,000 miles"):
            table.add_column(column, justify="right")
        for carrier, maker, count, delay, distance in connection.execute(QUERY, (rows,)):
            mean = "" if delay is None else f"{delay:.1f}"
            table.add_row(carrier, maker, f"{count:,}", mean, f"{distance / 1000:,.0f}")
    finally:
        connection.close()
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
