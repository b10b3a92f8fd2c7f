"""Rows per second and memory of operators with state: this engine, Flink, and Spark's own, in one run on one machine.

    python benchmarks/stateful.py                                      # full size, some minutes
    python benchmarks/stateful.py --scale 0.1 --only join --engines this --engines Flink
    python benchmarks/stateful.py --only 'small batches'               # 1,000 rows against 100 k and 10 M keys
    python benchmarks/stateful.py --format csv --engines this --engines heap    # files of text beside Flink

Each engine runs each workload of workloads.py in a process of its own, first an eighth of it to warm up, then all of
it, or the share in ``SHARES``, so that slow ones end; with less state they are faster. With files of text, each engine
warms up four times, and then runs all of it. The rate is rows over the time
of all micro-batches, and over the net run time of Flink's job. Flink is found as flink.py says; ``--engines this
--engines Spark`` leaves it out. Memory is resident memory at its peak. Figures of different machines or moments do not
compare; ratios do. docs/performance/operators.md says more.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flink import HEAP, ONE_BY_ONE, ROCKSDB, THROUGHPUT, Flink, FlinkError, flink_python
from memory import Peaks, cpu_seconds, watched
from on_spark import OURS, STORES, Task
from rich.console import Console
from rich.table import Table
from workloads import (
    NUMBERED,
    Workload,
    aggregate,
    as_text,
    inner_join,
    numbered,
    part,
    script,
    small_aggregate,
    small_join,
)

HERE = Path(__file__).resolve().parent
WARMUP = 0.125
SHARES = {
    "Spark native, RocksDB": 0.25,
    "Spark native, heap": 0.25,
    "transformWithState per key": 0.0625,
    "Flink, heap": 0.5,
    "Flink, heap, mini-batch": 0.5,
    "Flink, RocksDB": 0.25,
    "Flink, RocksDB, mini-batch": 0.25,
}
FLINKS = {
    "Flink, heap": ONE_BY_ONE | HEAP,
    "Flink, heap, mini-batch": THROUGHPUT | HEAP,
    "Flink, RocksDB": ONE_BY_ONE | ROCKSDB,
    "Flink, RocksDB, mini-batch": THROUGHPUT | ROCKSDB,
}
SMALL = "small batches"
SMALL_KEYS, FILL, BATCHES, SKIPPED = (100_000, 10_000_000), 10, 40, 5

Lines = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``rows`` in ``seconds``, with so much CPU, and the peaks of memory; ``answer`` is what the process said."""

    rows: int
    seconds: float
    cpu: float
    peaks: Peaks
    answer: Mapping[str, Any]

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies keys and rows")
    parser.add_argument("--only", default="", help=f"run only workloads whose name contains this; one is '{SMALL}'")
    parser.add_argument("--engines", action="append", help="run only engines whose name contains this; repeatable")
    parser.add_argument("--flink", help="Flink's interpreter; otherwise FLINK_PYTHON, or .flink/bin/python")
    parser.add_argument("--format", choices=("parquet", "csv", "json"), default="parquet", help="of the files")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    arguments = parser.parse_args()
    wanted: Callable[[str], bool] = lambda name: any(part in name for part in arguments.engines or [""])  # noqa: E731
    talk = Console(stderr=True)
    python = flink_python(arguments.flink) if any(map(wanted, FLINKS)) and arguments.only != SMALL else None
    lines: Lines = []
    for make in workloads(arguments.scale, arguments.only, arguments.format):
        with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
            workload = make(Path(scratch))
            found: dict[str, Measured] = {}
            for name in filter(wanted, engines(workload)):
                found[name] = on_flink(name, workload, python) if name in FLINKS else on_spark(name, workload)
                talk.log(f"{workload.name}: {name}: {found[name].rate:,.0f} rows/s")
            lines += rates(workload, found)
    title = f"{os.cpu_count()} cores, parallelism 2, scale {arguments.scale:g}"
    if lines:
        header = ("workload", "engine", "rows", "rows/s", "this engine is", "CPU s/M rows", "JVM", "worker", "mapped")
        show(title, header, lines, markdown=arguments.markdown)
    if arguments.only in SMALL and arguments.format == "parquet" and wanted(OURS):
        header = (
            "batches of 1,000 rows",
            "keys",
            "state",
            "median, ms",
            "slowest",
            "growth",
            "JVM",
            "worker",
            "mapped",
        )
        show(title, header, list(small_batches(arguments.scale, talk)), markdown=arguments.markdown)


def workloads(scale: float, only: str, format: str) -> Iterator[Callable[[Path], Workload]]:
    """What makes the workloads whose names contain ``only``, in a directory."""
    if format != "parquet":
        yield from text_workloads(scale, only, format)
        return
    for keys in (200_000, 4_000_000):
        if only in f"aggregate, {int(keys * scale):,} keys":
            yield lambda scratch, keys=keys: aggregate(scratch, keys=int(keys * scale), rows=int(24_000_000 * scale))
    facts, dimension = int(12_000_000 * scale), int(400_000 * scale)
    if only in f"inner join, {facts:,} x {dimension:,} rows":
        yield lambda scratch: inner_join(scratch, facts=facts, dimension=dimension)
    keys, rows = int(1_000_000 * scale), int(10_000_000 * scale)
    for kind in NUMBERED:
        if only in f"{kind}, {keys:,} keys":
            yield lambda scratch, kind=kind: numbered(scratch, kind=kind, keys=keys, rows=rows)


