"""Cached results survive the loss of the executors that hold them: jobs compute them again, and end right."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.cluster.installed import NEEDED_BY_WORKERS, environment, installed, python_with
from tests.cluster.standalone import Cluster
from tests.runtime.batch.programs import read_rows, write_rows
from tests.sample import in_turn
from tests.spark.quick import quick_executors

DEADLINE_SECONDS = 600


@in_turn(0, of=2)
def test_jobs_end_right_when_executors_with_cached_blocks_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    orders = [{"id": i, "k": i % 4} for i in range(40)]
    countries = {0: "DE", 1: "FR", 2: "DE"}
    for part in range(4):
        write_rows(tmp_path / "orders", orders[part::4], f"{part}.json")
    write_rows(tmp_path / "customers", [{"k": k, "country": country} for k, country in countries.items()])
    shutil.copy(Path(__file__).parent / "lost_executor.py", tmp_path)
    # The connector of job 3 needs a package of its own.
    workers = python_with([*NEEDED_BY_WORKERS, "httpx"])
    settings = [f"{name}={value}" for name, value in quick_executors().items()]
    done = subprocess.run(
        [installed().python, "lost_executor.py", cluster.master, workers, tmp_path, *settings],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    ((operator, *first),) = seen["first"]
    assert first == [30, 0, True]
    assert seen["second"] == [[operator, 30, 1, True]]
    assert seen["third"] == [[operator, 30, 2]]
    assert seen["killed between"] != seen["killed during"]
    joined = [(order["id"], countries[order["k"]]) for order in orders if order["k"] in countries]
    groups = {name: [number for number, country in joined if country == name] for name in ("DE", "FR")}
    counts = {(len(ids), name, sum(ids)) for name, ids in groups.items()}
    assert {tuple(row.values()) for row in read_rows(tmp_path / "first")} == counts
    assert {tuple(row.values()) for row in read_rows(tmp_path / "second")} == counts
    doubles = sorted((2 * number, country, number) for number, country in joined)
    assert sorted(tuple(row.values()) for row in read_rows(tmp_path / "third")) == doubles
