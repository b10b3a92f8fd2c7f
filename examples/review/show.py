"""Prints what the job has written to revenue.db: each table, its rows in order."""

import sqlite3

with sqlite3.connect("revenue.db") as database:
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name DESC").fetchall()
    for (table,) in tables:
        print(f"{table}:", ", ".join(str(row) for row in database.execute(f'SELECT * FROM "{table}" ORDER BY 1')))
