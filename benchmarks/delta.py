"""What a sink in a data lake makes of a micro-batch that has come to the driver: rows appended, and upserts.

    python benchmarks/delta.py --rows 1000000
    python benchmarks/delta.py --lake iceberg

Prints a table. Beside it, pyarrow alone writes the same rows as one file. Nothing of Spark but its session is used.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.table import micro_batch_writer
from hintplan.runtime.spark.session import start_session

COLUMNS = (("id", "BIGINT"), ("part", "BIGINT"), ("amount", "DOUBLE"), ("note", "STRING"))
PARTS = 100


def rows_of(ids: np.ndarray, rows: int) -> pa.Table:
    """Rows with these ids, in parts of equal size."""
    notes = pa.array([f"note number {i}" for i in ids])
    part = ids * PARTS // rows
    return pa.table({"id": ids, "part": part, "amount": np.random.default_rng(1).random(len(ids)), "note": notes})


def table_at(lake: str, path: Path, key: Iterable[str], by: str = "") -> Table:
    of = {"connector": "delta", "table-path": str(path)}
    if lake == "iceberg":
        of = {
            "connector": "iceberg", "catalog-name": "lake", "catalog-type": "jdbc", "catalog-database": "db",
            "uri": f"jdbc:sqlite:{path.parent}/catalog.db", "catalog-table": path.name, "location": str(path),
        }  # fmt: skip
    columns = tuple(TableColumn(name=name, type=type_) for name, type_ in COLUMNS)
    return Table(columns=columns, options=of, primary_key=tuple(key), partitioned_by=(by,) if by else ())


def seconds(do: Callable[[], object]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a sink in a table of a data lake.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lake", choices=("delta", "iceberg"), default="delta")
    rows, lake = parser.parse_args().rows, parser.parse_args().lake
    spark = start_session("local[2]", {})
    chance = np.random.default_rng(7)
    everything = rows_of(np.arange(rows), rows)
    batches = iter(range(1_000_000))

    def sink(table: Table) -> Callable[[pa.Table], object]:
        write = micro_batch_writer("t", table, changelog=False, checkpoint="c", part="/t")

        def written(found: pa.Table) -> object:
            batch = MicroBatch(
                spark=spark, in_spark=lambda: spark.createDataFrame(found), on_driver=lambda: found,
                counted=lambda: int(found.num_rows), is_on_driver=True,
            )  # fmt: skip
            return write(batch, next(batches))

        return written

    def told(what: str, took: float) -> None:
        print(f"{what:60} {took:8.2f} s", flush=True)

    with tempfile.TemporaryDirectory() as directory:
        at = Path(directory)
        told(f"{rows:,} rows as a file, by pyarrow", seconds(lambda: pq.write_table(everything, at / "one.parquet")))
        append = sink(table_at(lake, at / "appended", ()))
        told(f"{rows:,} rows appended", seconds(lambda: append(everything)))
        upsert = sink(table_at(lake, at / "upserted", ("id",)))
        told(f"{rows:,} rows upserted into the empty table", seconds(lambda: upsert(everything)))
        for size in (1, 100, 1_000, 10_000, 100_000, rows):
            changes = [rows_of(np.sort(chance.choice(rows, size, replace=False)), rows) for _ in range(5)]
            took = statistics.median(seconds(lambda: upsert(change)) for change in changes)  # noqa: B023
            told(f"{size:,} upserts anywhere", took)
        parted = sink(table_at(lake, at / "parted", ("id", "part"), "part"))
        parted(everything)
        for size in (100, 1_000):
            first = rows - rows // PARTS
            some = [np.sort(chance.choice(rows // PARTS, size, replace=False)) for _ in range(5)]
            changes = [rows_of(first + each, rows) for each in some]
            took = statistics.median(seconds(lambda: parted(change)) for change in changes)  # noqa: B023
            told(f"{size:,} upserts into one of {PARTS} partitions", took)
    spark.stop()


if __name__ == "__main__":
    main()
