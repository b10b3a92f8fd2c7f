"""A job whose tables and checkpoint are in a bucket: sums of orders per country, and the large ones as they came.

job = Job(directory=tmp_path, store=store, bucket="lake")
job.order(20)
job.compile(partitions=2)
assert job.run("--once").returncode == 0
assert job.sums() == job.expected_sums()
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hintplan
from hintplan import compile_sql
from tests.connectors.object_store.jars import jars
from tests.connectors.object_store.server import ObjectStore
from tests.spark.commands import Commands, Done

__all__ = ["COUNTRIES", "Job", "Order"]

COUNTRIES = ("DE", "FR", "IT", "NL")
LARGE = 500
ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 400

SQL = """
SET 'parallelism.default' = '{partitions}';
CREATE TABLE orders (id BIGINT, country STRING, total DECIMAL(10, 2)) WITH ('connector' = 'filesystem',
  'path' = 's3a://{bucket}/orders', 'format' = '{source}', 'source.max-files-per-trigger' = '1');
CREATE TABLE sums (country STRING, total DECIMAL(38, 2), orders BIGINT, PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:sums.db', 'table-name' = 'sums');
CREATE TABLE large (id BIGINT, country STRING, total DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 's3a://{bucket}/large', 'format' = '{sink}');
INSERT INTO sums SELECT country, SUM(total), COUNT(*) FROM orders GROUP BY country;
INSERT INTO large SELECT id, country, total FROM ({every}) WHERE total > 500;
"""
MORE = """
CREATE TABLE more (id BIGINT, country STRING, total DECIMAL(10, 2)) WITH ('connector' = 'filesystem',
  'path' = 's3a://{bucket}/more', 'format' = '{source}', 'source.max-files-per-trigger' = '1');
"""
EVERY = "SELECT id, country, total FROM orders"


def environment(store: ObjectStore) -> dict[str, str]:
    """The environment of a run on the tables of ``store``."""
    hidden = ("AWS_", "PYSPARK_PYTHON", "SPARK_HOME")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return {
        **kept,
        **store.environment,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "NO_COLOR": "1",
    }


Order = tuple[int, str, Decimal]


@dataclass(slots=True, kw_only=True)
class Job:
    """``made`` are the orders so far, and ``more`` those of the second table, in so many ``files``.

    With ``commands``, what it calls shares their process, else each call is one.
    """

    directory: Path
    store: ObjectStore
    bucket: str
    source: str = "json"
    sink: str = "parquet"
    made: list[Order] = field(default_factory=list)
    more: list[Order] = field(default_factory=list)
    files: int = 0
    commands: Commands | None = None

    @property
    def checkpoint(self) -> str:
        return f"s3a://{self.bucket}/checkpoint"

    def order(self, batches: int, *, rows: int = 5, table: str = "orders") -> None:
        """Put so many files with orders into the bucket, of which each is a micro-batch."""
        for _ in range(batches):
            rng = random.Random(self.files)
            first = len(self.made) + len(self.more)
            new = [
                (first + at, rng.choice(COUNTRIES), Decimal(rng.randrange(100, 100_000)) / 100) for at in range(rows)
            ]
            self._write(f"{self.bucket}/{table}/{self.files:04}", new)
            (self.made if table == "orders" else self.more).extend(new)
            self.files += 1

    def _write(self, path: str, rows: Sequence[Order]) -> None:
        if self.source == "csv":
            self.store.write(f"{path}.csv", "".join(f"{i},{country},{total}\n" for i, country, total in rows))
        elif self.source == "json":
            named = ({"id": i, "country": country, "total": float(total)} for i, country, total in rows)
            self.store.write(f"{path}.json", "".join(f"{json.dumps(row)}\n" for row in named))
        else:
            ids, countries, totals = zip(*rows, strict=True)
            table = pa.table(
                {"id": ids, "country": countries, "total": pa.array(totals, pa.decimal128(10, 2))},
                schema=pa.schema([("id", pa.int64()), ("country", pa.string()), ("total", pa.decimal128(10, 2))]),
            )
            with self.store.system().open_output_stream(f"{path}.parquet") as out:
                pq.write_table(table, out)

    def compile(self, *, partitions: int = 2, more: bool = False) -> None:
        """Write ``job.json``; with ``more``, large orders are those of a second table too."""
        every = f"{EVERY} UNION ALL SELECT id, country, total FROM more" if more else EVERY
        text = (MORE if more else "") + SQL
        said = {"partitions": partitions, "bucket": self.bucket, "source": self.source, "sink": self.sink}
        hintplan.dump(compile_sql(text.format(**said, every=every), name="job"), self.directory / "job.json")

    def command(self, *words: str) -> list[str]:
        spark = ["--conf", f"spark.driver.extraClassPath={':'.join(map(str, jars()))}"] if words[0] != "state" else []
        local = ["--master", "local[2]"] if spark and "--master" not in words else []
        return [sys.executable, "-m", "hintplan", *words, *local, *spark]

    def call(self, *words: str, **more: str) -> subprocess.CompletedProcess[str] | Done:
        """``hintplan WORDS``, in the directory of the job."""
        if self.commands is not None and not more:
            return self.commands.run(*self.command(*words)[3:], folder=self.directory)
        return subprocess.run(
            self.command(*words),
            cwd=self.directory,
            env={**environment(self.store), **more},
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str] | Done:
        return self.call("run", "job.json", "--checkpoint", self.checkpoint, *words, **more)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """The same as a process that continues, with what it starts in a group of its own; killed at the end."""
        command = self.command("run", "job.json", "--checkpoint", self.checkpoint, *words)
        with open(self.directory / "stderr", "w") as log:
            process = subprocess.Popen(
                command, cwd=self.directory, env=environment(self.store), stdout=log, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
            try:
                yield process
            finally:
                with_group(process, 9)
                process.wait()

    def sums(self) -> dict[str, tuple[Decimal, int]]:
        with sqlite3.connect(self.directory / "sums.db") as database:
            found = database.execute("SELECT country, total, orders FROM sums").fetchall()
        return {country: (Decimal(str(total)), orders) for country, total, orders in found}

    def expected_sums(self) -> dict[str, tuple[Decimal, int]]:
        totals: dict[str, tuple[Decimal, int]] = {}
        for _, country, total in self.made:
            before = totals.get(country, (Decimal(0), 0))
            totals[country] = (before[0] + total, before[1] + 1)
        return totals

    def large(self) -> list[Order]:
        """The rows of the files that the sink's log names: what whoever reads the directory through Spark finds."""
        found: list[Order] = []
        for path in self._named():
            data = self.store.read(path)
            if self.sink == "parquet":
                rows = pq.read_table(pa.BufferReader(data)).to_pylist()
                found += [(row["id"], row["country"], row["total"]) for row in rows]
            elif self.sink == "json":
                rows = [json.loads(line) for line in data.decode().splitlines()]
                found += [(row["id"], row["country"], Decimal(str(row["total"]))) for row in rows]
            else:
                lines = [line.split(",") for line in data.decode().splitlines()]
                found += [(int(i), country, Decimal(total)) for i, country, total in lines]
        return sorted(found)

    def _named(self) -> Iterator[str]:
        log = f"{self.bucket}/large/_spark_metadata"
        keys = self.store.keys(log)
        compacted = [key for key in keys if key.endswith(".compact")]
        last = max(compacted, key=lambda key: int(key.rpartition("/")[2].split(".")[0]), default=None)
        after = -1 if last is None else int(last.rpartition("/")[2].split(".")[0])
        numbered = [key for key in keys if key.rpartition("/")[2].isdecimal()]
        for key in [*([last] if last else []), *(key for key in numbered if int(key.rpartition("/")[2]) > after)]:
            for line in self.store.read(key).decode().splitlines()[1:]:
                yield json.loads(line)["path"].removeprefix("s3a://")

    def expected_large(self) -> list[Order]:
        return sorted(order for order in (*self.made, *self.more) if order[2] > LARGE)

    def check(self) -> None:
        """The sums and the large orders are those of what was made."""
        assert self.sums() == self.expected_sums()
        assert Counter(self.large()) == Counter(self.expected_large())


def with_group(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a process and all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, number)
