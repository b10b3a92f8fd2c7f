"""A snapshot is a whole checkpoint as of its last committed batches, however it is made, whatever runs meanwhile."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan import read_state
from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import KINDS
from hintplan.runtime.builders.bound import KERNELS
from hintplan.runtime.checkpoint import run_lock
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.lease import WAITS, claim, look
from hintplan.runtime.checkpoint.lease_stores import arrow_store
from hintplan.runtime.checkpoint.lock_owner import ourselves
from hintplan.runtime.checkpoint.parts import damages
from hintplan.runtime.checkpoint.run_lock import lock_stored
from hintplan.runtime.inspect import snapshot, snapshot_parts
from hintplan.runtime.inspect.checked import check
from hintplan.runtime.inspect.compact import compact_state
from hintplan.runtime.inspect.snapshot import take_snapshot
from hintplan.runtime.storage import local_files as on_disk
from hintplan.runtime.storage.remote_files import remote_files
from tests.operator_kinds import BATCHES, PROGRAMS, compiled, expected
from tests.runtime.changelog import Event, fold
from tests.runtime.stored import StoredQuery, run_on

pytestmark = pytest.mark.part(of=4)

HOUR = 3_600_000
STATEFUL = sorted(kind.op for kind in KINDS if kind in KERNELS)


def rows(plan: Plan, number: int) -> dict[str, list[tuple[Any, ...]]]:
    """A batch of the programs in the order of each table's columns; of upserts, the kind first."""
    found = {}
    for table in BATCHES[number].keys() & plan.tables.keys():
        given = BATCHES[number][table]
        names = [column.name for column in plan.tables[table].columns]
        kind = (lambda row: (row.get("op", "+U"),)) if table == "u" else (lambda row: ())
        if table == "t":
            given = [{**row, "ts": datetime.fromisoformat(row["ts"])} for row in given]
        found[table] = [(*kind(row), *map(row.get, names)) for row in given]
    return found


def left_by(op: str, events: list[Event]) -> Counter[tuple[Any, ...]]:
    """What a sink has in the end: of one with a key the last row of each."""
    if "PRIMARY KEY" not in PROGRAMS[op].columns:
        return +fold(events, Counter())
    last: dict[Any, tuple[Any, ...]] = {}
    for kind, row in events:
        if kind in ("+I", "+U"):
            last[row[0]] = row
        else:
            last.pop(row[0], None)
    return Counter(last.values())


def batch(query: StoredQuery, number: int, events: list[Event]) -> None:
    query.events = []
    query.batch(rows(query.plan, number), HOUR * (number + 1))
    events += query.events


def one(plan: Plan, checkpoint: Path, *, partitions: int = 2) -> StoredQuery:
    (query,) = run_on(plan, checkpoint, partitions=partitions).values()
    return query


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def counted(tmp_path: Path) -> Plan:
    """Three batches of a count at ``tmp_path/checkpoint``, and a fourth that is not committed."""
    plan = counting()
    (query,) = run_on(plan, tmp_path / "checkpoint").values()
    for number in range(3):
        query.batch({"l": [(number, "a"), (9, "b")]}, HOUR * number)
    query.batch({"l": [(77, "never")]}, HOUR * 9, committed=False)
    return plan


def counting(ttl: str = "0 s") -> Plan:
    return hintplan.compile_sql(
        f"SET 'table.exec.state.ttl' = '{ttl}';"
        "CREATE TABLE l (k BIGINT, a STRING) WITH ('connector' = 'datagen');"
        "CREATE TABLE r (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');"
        "INSERT INTO r SELECT k, COUNT(*) FROM l GROUP BY k;",
        name="counted",
    )


def groups(plan: Plan, checkpoint: Path) -> int:
    return read_state(plan, str(checkpoint), at=HOUR).total.rows


