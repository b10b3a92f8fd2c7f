"""What a restart costs with much state: as it was, on other numbers of partitions, and after kill -9.

    python benchmarks/restarts.py                     # 10 M keys, some ten minutes
    python benchmarks/restarts.py --keys 1000000 --passes 1

An aggregate has a row for each key. Each restart is a process of its own, on a copy of the checkpoint by hard links,
with five batches of 1,000 rows to read; the time to the first batch is from the start of the process to the commit of
that batch. The process that is killed is in the middle of a batch. In the end the state is added up, and must have
every row that was read, once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table
from workloads import FILES, Workload, script, small_aggregate

import hintplan
from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.session import start_session

BATCHES = 5
"""That a restart reads."""
CORES = 2
FILL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A plan over files of ``workload`` that are let into ``live`` batch by batch."""

    workload: Workload
    live: Path

    def let_in(self, first: int, batches: int) -> int:
        """Let in the files of some batches: their rows."""
        self.live.mkdir(exist_ok=True)
        files = sorted(self.workload.tables[0].directory.glob("*.parquet"))[first * FILES : (first + batches) * FILES]
        for file in files:
            os.link(file, self.live / file.name)
        return len(files)

    def text(self) -> str:
        declared = script(self.workload, options=f", 'source.max-files-per-trigger' = '{FILES}'")
        return declared.replace(str(self.workload.tables[0].directory), str(self.live))

    def start(self, checkpoint: Path, partitions: int) -> subprocess.Popen[str]:
        task = {"sql": self.text(), "checkpoint": str(checkpoint), "partitions": partitions}
        process = subprocess.Popen(
            [sys.executable, __file__, "--child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(task))
        process.stdin.close()
        return process

    def run(self, checkpoint: Path, partitions: int) -> dict[str, float]:
        """Seconds to the first batch, and milliseconds of it and, by the median, of those after it."""
        began = time.time()
        process = self.start(checkpoint, partitions)
        assert process.stdout is not None
        batches = json.loads(process.stdout.read())
        assert process.wait() == 0
        first, *others = batches
        return {
            "first": first["ended"] - began,
            "first batch": first["milliseconds"],
            "others": median(batch["milliseconds"] for batch in others) if others else 0.0,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--passes", type=int, default=3, help="of each case")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(json.loads(sys.stdin.read()))
        return
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        measure(Path(scratch), arguments.keys, arguments.passes)


def measure(scratch: Path, keys: int, passes: int) -> None:
    workload = small_aggregate(scratch, keys=keys, fill=FILL, batches=6 * BATCHES)
    base = Job(workload=workload, live=scratch / "live")
    base.let_in(0, FILL)
    base.run(scratch / "base", CORES)
    found: dict[str, list[Mapping[str, float]]] = {}
    for number in range(passes):
        copy, job = scratch / f"copy{number}", Job(workload=workload, live=base.live)
        shutil.copytree(scratch / "base", copy, copy_function=os.link)
        at = FILL
        for name, partitions in (("as it was", 2), ("2 to 8", 8), ("8, again", 8), ("8 to 1", 1), ("1, again", 1)):
            job.let_in(at, BATCHES)
            at += BATCHES
            found.setdefault(name, []).append(job.run(copy, partitions))
        job.let_in(at, BATCHES)
        kill(job.start(copy, 1), copy)
        found.setdefault("after kill -9", []).append(job.run(copy, 1))
        at += BATCHES
        check(copy, job, rows=keys // FILL * FILL + (at - FILL) * 1_000)
        shutil.rmtree(copy)
        for file in sorted(base.live.glob("*.parquet"))[FILL * FILES :]:
            file.unlink()
    show(f"an aggregate of {keys:,} keys, median of {passes}, {os.cpu_count()} cores", found)


def kill(process: subprocess.Popen[str], checkpoint: Path) -> None:
    """Kill a run, with its JVM and its workers, in the middle of its second batch."""
    (query,) = (path.parent for path in checkpoint.glob("*/offsets"))
    last = max(int(path.name) for path in query.glob("commits/[0-9]*"))
    while not (query / "offsets" / str(last + 2)).exists():
        assert process.poll() is None, "it has ended"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (query / "commits" / str(last + 2)).exists(), "the batch had ended; try again"


def check(checkpoint: Path, job: Job, *, rows: int) -> None:
    """The counts in the state add up to all ``rows``."""
    plan = compile_sql(job.text(), {"parallelism.default": "1"})
    counted = 0
    for batch in hintplan.state_rows(plan, str(checkpoint), "aggregate_events"):
        counted += pc.sum(batch["__count"]).as_py()
    assert counted == rows, f"{counted:,} rows are in the state, {rows:,} were read"


def child(task: Mapping[str, Any]) -> None:
    """Run to the end of what is there, and print the milliseconds of each batch and when it ended."""
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        conf = {"spark.driver.memory": "4g", "spark.local.dir": scratch, "spark.sql.warehouse.dir": scratch}
        spark = start_session(f"local[{CORES}]", conf)
        plan = compile_sql(task["sql"], {"parallelism.default": str(task["partitions"])})
        execution = execute(plan, spark, checkpoint=task["checkpoint"], once=True)
        assert isinstance(execution, Execution)
        found, ended = [], False
        while not ended:
            ended = execution.await_termination(1.0)
            for batch in execution.new_batches():
                began = datetime.fromisoformat(batch.timestamp).timestamp()
                found.append({"milliseconds": batch.duration_ms, "ended": began + batch.duration_ms / 1000})
        print(json.dumps(found), flush=True)
        spark.stop()


def show(title: str, found: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    table = Table(title=title)
    for column in ("restart", "s to the first batch", "range", "ms of it", "ms of the others", "ratio"):
        table.add_column(column, justify="left" if column == "restart" else "right")
    first = median(each["first"] for each in found["as it was"])
    for name, each in found.items():
        seconds = [one["first"] for one in each]
        table.add_row(
            name,
            f"{median(seconds):.1f}",
            f"{min(seconds):.1f} to {max(seconds):.1f}",
            f"{median(one['first batch'] for one in each):,.0f}",
            f"{median(one['others'] for one in each):,.0f}",
            f"{median(seconds) / first:.2f} x",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
