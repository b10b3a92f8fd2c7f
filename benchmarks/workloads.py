"""The stateful workloads: SQL that hintplan and Flink both take, and the files of Parquet, CSV or JSON that both read.

Files are numbered and dated in the order in which they are to be read, ``FILES`` of each table in a micro-batch. A part
of a workload is its first files. Knows no engine.

    workload = aggregate(Path("data"), keys=100_000, rows=1_000_000)
    script(workload, options=", 'source.max-files-per-trigger' = '4'")
    as_text(workload, "csv")                       # the same rows in CSV
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

__all__ = [
    "FILES",
    "Workload",
    "aggregate",
    "as_text",
    "inner_join",
    "numbered",
    "part",
    "script",
    "small_aggregate",
    "small_join",
]

FILES = 4
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.float64())])
FACTS = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("v", pa.float64())])
DIMENSION = pa.schema([("k", pa.int64()), ("name", pa.string())])
_TYPES = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "STRING"}

_AGGREGATE = """CREATE TABLE sink (k BIGINT, n BIGINT, s DOUBLE, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'blackhole');
INSERT INTO sink SELECT k, COUNT(*) AS n, SUM(v) AS s FROM events GROUP BY k;
"""
_JOIN = """CREATE TABLE sink (k BIGINT, id BIGINT, v DOUBLE, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO sink SELECT f.k, f.id, f.v, d.name FROM facts AS f JOIN dimension AS d ON f.k = d.k;
"""
_NUMBERED = """CREATE TABLE sink (k BIGINT, id BIGINT, v DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO sink SELECT k, id, v FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS n FROM facts
) WHERE n <= {last};
"""
NUMBERED = {
    "top 3": _NUMBERED.format(order="v DESC", last=3),
    "deduplicate, first row": _NUMBERED.format(order="proc_time", last=1),
    "deduplicate, last row": _NUMBERED.format(order="proc_time DESC", last=1),
}
"""What is taken of the rows of each key; Spark has an operator of its own for the first row only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of files; ``key`` is the primary key that it is declared with, ``computed`` a further column."""

    name: str
    schema: pa.Schema
    directory: Path
    format: str = "parquet"
    key: str | None = None
    computed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """``query`` over ``tables``, which hold ``rows`` in all; ``per_key`` says that keys are few for their rows.

    ``natively`` says that Spark has an operator of its own for it, ``whole`` that every engine reads all of it.
    """

    name: str
    tables: tuple[Table, ...]
    query: str
    rows: int
    per_key: bool = False
    natively: bool = True
    whole: bool = False


def script(workload: Workload, *, options: str = "", primary_keys: bool = True) -> str:
    """The workload as a SQL script, with ``options`` added to those of its tables."""
    parts = []
    for table in workload.tables:
        columns = [f"{field.name} {_TYPES[field.type]}" for field in table.schema]
        columns += filter(None, [table.computed])
        if table.key and primary_keys:
            columns.append(f"PRIMARY KEY ({table.key}) NOT ENFORCED")
        parts.append(
            f"CREATE TABLE {table.name} ({', '.join(columns)}) WITH ('connector' = 'filesystem', "
            f"'format' = '{table.format}', 'path' = '{table.directory}'{options});\n"
        )
    return "".join(parts) + workload.query


def part(workload: Workload, share: float) -> Workload:
    """The first files of each table of ``workload``, ``share`` of them, at least one."""
    if share >= 1:
        return workload
    tables, rows = [], 0
    for table in workload.tables:
        files = sorted(table.directory.iterdir())
        chosen = files[: max(1, round(len(files) * share))]
        directory = table.directory.with_name(f"{table.directory.name}-{share}")
        directory.mkdir(exist_ok=True)
        for file in chosen:
            if not (directory / file.name).exists():
                os.link(file, directory / file.name)
        rows += sum(_rows(file) for file in chosen)
        tables.append(replace(table, directory=directory))
    return replace(workload, tables=tuple(tables), rows=rows)


def as_text(workload: Workload, format: str) -> Workload:
    """The same rows in files of CSV or JSON in the place of those of Parquet; every engine reads all of them."""
    tables = []
    for table in workload.tables:
        directory = table.directory.with_name(f"{table.directory.name}-{format}")
        directory.mkdir()
        for file in sorted(table.directory.glob("*.parquet")):
            path = directory / f"{file.stem}.{format}"
            rows = pq.read_table(file)
            if format == "csv":
                pyarrow.csv.write_csv(rows, path, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))
            else:
                path.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))
            os.utime(path, (file.stat().st_mtime,) * 2)
        tables.append(replace(table, directory=directory, format=format))
    return replace(
        workload, name=f"{workload.name}, {format.upper()}", tables=tuple(tables), natively=False, whole=True
    )


def aggregate(scratch: Path, *, keys: int, rows: int, batches: int = 6) -> Workload:
    """COUNT and SUM per key, of random keys."""
    random = np.random.default_rng(keys)
    size = rows // batches
    directory = scratch / f"events-{keys}"
    _write(directory, EVENTS, [size] * batches, lambda begin, n: [random.integers(0, keys, n), random.random(n)])
    table = Table(name="events", schema=EVENTS, directory=directory)
    name = f"aggregate, {keys:,} keys"
    return Workload(name=name, tables=(table,), query=_AGGREGATE, rows=size * batches, per_key=rows >= 10 * keys)


def inner_join(scratch: Path, *, facts: int, dimension: int, batches: int = 3) -> Workload:
    """Facts with random keys and a dimension with one row a key, arriving side by side."""
    random = np.random.default_rng(facts)
    keys = random.permutation(dimension)
    left = Table(name="facts", schema=FACTS, directory=scratch / "facts", key="id")
    right = Table(name="dimension", schema=DIMENSION, directory=scratch / "dimension", key="k")
    _write(
        left.directory,
        FACTS,
        [facts // batches] * batches,
        lambda begin, n: [random.integers(0, dimension, n), np.arange(begin, begin + n), random.random(n)],
    )
    _write(
        right.directory, DIMENSION, [dimension // batches] * batches, lambda begin, n: _named(keys[begin : begin + n])
    )
    return Workload(
        name=f"inner join, {facts:,} x {dimension:,} rows",
        tables=(left, right),
        query=_JOIN,
        rows=facts // batches * batches + dimension // batches * batches,
    )


def numbered(scratch: Path, *, kind: str, keys: int, rows: int, batches: int = 3) -> Workload:
    """One of ``NUMBERED``, of rows with random keys and values."""
    random = np.random.default_rng(keys)
    size = rows // batches
    directory = scratch / f"numbered-{keys}"
    _write(
        directory,
        FACTS,
        [size] * batches,
        lambda begin, n: [random.integers(0, keys, n), np.arange(begin, begin + n), random.random(n)],
    )
    table = Table(name="facts", schema=FACTS, directory=directory, computed="proc_time AS PROCTIME()")
    return Workload(
        name=f"{kind}, {keys:,} keys",
        tables=(table,),
        query=NUMBERED[kind],
        rows=size * batches,
        natively=kind == "deduplicate, first row",
    )


def small_aggregate(scratch: Path, *, keys: int, fill: int, batches: int) -> Workload:
    """``keys`` keys in ``fill`` micro-batches, then ``batches`` of 1,000 rows each of random keys."""
    random = np.random.default_rng(keys)
    order = random.permutation(keys)
    sizes = [keys // fill] * fill + [1000] * batches

    def columns(begin: int, n: int) -> Sequence[np.ndarray | pa.Array]:
        filling = begin + n <= keys // fill * fill
        return [order[begin : begin + n] if filling else random.integers(0, keys, n), random.random(n)]

    directory = scratch / f"small-events-{keys}"
    _write(directory, EVENTS, sizes, columns)
    table = Table(name="events", schema=EVENTS, directory=directory)
    return Workload(name="aggregate", tables=(table,), query=_AGGREGATE, rows=sum(sizes))


def small_join(scratch: Path, *, keys: int, fill: int, batches: int) -> Workload:
    """A dimension of ``keys`` rows in ``fill`` micro-batches, then ``batches`` of 500 rows on either side."""
    random = np.random.default_rng(keys)
    order = random.permutation(keys)
    half = 500
    left = Table(name="facts", schema=FACTS, directory=scratch / f"small-facts-{keys}")
    right = Table(name="dimension", schema=DIMENSION, directory=scratch / f"small-dimension-{keys}")

    def dimension(begin: int, n: int) -> Sequence[np.ndarray | pa.Array]:
        filling = begin + n <= keys // fill * fill
        return _named(order[begin : begin + n] if filling else random.integers(0, keys, n))

    _write(right.directory, DIMENSION, [keys // fill] * fill + [half] * batches, dimension)
    _write(
        left.directory,
        FACTS,
        [half] * (fill + batches),
        lambda begin, n: [random.integers(0, keys, n), np.arange(begin, begin + n), random.random(n)],
    )
    rows = keys // fill * fill + half * (fill + 2 * batches)
    return Workload(name="inner join", tables=(left, right), query=_JOIN, rows=rows)


def _rows(file: Path) -> int:
    if file.suffix == ".parquet":
        return pq.ParquetFile(file).metadata.num_rows
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def _named(keys: np.ndarray) -> Sequence[np.ndarray | pa.Array]:
    return [keys, pa.array([f"name {key}" for key in keys])]


def _write(
    directory: Path,
    schema: pa.Schema,
    sizes: Sequence[int],
    columns: Callable[[int, int], Sequence[np.ndarray | pa.Array]],
) -> None:
    """``FILES`` files for each micro-batch of ``sizes``, dated so that they are read in order."""
    directory.mkdir(parents=True)
    start, begin = time.time() - 86_400, 0
    for number, size in enumerate(sizes):
        table = pa.table([pa.array(column) for column in columns(begin, size)], schema=schema)
        begin += size
        for index in range(FILES):
            path = directory / f"{number:04d}-{index}.parquet"
            low, high = (size * bound // FILES for bound in (index, index + 1))
            pq.write_table(table.slice(low, high - low), path)
            os.utime(path, (start + number,) * 2)