@pytest.mark.parametrize("op", STATEFUL)
def test_a_run_goes_on_from_a_snapshot_as_if_it_had_not_been_stopped(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    events: list[Event] = []
    query = one(plan, tmp_path / "checkpoint")
    batch(query, 0, events)
    batch(query, 1, events)
    made = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert set(made.batches.values()) == {1}
    then = list(events)
    batch(query, 2, events)
    assert left_by(op, events) == expected(op)
    assert check(plan, str(tmp_path / "copy")).verdict == "continues"
    goes_on = one(plan, tmp_path / "copy")
    goes_on.result = fold(then, Counter())
    batch(goes_on, 2, then)
    assert left_by(op, then) == expected(op)


def test_it_has_what_was_committed_and_nothing_else(counted: Plan, tmp_path: Path) -> None:
    made = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    found = files(tmp_path / "copy")
    assert {name for name in found if "/state/" not in name} == {
        "hintplan/record.jsonl",
        "sink_r/metadata",
        *(f"sink_r/{log}/{number}" for log in ("offsets", "commits") for number in range(3)),
    }
    assert not [name for name in found if Path(name).name.startswith("3.")], "of the batch that was not committed"
    assert found.items() <= files(tmp_path / "checkpoint").items()
    assert made.batches == {"sink_r": 2}
    assert (made.files, made.bytes) == (len(found), sum(map(len, found.values())))
    assert groups(counted, tmp_path / "copy") == groups(counted, tmp_path / "checkpoint") == 4
    assert not list(damages(local_files(tmp_path / "copy"), local_record(str(tmp_path / "copy"))))


def test_state_is_shared_and_what_spark_writes_is_copied(counted: Plan, tmp_path: Path) -> None:
    made = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    linked = {path for path in files(tmp_path / "copy") if os.stat(tmp_path / "copy" / path).st_nlink > 1}
    assert linked == {path for path in files(tmp_path / "copy") if "/state/" in path}
    assert made.linked == len(linked) > 0
    (query,) = run_on(counted, tmp_path / "copy").values()
    for number in range(30):  # which sweeps, and merges
        query.batch({"l": [(100 + number, "c")]}, HOUR)
    assert groups(counted, tmp_path / "checkpoint") == 4


def test_files_are_copied_where_there_are_no_links(
    counted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(on_disk.os, "link", refused)
    made = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert made.linked == 0
    assert groups(counted, tmp_path / "copy") == 4


def test_nobody_may_read_a_snapshot_who_may_not_read_the_checkpoint(counted: Plan, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").chmod(0o700)
    (tmp_path / "checkpoint" / "sink_r" / "offsets" / "0").chmod(0o600)
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "copy" / "sink_r" / "offsets" / "0").stat().st_mode & 0o777 == 0o600
    (tmp_path / "checkpoint").chmod(0o755)
    (tmp_path / "mine").mkdir(mode=0o700)
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "mine"))
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


