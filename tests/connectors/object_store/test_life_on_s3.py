"""A checkpoint on S3: kills, other numbers of partitions, other sources, snapshots, damages, rows that wait."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable

import pytest

import hintplan
from hintplan import compile_sql
from tests.connectors.object_store.job import Job, with_group
from tests.connectors.object_store.server import Request
from tests.connectors.text_in_pieces import EXPECTED, script, sums, write_lines
from tests.sample import in_turn, sampled
from tests.spark.commands import Commands, Done

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.integration]

DEADLINE_SECONDS = 300


@pytest.fixture
def job(job: Job, commands: Commands) -> Job:
    job.commands = commands
    return job


def wait_for(what: str, holds: Callable[[], bool], process: subprocess.Popen[str], job: Job) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"{what}: ended with {process.returncode}: {(job.directory / 'stderr').read_text()}")


def hang_commits(job: Job) -> Callable[[], bool]:
    """Let the server not answer what writes to a log of commits; whether a run has come to that."""
    job.store.mended.clear()

    def failing(request: Request) -> str | None:
        return "hang" if "/commits/" in request.key and request.method in ("PUT", "COPY") else None

    job.store.failing, job.store.failed = failing, 0
    return lambda: job.store.failed > 0


def mend(job: Job) -> None:
    job.store.failing = None
    job.store.mended.set()


def done(found: subprocess.CompletedProcess[str] | Done, code: int = 0) -> subprocess.CompletedProcess[str] | Done:
    assert found.returncode == code, f"{found.stdout}\n{found.stderr}"
    return found


@pytest.mark.parametrize(("source", "sink"), sampled([("csv", "json"), ("parquet", "csv")], keep=1))
def test_formats(source: str, sink: str, job: Job) -> None:
    job.source, job.sink = source, sink
    job.order(2)
    job.compile()
    done(job.run("--once"))
    job.check()


@in_turn(1, of=3)
def test_workers_read_large_text_files_in_pieces(job: Job) -> None:
    write_lines(job.store.system(), f"{job.bucket}/in")
    database = job.directory / "sums.db"
    hintplan.dump(compile_sql(script(f"s3a://{job.bucket}/in", database), name="job"), job.directory / "job.json")
    assert "read by Spark" not in done(job.run("--once")).stderr
    assert sums(database) == EXPECTED


@in_turn(0, of=3)
def test_a_life(job: Job) -> None:
    job.order(2)
    job.compile(partitions=2)
    stuck = hang_commits(job)
    with job.started("--trigger", "100 ms") as process:
        wait_for("a batch that cannot end", stuck, process, job)
        with_group(process, signal.SIGKILL)
        process.wait()
    mend(job)

    # Killed in mid-batch, then on four partitions: the batch runs again, and everything counts once.
    job.order(1)
    job.compile(partitions=4)
    checked = done(job.call("check", "job.json", "--checkpoint", job.checkpoint))
    assert "2 → 4" in checked.stdout or "4 partitions" in checked.stdout, checked.stdout
    again = done(job.run("--once"))
    job.check()
    assert "state files:" in again.stderr

    # One partition, and one more source of the other sink: its logs begin a new generation.
    job.order(1)
    job.order(2, table="more")
    job.compile(partitions=1, more=True)
    done(job.run("--once"))
    job.check()
    logs = [key for key in job.store.keys(f"{job.bucket}/checkpoint") if "/logs.1/" in key]
    assert any("/offsets/" in key for key in logs), "the logs are written anew"

    # What is in it, without Spark; a snapshot, a compaction, and on.
    copy = f"s3a://{job.bucket}/copy"
    shown = done(job.call("state", "job.json", "--checkpoint", job.checkpoint))
    assert re.search(rf"total +{len(job.sums())} ", shown.stdout), shown.stdout
    done(job.call("state", job.checkpoint, "--snapshot", copy))
    done(job.call("state", job.checkpoint, "--compact"))
    job.order(1)
    done(job.run("--once"))
    job.check()

    # The snapshot is older than what the sink of files has had since, and would not write that again.
    refused = done(job.call("run", "job.json", "--once", "--checkpoint", copy), 1)
    assert "table large: a streaming job has written batches up to" in refused.stderr, refused.stderr

    # A part that is lost is named, and nothing is taken for new.
    (query,) = {key.split("/")[2] for key in job.store.keys(f"{job.bucket}/checkpoint") if "/state/" in key}
    offsets = job.store.keys(f"{job.bucket}/checkpoint/{query}/offsets")
    newest = max(offsets, key=lambda key: int(key.rpartition("/")[2]))
    job.store.system().delete_file(newest)
    for words in (("run", "job.json", "--once"), ("check", "job.json")):
        refused = done(job.call(*words, "--checkpoint", job.checkpoint), 1)
        assert f"{newest.partition('/checkpoint/')[2]} is missing" in refused.stderr, refused.stderr


WAITING = """
CREATE TABLE orders (id BIGINT, currency STRING, pt AS PROCTIME()) WITH ('connector' = 'filesystem',
  'path' = 's3a://{bucket}/orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE rates (currency STRING, rate DOUBLE, PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:rates.db', 'table-name' = 'rates');
CREATE TABLE priced (id BIGINT, rate DOUBLE, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:priced.db', 'table-name' = 'priced');
INSERT INTO priced SELECT /*+ LOOKUP('table' = 'rates', 'retry-predicate' = 'lookup_miss',
  'retry-strategy' = 'fixed_delay', 'fixed-delay' = '1 s', 'max-attempts' = '1000',
  'output-mode' = 'allow_unordered') */ o.id, r.rate
FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.currency;
"""


def test_rows_that_wait_wake_a_job_whose_checkpoint_is_on_s3(job: Job) -> None:
    job.store.write(f"{job.bucket}/orders/1.json", '{"id": 1, "currency": "EUR"}\n{"id": 2, "currency": "CHF"}\n')
    with sqlite3.connect(job.directory / "rates.db") as rates:
        rates.execute("CREATE TABLE rates (currency TEXT PRIMARY KEY, rate REAL)")
        rates.execute("INSERT INTO rates VALUES ('EUR', 1.5)")
    plan = compile_sql(WAITING.format(bucket=job.bucket), name="job")
    assert plan.operator("lookup_r").retry.mode == "deferred"
    hintplan.dump(plan, job.directory / "job.json")

    def priced() -> list[tuple[int, float]]:
        with sqlite3.connect(job.directory / "priced.db") as database:
            try:
                return database.execute("SELECT id, rate FROM priced ORDER BY id").fetchall()
            except sqlite3.OperationalError:
                return []

    with job.started() as process:
        wait_for("the row that is found", lambda: priced() == [(1, 1.5)], process, job)
        with sqlite3.connect(job.directory / "rates.db") as rates:
            rates.execute("INSERT INTO rates VALUES ('CHF', 2.5)")
        wait_for("the row that waited", lambda: priced() == [(1, 1.5), (2, 2.5)], process, job)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 143
