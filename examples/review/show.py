"""Prints what the job has written to revenue.db: each of its tables, the rows in order.

The job notes in hintplan_commits which batch it has written last; that is left out.
"""

import sqlite3

with sqlite3.connect("revenue.db") as database:
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for table in sorted({name for (name,) in tables} - {"hintplan_commits"}, reverse=True):
        print(f"{table}:", ", ".join(str(row) for row in database.execute(f'SELECT * FROM "{table}" ORDER BY 1')))
