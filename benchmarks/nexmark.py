"""Queries of the Nexmark suite, on this engine and on real Flink: rows per second and memory, side by side.

    python benchmarks/nexmark.py                              # full size, about ten minutes
    python benchmarks/nexmark.py --events 500000 --queries 3,17
    python benchmarks/nexmark.py --verify                     # only whether both give the same results
    python benchmarks/nexmark.py --format json --queries 2,14,21,22

The queries are benchmarks/nexmark/q*.sql, the events those of nexmark_events.py, as files of Parquet or JSON that both
engines read. This engine runs as a user runs it: SQL is compiled to a plan, the plan is executed with ``--once``, two
files of each table a micro-batch; Flink (2.3, from PyPI) as flink.py sets it up. Before anything is measured, the
results of both engines on some thousand events, what is left when their changelogs are folded, have to be equal. Each
query first runs on a tenth of the events, which is not counted, four times on each engine: Flink twice with mini-batch
and twice without, and then as it was faster. Each engine and query has a JVM of its own. The rate is rows of the tables
that a query reads over the time of all micro-batches, and over the net run time of Flink's job. In queries with windows
of event time, both engines close all windows at the end of the input. q4, q16, q20 and q23 run on a fifth of the
events, because all of them would take Flink minutes.
Results of q12 depend on the clock: each bidder has to have as many bids in all windows as in the table. q6 is not here,
because Flink cannot run it: it needs OVER above rows that change.
Memory is resident memory at its peak: of the JVM, and of the largest Python worker. Figures of different machines or
moments do not compare; ratios do.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from flink import HEAP, ONE_BY_ONE, ROCKSDB, THROUGHPUT, Flink, FlinkError, flink_python
from memory import watched
from nexmark_events import write_events
from pyspark import SparkContext
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from hintplan import compile_sql, execute
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.quiet import SparkLog
from hintplan.runtime.spark.session import start_session

SQL = Path(__file__).parent / "nexmark"
ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = 2
FILES = 2
QUERIES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
TIMED = (5, 7, 8, 11)
"""The queries with windows of event time."""
SLOW = (4, 16, 20, 23)
"""The queries that are measured on a fifth of the events, for all of them would take Flink minutes."""
BY_CLOCK = (12,)
"""The queries with windows of processing time."""
WATERMARK = ", WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND"
TIMED_VERIFY = 25
"""Queries with windows are verified on so many times the events: 10,000 events take only a second of event time."""
FLINK_HEAP = "-Xmx10g"
MODES = {"on": THROUGHPUT, "off": ONE_BY_ONE}
NOTES = {
    7: "both engines keep all bids, for the planners make a regular join of it",
    10: "the suite writes files by day and minute; here rows end in a sink that drops them, as of all queries",
    12: "which bids are in one window depends on the clock; Flink drops the windows that are open at the end",
    13: "the side input as a regular join: Flink's distribution has no connector that looks up",
    14: "the suite counts the letters with a function in Java; both engines count them with REPLACE here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Files of events in ``directory``, and how many rows each table has."""

    directory: Path
    rows: Mapping[str, int]


