"""Asks real Flink what becomes of state whose TTL changes between never and some time; writes restore.json.

    python record_restore.py            # with apache-flink 2.3 and Java 17; a few minutes

A job counts rows by key, is cancelled, and continues from its last checkpoint with another TTL. Rows arrive as files.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = {
    "never, then an hour": ("0 ms", "1 h", 0),
    "an hour, then never": ("1 h", "0 ms", 0),
    "never, then 3 s, and 15 s without a row": ("0 ms", "3 s", 15),
    "an hour, then 3 s, and 15 s without a row": ("1 h", "3 s", 15),
}
SECONDS = 90


def job(base: Path, ttl: str, restored: str | None) -> tuple[object, object]:
    """Start the job; its environment and its client."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    found = Configuration()
    for key, value in {
        "parallelism.default": "1",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"file://{base}/checkpoints-{'first' if restored is None else 'second'}",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "table.exec.state.ttl": ttl,
        "restart-strategy.type": "none",
        **({} if restored is None else {"execution.state-recovery.path": restored}),
    }.items():
        found.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(found).build()
    table = TableEnvironment.create(settings)
    table.execute_sql(
        f"CREATE TABLE o (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '{base}/in', "
        "'format' = 'json', 'source.monitor-interval' = '500ms')"
    )
    table.execute_sql("CREATE TABLE r (k STRING, n BIGINT, s BIGINT) WITH ('connector' = 'print')")
    started = table.execute_sql("INSERT INTO r SELECT k, COUNT(*), SUM(v) FROM o GROUP BY k")
    return table, started.get_job_client()


def part(base: Path, which: str, ttl: str, wait: int) -> None:
    """One of the two jobs, in a process of its own; its changes go to stdout."""
    first = which == "first"
    checkpoints = base / f"checkpoints-{which}"
    restored = None if first else f"file://{newest(base / 'checkpoints-first')}"
    _, client = job(base, ttl, restored)
    if not first:
        time.sleep(wait + 5)
        (base / "in" / "b.json").write_text('{"k": "x", "v": 10}\n')
    # The rows are read within a second or two; the checkpoint after that has them.
    time.sleep(8)
    deadline, seen = time.monotonic() + SECONDS, newest(checkpoints)
    while newest(checkpoints) == seen and time.monotonic() < deadline:
        status = str(client.get_job_status().result())
        if "FAILED" in status:
            raise SystemExit(f"the job failed: {status}")
        time.sleep(0.5)
    client.cancel().result()


def newest(checkpoints: Path) -> Path | None:
    """The last checkpoint; Flink keeps one."""
    found = sorted(checkpoints.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime)
    return found[-1].parent if found else None


def recorded(before: str, after: str, wait: int) -> list[str]:
    """The changes that the second job prints."""
    base = Path(tempfile.mkdtemp(prefix="flink-restore-"))
    try:
        (base / "in").mkdir()
        (base / "in" / "a.json").write_text('{"k": "x", "v": 1}\n{"k": "y", "v": 2}\n')
        command = [sys.executable, __file__, str(base)]
        subprocess.run([*command, "first", before, "0"], check=True, capture_output=True, timeout=300)
        done = subprocess.run([*command, "second", after, str(wait)], check=True, capture_output=True, timeout=300)
        return [line for line in done.stdout.decode().splitlines() if line[:2] in ("+I", "-U", "+U", "-D")]
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        part(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        answers = {name: recorded(*case) for name, case in CASES.items()}
        Path(__file__).with_name("restore.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")