def text_workloads(scale: float, only: str, format: str) -> Iterator[Callable[[Path], Workload]]:
    """What makes the workloads of files of text: micro-batches of a million rows, and of 1.5 million for the join."""
    keys, rows = int(4_000_000 * scale), int(8_000_000 * scale)
    if only in f"aggregate, {keys:,} keys":
        yield lambda scratch: as_text(aggregate(scratch, keys=keys, rows=rows, batches=8), format)
    facts, dimension = int(4_000_000 * scale), int(400_000 * scale)
    if only in f"inner join, {facts:,} x {dimension:,} rows":
        yield lambda scratch: as_text(inner_join(scratch, facts=facts, dimension=dimension), format)


def engines(workload: Workload) -> Iterator[str]:
    stores = [name for name in STORES if workload.per_key or "per key" not in name] if workload.natively else []
    yield from (OURS, *stores, *FLINKS)


def on_spark(name: str, workload: Workload, *, warm: bool = True) -> Measured:
    """``workload``, or the engine's share of it, in a new Spark session, after a part of it if ``warm``."""
    share = _share(name, workload)
    full = part(workload, share)
    warmup = (part(workload, min(WARMUP, share)),) * _warmups(workload) if warm else ()
    child = subprocess.Popen(
        [sys.executable, str(HERE / "on_spark.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])},
    )
    with watched(child.pid) as peaks:
        out, err = child.communicate(pickle.dumps(Task(engine=name, workloads=(*warmup, full))))
    lines = [line for line in out.splitlines() if line.startswith(b"{")]
    if child.returncode or not lines:
        said = err.decode(errors="replace").strip().splitlines()[-40:]
        sys.exit("\n".join((*said, f"{name} failed on {workload.name}")))
    answer = json.loads(lines[-1])
    seconds = sum(answer["milliseconds"]) / 1000
    return Measured(rows=sum(answer["rows"]), seconds=seconds, cpu=answer["cpu_seconds"], peaks=peaks, answer=answer)


def on_flink(name: str, workload: Workload, python: Path | None) -> Measured:
    """The engine's share of ``workload`` in a new JVM with Flink, after a part of it in the same JVM."""
    assert python is not None
    full = part(workload, _share(name, workload))
    with Flink.start(python) as flink, watched(flink.process.pid) as peaks:
        for _ in range(_warmups(workload)):
            flink.run(script(part(workload, WARMUP)), FLINKS[name])
        before = cpu_seconds(flink.process.pid)
        seconds = flink.run(script(full), FLINKS[name])
        cpu = cpu_seconds(flink.process.pid) - before
    return Measured(rows=full.rows, seconds=seconds, cpu=cpu, peaks=peaks, answer={})


def _share(name: str, workload: Workload) -> float:
    return 1.0 if workload.whole else SHARES.get(name, 1.0)


def _warmups(workload: Workload) -> int:
    return 4 if workload.whole else 1


def small_batches(scale: float, talk: Console) -> Iterator[tuple[str, ...]]:
    """How long a micro-batch of 1,000 rows takes against few keys and against many."""
    for make in (small_aggregate, small_join):
        base = 0.0
        for keys in (int(keys * scale) for keys in SMALL_KEYS):
            with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
                workload = make(Path(scratch), keys=keys, fill=FILL, batches=SKIPPED + BATCHES)
                found = on_spark(OURS, workload, warm=False)
            times = found.answer["milliseconds"][FILL + SKIPPED :]
            median = statistics.median(times)
            base = base or median
            state = f"{found.answer['state_bytes'] / 2**20:,.0f} MiB"
            talk.log(f"{SMALL}: {workload.name}, {keys:,} keys: {median:,.0f} ms")
            shape = (workload.name, f"{keys:,}", state, f"{median:,.0f}", f"{max(times):,}", f"{median / base:.1f} x")
            yield (*shape, *memory(found.peaks))


def rates(workload: Workload, found: Mapping[str, Measured]) -> Lines:
    lines = []
    for name, one in found.items():
        ratio = f"{found[OURS].rate / one.rate:.1f} x" if name != OURS and OURS in found else ""
        cpu = f"{one.cpu / one.rows * 1e6:.2f}"
        lines.append((workload.name, name, f"{one.rows:,}", f"{one.rate:,.0f}", ratio, cpu, *memory(one.peaks)))
    return lines


def memory(peaks: Peaks) -> tuple[str, str, str]:
    """Peaks of all JVMs and of the largest Python worker, and what of the latter are mapped files."""
    sizes = (peaks.jvm, peaks.worker, peaks.worker - peaks.worker_own)
    jvm, worker, mapped = (f"{size / 2**30:.1f} GiB" for size in sizes)
    return (jvm, worker, mapped) if peaks.worker else (jvm, "", "")


def show(title: str, header: Sequence[str], lines: Lines, *, markdown: bool) -> None:
    texts = ("workload", "engine", "batches of 1,000 rows")
    if markdown:
        bars = ["---" if column in texts else "---:" for column in header]
        print("\n".join("| " + " | ".join(line) + " |" for line in (header, bars, *lines)), end="\n\n")
        return
    table = Table(title=title)
    for column in header:
        table.add_column(column, justify="left" if column in texts else "right")
    for index, line in enumerate(lines):
        table.add_row(*line, end_section=index + 1 < len(lines) and lines[index + 1][0] != line[0])
    width = max(160, shutil.get_terminal_size().columns) if not sys.stdout.isatty() else None
    Console(width=width).print(table)


if __name__ == "__main__":
    try:
        main()
    except FlinkError as error:
        sys.exit(f"benchmarks/stateful.py: {error}")
