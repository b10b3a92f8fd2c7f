"""What the formats of files take and refuse, where SQL is compiled."""

from __future__ import annotations

import re

import pytest

from hintplan import compile_sql
from hintplan.plans.errors import Diagnostic, SqlError


@pytest.mark.parametrize(
    ("columns", "chosen", "message"),
    [
        ("a TIMESTAMP_LTZ(3)", "orc", "a file of orc cannot hold column 'a' of type TIMESTAMP_LTZ(3)"),
        ("a ROW<t TIMESTAMP_LTZ(3)>", "orc", "a file of orc cannot hold column 'a'"),
        ("a TIMESTAMP(6)", "avro", "Flink maps no TIMESTAMP(6) to its times"),
        ("a ARRAY<TIMESTAMP_LTZ(3)>", "avro", "Flink maps no TIMESTAMP_LTZ(3) to its times"),
        ("a MULTISET<STRING>", "orc", "a file of orc cannot hold column 'a' of type MULTISET<STRING>"),
        ("a ROW<m MULTISET<STRING>>", "avro", "a file of avro cannot hold column 'a'"),
        ("a MAP<INT, INT>", "json", "has a MAP whose keys are no text"),
        ("a MAP<INT, INT>", "avro", "keys of a MAP are text"),
        ("`a b` INT", "avro", "a file of avro cannot have a field 'a b'"),
        ("a ROW<`x y` INT>", "avro", "a file of avro cannot have a field 'x y'"),
        ("a INT", "raw", "a file of raw cannot hold column 'a' of type INT"),
        ("a STRING, b STRING", "raw", "a file of raw is one column, a line each, and there are 2: a, b"),
    ],
)
def test_columns_that_a_format_cannot_hold_are_refused(columns: str, chosen: str, message: str) -> None:
    with pytest.raises(SqlError, match=re.escape(message)):
        compile_sql(
            f"CREATE TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = '/o', 'format' = '{chosen}');"
        )


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("sink.rolling-policy.file-size", "a sink closes its files at the end of each micro-batch"),
        ("auto-compaction", "files are left as they were written"),
        ("compaction.file-size", "files are left as they were written"),
        ("source.monitor-interval", "a stream looks for new files before each micro-batch"),
    ],
)
def test_what_changes_no_row_is_noted_with_the_reason(option: str, reason: str) -> None:
    notes: list[Diagnostic] = []
    compile_sql(
        "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '/o', 'format' = 'json', "
        f"'{option}' = 'x'); CREATE TABLE s (a INT) WITH ('connector' = 'print'); INSERT INTO s SELECT a FROM t;",
        on_warning=notes.append,
    )
    assert [note.message.startswith(f"'{option}' has no effect: {reason}") for note in notes] == [True]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("sink.partition-commit.policy.class", "each micro-batch commits the partitions"),
        ("sink.partition-commit.watermark-time-zone", "each micro-batch commits the partitions"),
        ("partition.time-extractor.kind", "each micro-batch commits the partitions"),
        ("parquet.block.size", "the only setting of Parquet that is supported is 'parquet.compression'"),
        ("orc.stripe.size", "the only setting of ORC that is supported is 'orc.compress'"),
    ],
)
def test_what_flink_has_besides_is_refused_with_the_reason(option: str, reason: str) -> None:
    with pytest.raises(SqlError, match=re.escape(f"'{option}' is not supported: {reason}")):
        compile_sql(
            "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '/o', 'format' = 'json', "
            f"'{option}' = 'x');"
        )
