"""What a checkpoint on S3 is asked for: requests per batch, by what of the checkpoint they are for, and their method.

    python benchmarks/object_store.py                  # 1,000 batches, half an hour
    python benchmarks/object_store.py --batches 60

A job looks up a rate for each order in SQLite, with pins of the answers, and keeps sums per country. It runs as
``hintplan run``, a process of its own each time: half of the batches on two partitions, a quarter after a restart, the
rest after a change to four partitions. The server counts every request; those before the first batch of a run has
begun, and after its last one has ended, are the start's. In the end the sums are compared with those of plain Python.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

import hintplan
from hintplan import compile_sql
from tests.connectors.object_store.jars import jars
from tests.connectors.object_store.server import ObjectStore, Request, running_store

ROWS = 20
"""In a batch."""
COUNTRIES = ("DE", "FR", "IT", "NL")
METHODS = ("GET", "HEAD", "LIST", "PUT", "COPY", "DELETE")

AREAS = {
    "state": "state",
    "pins": "pins",
    "offsets": "Spark's log: offsets",
    "commits": "Spark's log: commits",
    "sources": "Spark's log: files",
}

SQL = """
SET 'parallelism.default' = '{partitions}';
CREATE TABLE orders (id BIGINT, country STRING, currency STRING, total DECIMAL(10, 2), pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = '{folder}/orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE rates (currency STRING, rate DECIMAL(10, 2), PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/rates.db', 'table-name' = 'rates');
CREATE TABLE sums (country STRING, total DECIMAL(38, 4), PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/sums.db', 'table-name' = 'sums');
INSERT INTO sums
SELECT o.country, SUM(o.total * r.rate)
FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.currency
GROUP BY o.country;
"""
RATES = {"EUR": Decimal("1.00"), "USD": Decimal("0.91"), "CHF": Decimal("1.05")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of so many ``batches``, and what the server was asked during them and ``around`` them."""

    name: str
    batches: int
    during: Sequence[Request]
    around: Sequence[Request]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--conf", action="append", default=[], help="of Spark, KEY=VALUE")
    arguments = parser.parse_args()
    parts = (("new, 2 partitions", 2, 2), ("restarted, 2 partitions", 4, 2), ("changed to 4 partitions", 4, 4))
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch, running_store() as store:
        store.make_bucket("lake")
        folder = Path(scratch)
        (folder / "orders").mkdir()
        with sqlite3.connect(folder / "rates.db") as rates:
            rates.execute("CREATE TABLE rates (currency TEXT PRIMARY KEY, rate TEXT)")
            rates.executemany("INSERT INTO rates VALUES (?, ?)", [(name, str(rate)) for name, rate in RATES.items()])
        made, runs, expected = 0, [], Counter[str]()
        for name, share, partitions in parts:
            batches = arguments.batches // share
            for number in range(made, made + batches):
                expected.update(let_in(folder, number))
            made += batches
            runs.append(run(store, folder, name, batches, partitions, arguments.conf))
            found = dict(sqlite3.connect(folder / "sums.db").execute("SELECT country, total FROM sums"))
            assert {country: Decimal(str(total)) for country, total in found.items()} == expected, (found, expected)
        show(runs)


def let_in(folder: Path, number: int) -> dict[str, Decimal]:
    """Write the file of a batch; what it adds to the sum of each country."""
    rng = random.Random(number)
    lines, sums = [], Counter[str]()
    for at in range(ROWS):
        total = Decimal(rng.randrange(100, 100_000)) / 100
        country, currency = rng.choice(COUNTRIES), rng.choice([*RATES])
        row = {"id": number * ROWS + at, "country": country, "currency": currency, "total": float(total)}
        lines.append(json.dumps(row))
        sums[country] += total * RATES[currency]
    file = folder / "orders" / f"{number:06}.json"
    file.write_text("\n".join(lines) + "\n")
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark takes the oldest first
    return sums


def run(store: ObjectStore, folder: Path, name: str, batches: int, partitions: int, conf: Sequence[str]) -> Run:
    command = [sys.executable, "-m", "hintplan"]
    hintplan.dump(compile_sql(SQL.format(folder=folder, partitions=partitions)), folder / "job.json")
    store.asked.clear()
    settings = [f"spark.jars={','.join(map(str, jars()))}", *conf]
    options = ["--master", "local[2]", *(word for each in settings for word in ("--conf", each))]
    done = subprocess.run(
        [*command, "run", "job.json", "--once", "--json", "--checkpoint", "s3a://lake/job", *options],
        cwd=folder,
        env={**os.environ, **store.environment, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [event for event in events if event["event"] == "batch"]
    assert len(ended) == batches, f"{len(ended)} batches, not {batches}"
    asked = list(store.asked)
    took = sorted(event["duration_ms"] for event in ended)[len(ended) // 2]
    print(f"{name}: {batches} batches, {took} ms each by the median, {len(asked):,} requests", flush=True)
    places = [at for at, one in enumerate(asked) if one.method == "COPY"]
    first = next(at for at in places if "/offsets/" in asked[at].key)
    last = max(at for at in places if "/commits/" in asked[at].key)
    return Run(name=name, batches=batches, during=asked[first : last + 1], around=asked[:first] + asked[last + 1 :])


def area(request: Request) -> str:
    """What of the checkpoint a request is for."""
    below = request.key.removeprefix("job/")
    for folder, name in AREAS.items():
        if re.match(rf"[^/]+/(logs\.\d+/)?{folder}(/|$)", below):
            return name
    return "record and lock" if below.startswith("hintplan") else "other"


def show(runs: Sequence[Run]) -> None:
    areas = sorted({area(one) for run in runs for one in (*run.during, *run.around)})
    for run in runs:
        table = Table(title=f"requests per batch · {run.name} · {run.batches:,} batches")
        for column in ("", *METHODS, "all", "start and end"):
            table.add_column(column, justify="left" if not column else "right")
        counted = Counter((area(one), one.method) for one in run.during)
        around = Counter(area(one) for one in run.around)
        for name in areas:
            found = [counted[name, method] for method in METHODS]
            table.add_row(name, *_each(found, run), str(around[name]))
        found = [sum(counted[name, method] for name in areas) for method in METHODS]
        table.add_row("all", *_each(found, run), str(len(run.around)))
        Console(width=110).print(table)


def _each(counted: Sequence[int], run: Run) -> list[str]:
    """Numbers per batch, and their sum."""
    return [f"{number / run.batches:.1f}" if number else "" for number in (*counted, sum(counted))]


if __name__ == "__main__":
    main()
