"""The cache example in small: its tables against the same join in SQLite, and what it prints."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.connectors.datagen import field_specs
from hintplan.runtime.connectors.datagen.generators import batch
from tests.cluster.installed import environment, installed
from tests.sample import in_turn

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cache"
SALES = 2000
DEADLINE_SECONDS = 400


def generated() -> sqlite3.Connection:
    """The generated tables, and what the view of the script is."""
    plan = hintplan.compile_sql((EXAMPLE / "sales.sql").read_text(encoding="utf-8"), name="sales")
    database = sqlite3.connect(":memory:")
    for name, count in (("sales", SALES), ("bands", 100_000)):
        rows = batch(tuple(field_specs(plan.tables[name])), 0, count, time_ms=0)
        database.execute(f"CREATE TABLE {name} ({', '.join(rows.schema.names)})")
        marks = ", ".join("?" * rows.num_columns)
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*rows.to_pydict().values(), strict=True))
    database.execute("CREATE INDEX i ON bands (day, low)")
    database.execute(
        "CREATE TABLE matched AS SELECT s.id, s.day, s.amount, b.low FROM sales s JOIN bands b "
        "ON s.day = b.day AND b.low BETWEEN s.amount - 19 AND s.amount"
    )
    return database


@in_turn(0, of=3)
def test_the_example_gives_what_sqlite_gives_and_says_what_was_cached(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.*"):
        if file.suffix in (".py", ".sql"):
            shutil.copy(file, tmp_path)
    done = subprocess.run(
        [installed().python, "run.py", "--sales", str(SALES)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    database = generated()
    (count,) = database.execute("SELECT COUNT(*) FROM matched").fetchone()
    assert re.search(rf"^join_s_b of sales: {count:,} rows, .*, MEMORY_AND_DISK, 2 hits", done.stdout, re.MULTILINE)
    assert re.search(r"^all .* times as fast$", done.stdout, re.MULTILINE)
    found = sqlite3.connect(tmp_path / "sales.db")
    queries = {
        "per_day": "SELECT day, COUNT(*), SUM(amount) FROM matched GROUP BY day",
        "most_bands": "SELECT id, COUNT(*) AS n FROM matched GROUP BY id ORDER BY n DESC, id LIMIT 10",
        "widest": "SELECT low, COUNT(DISTINCT id) AS n FROM matched GROUP BY low ORDER BY n DESC, low LIMIT 10",
    }
    for table, query in queries.items():
        expected = set(database.execute(query).fetchall())
        assert set(found.execute(f"SELECT * FROM {table}").fetchall()) == expected, table
    found.close()
    database.close()