def test_files_that_a_source_has_found_later_are_left_out(counted: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint" / "sink_r" / "sources" / "0"
    folder.mkdir(parents=True)
    for name in ("9.compact", "10", "11", "12"):
        (folder / name).write_text(f'v1\n{{"batchId":{name.removesuffix(".compact")}}}\n')
    log = tmp_path / "checkpoint" / "sink_r" / "offsets" / "2"
    log.write_text(log.read_text().replace("\n-\n", '\n{"logOffset":11}\n'))
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert {path.name for path in (tmp_path / "copy" / "sink_r" / "sources" / "0").iterdir()} == {
        "9.compact",
        "10",
        "11",
    }


def test_a_directory_that_has_something_in_it_or_is_inside_is_refused(counted: Plan, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    with pytest.raises(RunError, match="full is not empty"):
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "full"))
    with pytest.raises(RunError, match="would be a part of the checkpoint"):
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "checkpoint" / "copy"))
    with pytest.raises(RunError, match="there is no checkpoint in"):
        take_snapshot(str(tmp_path / "full"), str(tmp_path / "copy"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "full"]


def test_a_damaged_checkpoint_has_no_snapshot(counted: Plan, tmp_path: Path) -> None:
    newest = max((tmp_path / "checkpoint").rglob("2.*.manifest"))
    newest.unlink()
    with pytest.raises(RunError, match=r"lost the manifest of batch 2|is missing"):
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def during(monkeypatch: pytest.MonkeyPatch, query: StoredQuery, goes_on: Iterator[int]) -> None:
    """So many batches of ``query`` happen when the parts of a snapshot have been chosen, before they are copied."""
    choose = snapshot_parts.snapshot_parts

    def chosen(*arguments: Any) -> list[snapshot_parts.SnapshotPart]:
        found = list(choose(*arguments))
        for _ in range(next(goes_on, 0)):
            query.batch({"l": [(1000 + query.next, "late")]}, HOUR * query.next)
        return found

    monkeypatch.setattr(snapshot, "snapshot_parts", chosen)


def test_what_a_run_sweeps_meanwhile_is_taken_at_a_newer_batch(
    counted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (query,) = run_on(counted, tmp_path / "checkpoint").values()
    during(monkeypatch, query, iter([25, 25]))
    made = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert made.batches == {"sink_r": 2 + 25 + 25}
    assert groups(counted, tmp_path / "copy") == 4 + 50
    assert not [name for name in files(tmp_path / "copy") if "/state/" in name and not is_needed(tmp_path, name)]


def is_needed(tmp_path: Path, name: str) -> bool:
    """Whether a snapshot of the snapshot has it, too: nothing is left of the attempts before."""
    if not (tmp_path / "again").exists():
        take_snapshot(str(tmp_path / "copy"), str(tmp_path / "again"))
    return (tmp_path / "again" / name).exists()


def test_a_run_that_is_too_fast_is_said(counted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (query,) = run_on(counted, tmp_path / "checkpoint").values()
    monkeypatch.setattr(snapshot, "_ATTEMPTS", 3)
    during(monkeypatch, query, iter([25] * 9))
    with pytest.raises(RunError, match=r"a run is active in .*, and removes files before they are copied"):
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
    assert not list(tmp_path.glob(".copy.*"))


def test_another_plan_that_begins_meanwhile_is_in_its_record(
    counted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = snapshot_parts.snapshot_parts

    def chosen(*arguments: Any) -> list[snapshot_parts.SnapshotPart]:
        found = list(choose(*arguments))
        if not rescaled:
            rescaled.append(run_on(counted, tmp_path / "checkpoint", partitions=3)["sink_r"])
            rescaled[0].batch({"l": [(5, "x")]}, HOUR)
        return found

    rescaled: list[StoredQuery] = []
    monkeypatch.setattr(snapshot, "snapshot_parts", chosen)
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "hintplan" / "record.jsonl").read_bytes().count(b"\n") == 2
    assert groups(counted, tmp_path / "copy") == 5


def test_checkpoints_and_snapshots_may_be_behind_urls(counted: Plan, s3: str, tmp_path: Path) -> None:
    bucket = f"{s3}/{tmp_path.name}"
    take_snapshot(str(tmp_path / "checkpoint"), f"{bucket}/one")
    take_snapshot(f"{bucket}/one", f"{bucket}/two")
    with pytest.raises(RunError, match="two is not empty"):
        take_snapshot(str(tmp_path / "checkpoint"), f"{bucket}/two")
    with pytest.raises(RunError, match="would be a part of the checkpoint"):
        take_snapshot(f"{bucket}/one", f"{bucket}/one/two")
    compact_state(f"{bucket}/two", at=HOUR)
    assert read_state(counted, f"{bucket}/two", at=HOUR).total.rows == 4
    assert is_free(f"{bucket}/two"), "it is given back"
    made = take_snapshot(f"{bucket}/two", str(tmp_path / "copy"))
    assert (made.batches, made.linked) == ({"sink_r": 2}, 0)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    (query,) = run_on(counted, tmp_path / "copy").values()
    query.result = Counter({(9, 3): 1})
    query.batch({"l": [(9, "b"), (100, "b")]}, HOUR * 4)
    assert query.result == Counter({(9, 4): 1, (100, 1): 1})


def test_a_checkpoint_behind_a_url_that_somebody_holds_is_left_alone(
    counted: Plan, s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "TELLS", replace(WAITS, sleep=lambda seconds: None))
    url = f"{s3}/{tmp_path.name}"
    take_snapshot(str(tmp_path / "checkpoint"), url)
    lock = lock_stored(url, remote_files(url))
    with pytest.raises(RunError, match="is in use by this process"):
        compact_state(url, at=HOUR)
    lock.release()
    compact_state(url, at=HOUR)
    store = arrow_store(remote_files(url))
    assert is_free(url)
    elsewhere = replace(ourselves(None), host="elsewhere")
    assert claim(store, look(store), elsewhere, 60.0, replace(WAITS, sleep=lambda seconds: None)) is not None
    monkeypatch.setattr(run_lock, "TELLS", replace(WAITS, longest=0.0))
    with pytest.raises(RunError, match=r"was taken by process .* on elsewhere"):
        compact_state(url, at=HOUR)


def is_free(url: str) -> bool:
    seen = look(arrow_store(remote_files(url)))
    return seen is not None and seen.is_free


@pytest.mark.parametrize("operation", ["link", "mkdir", "rename", "open", "fsync"])
def test_a_crash_at_any_operation_leaves_nothing_that_looks_whole(
    operation: str, counted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call in turn ends it as a lost process does: nothing is cleaned up."""
    whole = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "whole"))
    wanted = files(tmp_path / "whole")
    real = getattr(os, operation)
    for at in range(200):
        calls = iter(range(at))

        def dies(*arguments: Any, calls: Iterator[int] = calls, **named: Any) -> Any:
            if next(calls, None) is None:
                raise SystemExit
            return real(*arguments, **named)

        copy = tmp_path / f"copy{at}"
        with monkeypatch.context() as patch:
            patch.setattr(os, operation, dies)
            patch.setattr(snapshot.shutil, "rmtree", lambda *_, **__: None)
            try:
                take_snapshot(str(tmp_path / "checkpoint"), str(copy))
            except SystemExit:
                if copy.exists():  # only its name had to be brought to the disk
                    assert operation == "open" or operation == "fsync"
                    assert files(copy) == wanted
                continue
        assert files(copy) == wanted
        assert whole.files == len(wanted)
        return
    raise AssertionError("no end")


def test_the_command_says_what_it_made(counted: Plan, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from hintplan.runtime.inspect.command import state_command

    here = str(tmp_path / "checkpoint")
    done = CliRunner().invoke(
        state_command, [here, "--snapshot", str(tmp_path / "a"), "--json"], catch_exceptions=False
    )
    document = json.loads(done.stdout)
    assert document["queries"] == [{"id": "sink_r", "batch": 2}]
    assert document["plan"] == "counted"
    done = CliRunner().invoke(state_command, [here, "--snapshot", str(tmp_path / "b")], catch_exceptions=False)
    assert "sink_r   up to batch 2" in done.stdout
    assert f"{document['files']} files" in done.stdout
    done = CliRunner().invoke(state_command, [str(tmp_path / "b"), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["total"]["rows"] == 4


def test_a_plan_or_a_choice_with_a_snapshot_is_wrong_usage(counted: Plan, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from hintplan.runtime.inspect.command import state_command

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(state_command, list(arguments))
        assert done.exit_code != 0
        return done.output + str(done.exception)

    here = str(tmp_path / "checkpoint")
    assert "--snapshot DIR goes by the checkpoint alone" in said("p.json", "--checkpoint", here, "--snapshot", "x")
    assert "its only option is --json" in said(here, "--snapshot", "x", "--show", "3")
    assert "make the snapshot first" in said(here, "--snapshot", "x", "--compact")
    assert "there is no directory nowhere" in said("nowhere", "--snapshot", "x")
    (tmp_path / "plan.json").write_text("{}")
    assert "Missing option '--checkpoint'" in said(str(tmp_path / "plan.json"))
