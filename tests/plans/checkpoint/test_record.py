"""The record of a checkpoint: what was written comes back, and what was changed since is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.checkpoint.continuation import continuation, record_after, record_of_begun
from hintplan.plans.checkpoint.record import CheckpointRecord, following, local_record, parse_record, record_line
from hintplan.plans.errors import RunError
from tests.sample import sampled

SQL = """
CREATE TABLE o (k BIGINT, v DOUBLE) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE t (k BIGINT, v DOUBLE, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:t.db', 'table-name' = 't');
INSERT INTO t SELECT /*+ STATE_TTL('o' = '1 d') */ k, SUM(v) + 0.1 FROM o GROUP BY k;
"""
BITS = range(8)


def begun() -> CheckpointRecord:
    plan = hintplan.compile_sql(SQL, name="größer")
    first = record_after(continuation(None, plan, partitions=2), None, plan, partitions=2, spark="4.3.0")
    assert first is not None
    return first


def three() -> list[CheckpointRecord]:
    """The lines of a run that began, of its queries, and of a run with other settings."""
    first = begun()
    second = record_of_begun(first)
    assert second is not None
    return [first, second, following(second, replace(second, partitions=3))]


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "hintplan" / "record.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(folder)


def text_of(records: list[CheckpointRecord]) -> str:
    return "".join(record_line(record) + "\n" for record in records)


def unsealed(record: CheckpointRecord) -> str:
    """The line as layout 4 had it, put together here."""
    found = json.loads(record_line(record))
    del found["after"], found["checksum"]
    return json.dumps({**found, "layout": 4})


def test_lines_come_back_as_they_were_written() -> None:
    for record in three():
        back = parse_record([record_line(each) for each in three()[: record.run]], "c")
        assert back == record
        assert back is not None
        assert record_line(back) == record_line(record)
    assert parse_record([], "c") is None
    assert parse_record([record_line(record) for record in reversed(three())], "c") == three()[-1]
    assert parse_record([record_line(record) for record in (*three(), three()[0])], "c") == three()[-1]


@pytest.mark.parametrize("bit", sampled(BITS, keep=1))
def test_no_bit_of_a_record_can_change_in_silence(tmp_path: Path, bit: int) -> None:
    """It is refused; or nothing of it is another, as with a line break that becomes another one."""
    text = text_of(three()).encode()
    silent = []
    for at in range(len(text)):
        changed = bytearray(text)
        changed[at] ^= 1 << bit
        try:
            found = local_record(written(tmp_path, bytes(changed)))
        except RunError:
            continue
        if found != three()[-1]:
            silent.append((at, text[max(0, at - 20) : at + 20]))
    assert silent == []


@pytest.mark.parametrize("bit", sampled(BITS, keep=1))
def test_no_bit_of_older_lines_can_change_after_a_newer_one(tmp_path: Path, bit: int) -> None:
    old = parse_record([unsealed(begun())], "c")
    assert old is not None
    new = following(old, replace(old, partitions=3))
    line, rest = unsealed(begun()).encode(), b"\n" + record_line(new).encode() + b"\n"
    assert local_record(written(tmp_path, line + rest)) == new
    for at in range(len(line)):
        changed = bytearray(line)
        changed[at] ^= 1 << bit
        try:
            assert local_record(written(tmp_path, bytes(changed) + rest)) == new
        except RunError:
            continue
        assert json.loads(bytes(changed)) == json.loads(line)  # the same in other letters, as of an escape


@pytest.mark.parametrize("lost", [0, 1])
def test_a_line_that_is_lost_is_told(lost: int) -> None:
    lines = [record_line(record) for record in three()]
    with pytest.raises(RunError, match="has lost the entry"):
        parse_record(lines[:lost] + lines[lost + 1 :], "c")


def test_a_line_of_another_checkpoint_does_not_follow() -> None:
    first, second, _ = three()
    other = replace(first, partitions=7)
    with pytest.raises(RunError, match="entry number 2 does not follow"):
        parse_record([record_line(other), record_line(second)], "c")
    with pytest.raises(RunError, match="entry number 1 does not follow"):
        parse_record([record_line(replace(first, after="0" * 16))], "c")


def test_a_line_of_the_older_layout_is_gone_on_with_but_does_not_follow_a_newer_one() -> None:
    """The checksum of the older line is that of its text, by whoever counts it."""
    old = parse_record([unsealed(begun())], "c")
    assert old is not None
    assert (old.layout, old.queries, old.document) == (4, begun().queries, begun().document)
    new = record_of_begun(old)
    assert new is not None

    assert json.loads(record_line(new))["after"] == hashlib.sha256(unsealed(begun()).encode()).hexdigest()[:16]
    assert parse_record([unsealed(begun()), record_line(new)], "c") == new
    with pytest.raises(RunError, match="entry number 2 does not follow"):
        parse_record([record_line(begun()), unsealed(three()[1])], "c")
    later = json.dumps({**json.loads(record_line(begun())), "layout": 4})
    with pytest.raises(RunError, match="an entry of layout 4 has a checksum"):
        parse_record([later], "c")


def test_the_same_plan_on_the_older_layout_adds_no_line() -> None:
    plan = hintplan.compile_sql(SQL, name="größer")
    old = parse_record([unsealed(begun())], "c")
    found = continuation(old, plan, partitions=2)
    assert record_after(found, old, plan, partitions=2, spark="4.3.0") is None
    changed = record_after(found, old, plan, partitions=2, spark="4.2.0")
    assert changed is not None
    assert (changed.run, changed.layout) == (2, 5)
