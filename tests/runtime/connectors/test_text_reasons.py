"""The reasons of the plan for which Spark reads a text file agree with the kernels that read blocks."""

from __future__ import annotations

import pytest

from hintplan.plans.connectors.table import why_spark_reads
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.filesystem.text_blocks import block_reader

REASONS = {
    **dict.fromkeys(["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 18)"]),
    **dict.fromkeys(["STRING", "CHAR(3)", "VARCHAR(3)", "BYTES", "BINARY(3)", "VARBINARY(3)", "DATE"]),
    **dict.fromkeys(["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "BIGINT NOT NULL"]),
    "TIME": "TIME column c",
    "DECIMAL(38, 19)": "DECIMAL(38, 19) column c",
    "ARRAY<INT>": "nested column c",
    "MAP<STRING, INT>": "nested column c",
    "ROW<a INT>": "nested column c",
    "MULTISET<INT>": "nested column c",
}
"""The reason for a column of each type."""


def table(kind: str, **options: str) -> Table:
    return Table(
        columns=(TableColumn(name="i", type="INT"), TableColumn(name="c", type=kind)),
        options={"connector": "filesystem", "format": "json", "path": "/t", **options},
    )


@pytest.mark.parametrize(("kind", "reason"), REASONS.items())
def test_the_plan_gives_a_reason_where_the_kernels_read_no_blocks(kind: str, reason: str | None) -> None:
    for columns in (("c",), ("i", "c")):
        assert why_spark_reads(table(kind), columns) == reason
        assert (block_reader(table(kind), columns) is None) == (reason is not None)
    assert block_reader(table(kind), ("i",)) is not None
    assert kind == "TIME" or why_spark_reads(table(kind), ("i",)) is None


@pytest.mark.parametrize(("kind", "reason"), REASONS.items())
def test_each_column_counts_if_parse_errors_are_ignored(kind: str, reason: str | None) -> None:
    lenient = table(kind, **{"json.ignore-parse-errors": "TRUE"})
    for columns in (("c",), ("i", "c"), ("i",)):
        assert why_spark_reads(lenient, columns) == reason
        assert (block_reader(lenient, columns) is None) == (reason is not None)
    assert why_spark_reads(lenient, ()) == reason or "no column of the files is read"


def test_reasons_that_do_not_depend_on_types() -> None:
    assert why_spark_reads(table("INT"), ()) == "no column of the files is read"
    changes = table("INT", **{"source.changelog": "true"})
    assert why_spark_reads(changes, ()) is None
    assert block_reader(changes, ()) is not None
    corrupt = Table(
        columns=(TableColumn(name="i", type="INT"), TableColumn(name="_corrupt_record", type="STRING")),
        options={"connector": "filesystem", "format": "json", "path": "/t"},
    )
    assert why_spark_reads(corrupt, ("i",)) == "column _corrupt_record"
    assert block_reader(corrupt, ("i",)) is None