ROWS: dict[Path, Mapping[str, int]] = {}
"""The rows of the tables in each directory that has been written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One query: seconds and peaks of memory in bytes; ``detail`` is what this engine's operators kept."""

    rows: int
    seconds: float
    jvm: int
    worker: int = 0
    detail: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def main() -> None:
    arguments = _arguments()
    console = Console(stderr=True)
    queries = [int(number) for number in arguments.queries.split(",")]
    state = HEAP if arguments.state == "heap" else ROCKSDB
    modes = [name for name in MODES if arguments.mini_batch in (name, "auto")]
    with tempfile.TemporaryDirectory(prefix="hintplan-nexmark-") as scratch:
        directory = Path(scratch)
        python = flink_python(arguments.flink)
        if not arguments.verified:
            with _spark(directory) as spark, Flink.start(python) as flink:
                _verify(spark, flink, MODES[modes[0]] | state, queries, directory, arguments, console)
        if arguments.verify:
            return
        ours, theirs, batching = {}, {}, {}
        for query in queries:
            small, full = (_in(arguments.format, events) for events in _measured_on(query, directory, arguments))
            # Each has a JVM of its own: what earlier queries left behind is nobody's business.
            with _spark(directory) as spark:
                for _ in range(2 * len(modes)):  # as often as Flink below
                    _ours(spark, query, small)
                ours[query] = _ours(spark, query, full)
            console.log(f"q{query}: this engine: {_line(ours[query])}")
            if query in TIMED:
                small, full = _in_parallel(small), _in_parallel(full)
            with Flink.start(python, jvm=(FLINK_HEAP,)) as flink:
                for mode in modes:
                    _theirs(flink, query, small, MODES[mode] | state)
                mode = max(modes, key=lambda name: _theirs(flink, query, small, MODES[name] | state).rate)
                theirs[query] = _theirs(flink, query, full, MODES[mode] | state)
            batching[query] = mode
            console.log(f"q{query}: Flink, mini-batch {mode}: {_line(theirs[query])}")
    title = f"Nexmark, {arguments.events:,} events, Flink 2.3 with {arguments.state} state"
    _print(title, ours, theirs, batching, markdown=arguments.markdown)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000, help="how many events")
    parser.add_argument("--batches", type=int, default=2, help="micro-batches that the events come in")
    parser.add_argument("--queries", default=",".join(map(str, QUERIES)), help="such as 3,17")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flink", help="Flink's interpreter; otherwise FLINK_PYTHON, or .flink/bin/python")
    parser.add_argument("--state", choices=("heap", "rocksdb"), default="heap", help="Flink's state backend")
    parser.add_argument("--mini-batch", choices=(*MODES, "auto"), default="auto", help="Flink's; auto: what is faster")
    parser.add_argument("--verify", action="store_true", help="compare results, and measure nothing")
    parser.add_argument("--verified", action="store_true", help="measure only: the results were compared before")
    parser.add_argument("--verify-events", type=int, default=20_000, help="how many events results are compared on")
    parser.add_argument("--format", choices=("parquet", "json"), default="parquet", help="of the files of events")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    arguments = parser.parse_args()
    if arguments.format == "json" and set(TIMED) & set(map(int, arguments.queries.split(","))):
        parser.error("--format json: queries with windows of event time read Parquet only")
    return arguments


def _events(directory: Path, count: int, arguments: argparse.Namespace, *, batches: int, files: int = FILES) -> Events:
    if directory.exists():
        return Events(directory=directory, rows=ROWS[directory])
    ROWS[directory] = write_events(directory, count, batches=batches, files=files, seed=arguments.seed)
    return Events(directory=directory, rows=ROWS[directory])


