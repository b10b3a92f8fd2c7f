"""Reading alone: blocks of CSV and JSON read by Arrow in one core, compared with Spark's own readers in one core.

    python benchmarks/text_blocks.py                     # two million rows of six short columns
    python benchmarks/text_blocks.py --rows 500000 --formats csv

`plain` has numbers, texts and times; `quoted` has each text in quotes; `numbers` has no texts, so that Spark reads CSV
line by line; `mixed` has a NULL in every third line, and in JSON a nested value. Both read the same file, three times
in turns, and the best time counts. Spark's rows go to a sink that drops them. This process keeps free memory as workers
do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.filesystem.text_blocks import block_reader, last_record_end
from hintplan.runtime.connectors.table import read_batch
from hintplan.runtime.spark.session import start_session
from hintplan.runtime.spark.worker_memory import SETTINGS

BLOCK = 4 << 20
ROUNDS = 3
TYPES = {
    "id": "BIGINT",
    "k": "INT",
    "name": "STRING",
    "price": "DOUBLE",
    "total": "DECIMAL(12, 2)",
    "at": "TIMESTAMP(3)",
}
SHAPES = {
    "plain": tuple(TYPES),
    "quoted": tuple(TYPES),
    "mixed": tuple(TYPES),
    "numbers": ("id", "k", "price", "total"),
}


def row(number: int, dice: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "k": dice.randrange(100_000),
        "name": f"name {dice.randrange(10_000)}",
        "price": round(dice.random() * 1000, 3),
        "total": f"{dice.randrange(10_000)}.{dice.randrange(100):02}",
        "at": f"2024-05-{dice.randrange(1, 28):02} 10:{dice.randrange(60):02}:00.{dice.randrange(1000):03}",
    }


def lines(chosen: str, shape: str, rows: int) -> Iterator[str]:
    dice = random.Random(1)
    for number in range(rows):
        values = {name: value for name, value in row(number, dice).items() if name in SHAPES[shape]}
        if shape == "mixed" and not number % 3:
            values["name"] = None
        if chosen == "json":
            values |= {"tags": [number, {"a": "b"}]} if shape == "mixed" and not number % 100 else {}
            values["total"] = float(values["total"])
            yield json.dumps(values, separators=(",", ":")) + "\n"
        else:
            quote = '"' if shape == "quoted" else ""
            yield (
                ",".join(
                    f"{quote}{v}{quote}" if isinstance(v, str) else "" if v is None else str(v) for v in values.values()
                )
                + "\n"
            )


def by_arrow(source: Table, columns: tuple[str, ...]) -> int:
    """Read the file in blocks, as a worker does; return the number of rows."""
    (path,) = Path(source.options["path"]).iterdir()
    read = block_reader(source, columns)
    assert read is not None
    rows, rest = 0, b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            block = rest + block
            end = last_record_end(source, block)
            found = read(memoryview(block)[:end])
            assert found is not None
            rows, rest = rows + found.num_rows, block[end:]
    assert not rest
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--formats", default="csv,json")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    given = parser.parse_args()
    spark = start_session("local[1]", {"spark.driver.memory": "2g", "spark.ui.enabled": "false"})
    print(f"{'':14}  {'MB':>5}  {'Arrow MB/s':>10}  {'rows/s':>10}  {'Spark MB/s':>10}  {'rows/s':>10}  {'times':>5}")
    with tempfile.TemporaryDirectory() as directory:
        for chosen in given.formats.split(","):
            for shape in given.shapes.split(","):
                columns = SHAPES[shape]
                source = Table(
                    columns=tuple(TableColumn(name=name, type=TYPES[name]) for name in columns),
                    options={"connector": "filesystem", "path": f"{directory}/{chosen}-{shape}", "format": chosen},
                )
                path = Path(source.options["path"]) / f"part.{chosen}"
                path.parent.mkdir()
                with path.open("w") as file:
                    file.writelines(lines(chosen, shape, given.rows))
                size = path.stat().st_size / 1e6
                best = {"Arrow": 1e9, "Spark": 1e9}
                for _ in range(ROUNDS):
                    start = time.perf_counter()
                    assert by_arrow(source, columns) == given.rows
                    best["Arrow"] = min(best["Arrow"], time.perf_counter() - start)
                    start = time.perf_counter()
                    read_batch(spark, "t", source, columns).write.format("noop").mode("overwrite").save()
                    best["Spark"] = min(best["Spark"], time.perf_counter() - start)
                figures = [f"{size / best[who]:10.0f}  {given.rows / best[who]:10,.0f}" for who in ("Arrow", "Spark")]
                print(f"{chosen:5}{shape:9}  {size:5.0f}  {'  '.join(figures)}  {best['Spark'] / best['Arrow']:5.1f}")
    spark.stop()


if __name__ == "__main__":
    if not SETTINGS.keys() <= os.environ.keys():  # an allocator reads them when the process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
    main()
