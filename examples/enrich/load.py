"""Fills a table of planes from the example's data, in PostgreSQL or SQLite.

python load.py postgres          # the database that planes_postgres.sql names
python load.py sqlite planes.db
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

PLANES = Path(__file__).parent / "data" / "planes" / "planes.json"
TABLE = "CREATE TABLE planes (tailnum VARCHAR(6) PRIMARY KEY, year INT, manufacturer TEXT, seats INT)"


def planes() -> Iterator[tuple[str, int | None, str, int]]:
    """The planes as tail number, year, manufacturer and seats."""
    with PLANES.open(encoding="utf-8") as lines:
        for line in lines:
            plane = json.loads(line)
            yield plane["tailnum"], plane["year"], plane["manufacturer"], plane["seats"]


def fill_postgres(port: str, password: str) -> None:
    """Create the table in the server on ``port`` of this machine, and fill it."""
    import psycopg

    address = f"host=127.0.0.1 port={port} dbname=planes user=planes"
    with psycopg.connect(address, password=password) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS planes")
        cursor.execute(TABLE)
        with cursor.copy("COPY planes FROM STDIN") as copy:
            for plane in planes():
                copy.write_row(plane)


def fill_sqlite(path: str) -> None:
    """Create the table in the file at ``path``, and fill it."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute("DROP TABLE IF EXISTS planes")
            connection.execute(TABLE)
            connection.executemany("INSERT INTO planes VALUES (?, ?, ?, ?)", planes())
    finally:
        connection.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["postgres"]:
        fill_postgres(os.environ["PLANES_PORT"], os.environ["PLANES_PASSWORD"])
    elif len(sys.argv) == 3 and sys.argv[1] == "sqlite":
        fill_sqlite(sys.argv[2])
    else:
        sys.exit(__doc__)