def _measured_on(query: int, scratch: Path, arguments: argparse.Namespace) -> tuple[Events, Events]:
    """Return a tenth of the events of a query, and all of them, in directories whose names have one length.

    The code that Spark makes contains this length, so that other ones would be compiled anew.
    """
    count = arguments.events // 5 if query in SLOW else arguments.events
    some = _events(scratch / f"{count}-some", max(count // 10, 1), arguments, batches=2)
    return some, _events(scratch / f"{count}-full", count, arguments, batches=arguments.batches)


def _in(format: str, events: Events) -> Events:
    """The same rows in files of this format, in the same order."""
    import msgspec
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = events.directory.with_name(f"{events.directory.name}.{format}")
    if format == "parquet" or directory.exists():
        return events if format == "parquet" else Events(directory=directory, rows=events.rows)
    for source in sorted(events.directory.glob("*/*.parquet")):
        table = pq.read_table(source)
        times = [name for name in table.column_names if pa.types.is_timestamp(table[name].type)]
        for name in times:
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
        path = directory / source.parent.name / f"{source.stem}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as target:
            for batch in table.to_batches(max_chunksize=100_000):
                target.write(msgspec.json.Encoder().encode_lines(batch.to_pylist()))
        os.utime(path, (source.stat().st_mtime,) * 2)
    return Events(directory=directory, rows=events.rows)


def script(query: int, data: Path, options: str) -> str:
    """The tables and the query, as an engine with ``options`` at each table reads them."""
    text = (SQL / "tables.sql").read_text() + (SQL / f"q{query}.sql").read_text()
    text = text if data.suffix != ".json" else text.replace("'format' = 'parquet'", "'format' = 'json'")
    return Template(text).substitute(data=data, options=options, watermark=WATERMARK if query in TIMED else "")


def _their_script(query: int, data: Path) -> str:
    return script(query, data, "" if data.suffix == ".json" else ", 'parquet.utc-timezone' = 'true'")


def _compiled(query: int, data: Path, files: int, sink: str = "'connector' = 'blackhole'") -> Plan:
    options = f", 'source.max-files-per-trigger' = '{files}'"
    text = script(query, data, options).replace("'connector' = 'blackhole'", sink)
    return compile_sql(text, {"parallelism.default": str(PARTITIONS)})


# --- equal results ----------------------------------------------------------------------------------------------------


def _verify(
    spark: SparkSession,
    flink: Flink,
    settings: Mapping[str, str],
    queries: list[int],
    scratch: Path,
    arguments: argparse.Namespace,
    console: Console,
) -> None:
    """Compare what both engines leave; exits with 1 at the first difference.

    Flink reads one file of each table, for it keeps no order between files, by which rows go that are sorted alike.
    """
    samples: dict[int, tuple[Events, Events]] = {}
    for query in queries:
        count = arguments.verify_events * (TIMED_VERIFY if query in TIMED else 1)
        if count not in samples:
            one = _events(scratch / f"one-{count}", count, arguments, batches=1, files=1)
            samples[count] = one, _split(one, scratch / f"several-{count}")
        one, several = (_in(arguments.format, events) for events in samples[count])
        output = scratch / f"q{query}"
        sink = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{output}', 'sink.changelog' = 'true'"
        execution = execute(_compiled(query, several.directory, 1, sink), spark, once=True)
        execution.await_termination()
        rows = spark.read.parquet(str(output)).toArrow().to_pylist()
        if query in BY_CLOCK:
            _verify_by_clock(rows, several)
            console.log(f"q{query}: {len(rows):,} windows have the bids of each of {count:,} events once")
            continue
        left: Counter[tuple[Any, ...]] = Counter()
        for row in rows:
            sign = 1 if row.pop("op") in ("+I", "+U") else -1
            left[tuple(v if isinstance(v, int | float | str | None) else str(v) for v in row.values())] += sign
        ours = Counter({row: n for row, n in left.items() if n})
        theirs = flink.fold(re.sub(r"INSERT INTO \w+", "", _their_script(query, one.directory)), settings)
        if not theirs:
            raise SystemExit(f"q{query} has no result on {count:,} events: give more with --verify-events")
        if ours != theirs:
            console.print(f"q{query}: results differ: {len(ours):,} rows here, {len(theirs):,} of Flink")
            console.print("only here:", [row for row in ours if ours[row] != theirs[row]][:3])
            console.print("only Flink:", [row for row in theirs if ours[row] != theirs[row]][:3])
            raise SystemExit(1)
        console.log(f"q{query}: {sum(ours.values()):,} rows of {count:,} events are the same as Flink's")


def _verify_by_clock(rows: list[dict[str, Any]], events: Events) -> None:
    """Exit with 1 unless the windows have each bid once, and are ten seconds long, one for each bidder and time."""
    import pyarrow.parquet as pq

    wanted = Counter(pq.read_table(events.directory / "bid", columns=["bidder"])["bidder"].to_pylist())
    counted: Counter[Any] = Counter()
    for row in rows:
        counted[row["bidder"]] += row["bid_count"]
    lengths = {(row["endtime"] - row["starttime"]).total_seconds() for row in rows}
    places = {(row["bidder"], row["starttime"]) for row in rows}
    if counted != wanted or lengths != {10.0} or len(places) != len(rows):
        raise SystemExit(f"the windows by the clock have {counted.total():,} of {wanted.total():,} bids")


def _split(events: Events, directory: Path) -> Events:
    """The same rows in three files a table, to be read one a micro-batch."""
    import pyarrow.parquet as pq

    for source in sorted(events.directory.glob("*/*.parquet")):
        table = pq.read_table(source)
        target = directory / source.parent.name
        target.mkdir(parents=True)
        for part in range(3):
            begin, end = (table.num_rows * bound // 3 for bound in (part, part + 1))
            path = target / f"{part}.parquet"
            pq.write_table(table.slice(begin, end - begin), path)
            os.utime(path, (1_000_000_000 + part,) * 2)
    return Events(directory=directory, rows=events.rows)


def _in_parallel(events: Events) -> Events:
    """The same rows for Flink, in a file for each of its readers, all over the same time.

    Flink reads files in any order. A file of later events that is read first would make the rows of the others late.
    """
    import numpy as np
    import pyarrow.parquet as pq

    directory = events.directory.with_name(f"{events.directory.name}-in-parallel")
    if directory.exists():
        return Events(directory=directory, rows=events.rows)
    for source in sorted(path for path in events.directory.iterdir() if path.is_dir()):
        files = sorted(source.glob("*.parquet"))
        (directory / source.name).mkdir(parents=True)
        for part in range(PARTITIONS):
            with pq.ParquetWriter(directory / source.name / f"{part}.parquet", pq.read_schema(files[0])) as target:
                for file in files:
                    rows = pq.read_table(file)
                    target.write_table(rows.take(np.arange(part, rows.num_rows, PARTITIONS)))
    return Events(directory=directory, rows=events.rows)


# --- measuring --------------------------------------------------------------------------------------------------------


@contextmanager
def _spark(scratch: Path) -> Iterator[SparkSession]:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    log = SparkLog()
    with log.captured():
        spark = start_session(
            f"local[{PARTITIONS}]", {"spark.driver.memory": "6g", "spark.local.dir": str(scratch / "spark")}
        )
    yield spark
    spark.stop()
    log.discard()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # ends the JVM
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def _read(query: int, events: Events) -> int:
    """How many rows the tables have that a query names, once each."""
    words = set(re.findall(r"\w+", (SQL / f"q{query}.sql").read_text().partition("CREATE")[2]))
    sources = set(re.findall(r"(?:FROM|JOIN|TABLE)\s+(\w+)", (SQL / f"q{query}.sql").read_text()))
    return sum(count for table, count in events.rows.items() if table in sources and table in words)


def _ours(spark: SparkSession, query: int, events: Events) -> Measured:
    execution = execute(_compiled(query, events.directory, FILES), spark, once=True)
    assert isinstance(execution, Execution)
    millis, kept, ended = 0, {}, False
    with watched(os.getpid()) as peaks:
        while not ended:
            ended = execution.await_termination(1.0)
            for batch in execution.new_batches():
                millis += batch.duration_ms
                kept = {name: f"{state.state_rows:,} rows" for name, state in batch.operators.items()}
    return Measured(rows=_read(query, events), seconds=millis / 1000, jvm=peaks.jvm, worker=peaks.worker, detail=kept)


def _theirs(flink: Flink, query: int, events: Events, settings: Mapping[str, str]) -> Measured:
    with watched(flink.process.pid) as peaks:
        seconds = flink.run(_their_script(query, events.directory), settings)
    return Measured(rows=_read(query, events), seconds=seconds, jvm=peaks.jvm)


# --- the table --------------------------------------------------------------------------------------------------------


def _line(one: Measured) -> str:
    kept = "".join(f" · {name} {text}" for name, text in one.detail.items())
    memory = f"JVM {one.jvm / 2**30:.1f} GiB, worker {one.worker / 2**30:.1f} GiB"
    return f"{one.rate:,.0f} rows/s, {one.seconds:.1f} s, {memory}{kept}"


def _print(
    title: str,
    ours: Mapping[int, Measured],
    theirs: Mapping[int, Measured],
    batching: Mapping[int, str],
    *,
    markdown: bool,
) -> None:
    header = (
        "query", "rows", "this engine, rows/s", "Flink, rows/s", "mini-batch", "ratio", "JVM", "worker", "Flink's JVM",
    )  # fmt: skip
    lines = [
        (
            f"q{query}" + ("*" if query in NOTES else ""),
            f"{ours[query].rows:,}",
            f"{ours[query].rate:,.0f}",
            f"{theirs[query].rate:,.0f}",
            batching[query],
            f"{ours[query].rate / theirs[query].rate:.1f} x",
            *(f"{size / 2**30:.1f} GiB" for size in (ours[query].jvm, ours[query].worker, theirs[query].jvm)),
        )
        for query in ours
    ]
    notes = [f"* q{query}: {NOTES[query]}" for query in ours if query in NOTES]
    if markdown:
        print("| " + " | ".join(header) + " |\n|---|" + "---:|" * (len(header) - 1))
        print("\n".join("| " + " | ".join(line) + " |" for line in lines))
        print("\n" + "\n".join(notes).replace("* ", "\\* "))
        return
    table = Table(title=title)
    for number, column in enumerate(header):
        table.add_column(column, justify="left" if number == 0 else "right")
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.print(table)
    console.print("\n".join(notes))


if __name__ == "__main__":
    try:
        main()
    except FlinkError as error:
        sys.exit(f"benchmarks/nexmark.py: {error}")
