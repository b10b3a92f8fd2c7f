"""A job whose TTL is edited under load, and that is killed before and after the edit: each batch runs with one plan.

All orders come in the first batch, and a payment each 50 ms afterwards. The edit hides every order from the next batch
on. Spark's log of the source has the batch of each payment, and the record of the checkpoint has the first batch with
the edited plan. So a payment must have found its order if and only if it came before that batch.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hintplan
from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.edit.edit import set_value
from hintplan.plans.files.codec import dump
from tests.faults.killed import DEADLINE_SECONDS, running
from tests.sample import gate_seed

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ORDERS = 5_000


def job(directory: Path) -> hintplan.Plan:
    def files(name: str) -> str:
        return f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/{name}'"

    return hintplan.compile_sql(
        f"CREATE TABLE o (id INT) WITH ({files('o')});"
        f"CREATE TABLE p (id INT) WITH ({files('p')}, 'source.max-files-per-trigger' = '20');"
        f"CREATE TABLE r (id INT) WITH ({files('r')});"
        "INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ o.id FROM o JOIN p ON o.id = p.id;",
        name="paid",
    )


def write(path: Path, rows: Any) -> None:
    new = path.with_name(f".{path.name}")
    new.write_text("".join(json.dumps(row) + "\n" for row in rows))
    new.rename(path)


@contextmanager
def load(directory: Path) -> Iterator[None]:
    """Pay orders one after the other during the block."""
    ended = threading.Event()

    def pay() -> None:
        for number in itertools.count(len([*(directory / "p").iterdir()])):
            if number >= ORDERS or ended.wait(0.05):
                return
            write(directory / "p" / f"{number}.json", [{"id": number}])

    thread = threading.Thread(target=pay)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wait_until(condition: Callable[[], Any], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def batches_of_payments(logs: Path) -> dict[int, int]:
    """Return the batch of each payment, by Spark's logs; the log of a source has numbers of its own."""
    payments: dict[int, list[int]] = {}
    for log in logs.glob("sources/*/[0-9]*"):
        for line in log.read_text().splitlines():
            if line.startswith("{") and "/p/" in (entry := json.loads(line))["path"]:
                payments.setdefault(entry["batchId"], []).append(int(Path(entry["path"]).stem))
                source = int(log.parent.name)
    batches: dict[int, int] = {}
    for number in sorted(int(log.name) for log in (logs / "offsets").glob("[0-9]*")):
        offset = (logs / "offsets" / str(number)).read_text().splitlines()[2 + source]
        if offset != "-":
            batches |= dict.fromkeys(payments.pop(json.loads(offset)["logOffset"], ()), number)
    assert not payments
    return batches


def test_each_batch_runs_with_one_plan(tmp_path: Path) -> None:
    chance = Random(gate_seed())
    for name in ("o", "p"):
        (tmp_path / name).mkdir()
    plan, path = job(tmp_path), tmp_path / "plan.json"
    edited, _ = set_value(plan, "join_o_p.state.leftState.ttl", "1 ms")
    dump(plan, path)
    write(tmp_path / "o" / "0.json", [{"id": number} for number in range(ORDERS)])
    commits, log = tmp_path / "checkpoint" / "sink_r" / "commits", tmp_path / "log"

    def ended() -> int:
        return len([file for file in commits.glob("*") if file.name.isdecimal()])

    with running(tmp_path, "--watch", "--trigger", "10 ms"):
        wait_until(lambda: ended() > 0, log)
        with load(tmp_path):
            wait_until(lambda: ended() > 3, log)
            dump(edited, path)
            time.sleep(chance.uniform(0, 4))
    with running(tmp_path, "--watch", "--trigger", "10 ms"), load(tmp_path):
        number, wanted = ended(), chance.randint(0, 2)
        wait_until(lambda: ended() > number + wanted, log)
        time.sleep(chance.uniform(0, 1))
    with running(tmp_path, "--once") as process:
        assert process.wait(DEADLINE_SECONDS) == 0, log.read_text()
    record = local_record(str(tmp_path / "checkpoint"))
    assert record is not None
    since = dict(record.since)["sink_r"]
    batches = batches_of_payments(tmp_path / "checkpoint" / "sink_r")
    found = [row["id"] for file in (tmp_path / "r").glob("*.json") for row in map(json.loads, file.open())]
    assert sorted(found) == sorted(payment for payment, batch in batches.items() if batch < since)
    assert 0 < len(found) < len(batches)
