"""Prints the fleets that ``enrich.sql`` computed, and how often each run found a plane in its cache.

python fleets.py fleets.db RUN.jsonl...     # each RUN is what `hintplan run --json` printed
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

QUERY = "SELECT carrier, flights, known, mean_age, mean_seats FROM fleets ORDER BY flights DESC"


def main(database: str, runs: list[str]) -> None:
    """Print one table of fleets, and a line for each run."""
    console = Console()
    console.print(fleets(database))
    for run in runs:
        lookups, hits, loads = counted(Path(run))
        console.print(f"{run}: {lookups:,} lookups, hit rate {hits / lookups:.1%}, {loads:,} planes asked for")


def fleets(database: str) -> Table:
    """The airlines with their flights, the part of these whose plane is known, and the planes' mean age and size."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        table = Table(title="Planes at New York City, 2013", title_justify="left", box=SIMPLE)
        for column in ("airline", "flights", "known", "mean age", "mean seats"):
            table.add_column(column, justify="left" if column == "airline" else "right")
        for carrier, flights, known, age, seats in connection.execute(QUERY):
            means = ["" if mean is None else f"{mean:.1f}" for mean in (age, seats)]
            table.add_row(carrier, f"{flights:,}", f"{known / flights:.0%}", *means)
        return table
    finally:
        connection.close()


def counted(run: Path) -> tuple[int, int, int]:
    """Lookups, hits and loads of a finished run, out of its last record."""
    end = json.loads(run.read_text(encoding="utf-8").splitlines()[-1])
    counts = end["lookups"]["sink_fleets"]["lookup_p"]
    return counts["lookups"], counts["hitCount"], counts["loadCount"]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
