"""Conditions that a database is asked for: no row is lost that Spark would keep, and no more come than have to.

What Spark makes of each condition, over all rows of the table, is what must come out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan import compile_sql
from hintplan.plans.declarations.tables import Column, Table
from hintplan.plans.operators import Calc, Scan
from hintplan.runtime.batch.session import Session
from hintplan.runtime.connectors.jdbc.scan import TableScan
from hintplan.runtime.connectors.table import lookup_source, read_batch
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.expressions.source_filter import compile_asked
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.run.execute import execute
from tests.connectors.servers.databases import Database
from tests.connectors.servers.test_server_scans import ask
from tests.connectors.servers.test_server_sinks import POLICY, table
from tests.runtime.expressions.checking import checked_over

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

COLUMNS = (
    ("id", "INT"), ("i1", "TINYINT"), ("i2", "SMALLINT"), ("i4", "INT"), ("i8", "BIGINT"), ("n", "DECIMAL(20, 4)"),
    ("f8", "DOUBLE"), ("s", "STRING"), ("v", "VARCHAR(9)"), ("d", "DATE"), ("t", "TIMESTAMP(3)"), ("b", "BOOLEAN"),
    ("f4", "FLOAT"), ("y", "BYTES"), ("z", "TIMESTAMP_LTZ(6)"),
)  # fmt: skip
STORED = {
    "PostgreSQL": "id INTEGER, i1 SMALLINT, i2 SMALLINT, i4 INTEGER, i8 BIGINT, n NUMERIC(20, 4), "
    "f8 DOUBLE PRECISION, s TEXT, v VARCHAR(9), d DATE, t TIMESTAMP(6), b BOOLEAN, f4 REAL, y BYTEA, z TIMESTAMPTZ",
    "MySQL": "id INTEGER, i1 TINYINT, i2 SMALLINT, i4 INTEGER, i8 BIGINT, n DECIMAL(20, 4), f8 DOUBLE, "
    "s TEXT COLLATE utf8mb4_general_ci, v VARCHAR(9) COLLATE utf8mb4_general_ci, d DATE, t DATETIME(6), b TINYINT, "
    "f4 FLOAT, y BLOB, z DATETIME(6)",
}
ROWS = [
    "0, 0, 0, 0, 0.5, 0.1, 'a', 'a', '2024-02-29', '2024-02-29 12:00:00.123', {true}, 0.1, {y}, '2024-02-29 12:00:00'",
    "1, 1, 1, 1, 1.5, 1, 'A', 'A', '2024-03-01', '2024-02-29 12:00:00.123456', {false}, 1, {y}, '2024-03-01 00:00:00'",
    "-1, -1, -1, -1, -0.0001, -1e300, 'a ', 'a ', '1583-01-01', '1900-01-01', {true}, 2, {y}, '1971-01-01 00:00:00'",
    "127, 32767, 2147483647, 9223372036854775807, 1234567890123456.7891, 9007199254740993, 'ä', 'ä', '9999-12-31', "
    "'9999-12-31 23:59:59', {false}, 3.5, {y}, '2038-01-01 00:00:00'",
    "2, 2, 2, 9007199254740993, 2, 2, '', '', '2024-01-01', '2024-01-01', {true}, 4, {y}, '2024-01-01 00:00:00'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
]
VALUES = {
    **dict.fromkeys(("i1", "i2", "i4"), ("0", "1", "-1", "1.5", "200", "3000000000")),
    "i8": ("0", "9223372036854775807", "9007199254740992", "9007199254740993", "0.5"),
    "n": ("0.5", "2", "-0.0001", "1234567890123456.7891", "0.00005"),
    "f8": ("0.1", "1", "-1E300", "9007199254740993", "1.0"),
    **dict.fromkeys(("s", "v"), ("'a'", "'A'", "'ä'", "''", "'x''\\%s'")),
    "d": ("DATE '2024-02-29'", "DATE '1583-01-01'", "DATE '9999-12-31'", "DATE '0001-01-01'"),
    "t": (
        "TIMESTAMP '2024-02-29 12:00:00.123'",
        "TIMESTAMP '1900-01-01 00:00:00'",
        "TIMESTAMP '2024-02-29 12:00:00.1235'",
    ),
}  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
INEXACT = ("s", "v")
"""Of texts more may come: MySQL's collation takes ``a``, ``A`` and ``ä`` for equal."""


def conditions() -> list[tuple[str, str]]:
    """Each with the column that it is about."""
    found = [(name, f"{name} IS {what}") for name, _ in COLUMNS for what in ("NULL", "NOT NULL")]
    for name, values in VALUES.items():
        comparisons = ("=",) if name in INEXACT else COMPARISONS
        found += [(name, f"{name} {each} {value}") for each in comparisons for value in values]
        found += [(name, f"{name} IN ({', '.join(values)})"), (name, f"{name} IN ({values[0]}, {values[2]})")]
        found += [] if name in INEXACT else [(name, f"{name} BETWEEN {values[1]} AND {values[0]}")]
        found += [] if name in INEXACT else [(name, f"{name} BETWEEN {values[0]} AND {values[-1]}")]
    found += [
        ("i4", "i4 > 0 AND n > 1"), ("i4", "i4 > 1 OR d IS NULL"), ("i4", "(i4 = 1 AND i8 = 1) OR (i4 = 2 OR n < 0)"),
        ("i4", "0 < i4 AND (f8 = 1 OR t IS NULL)"), ("s", "s = 'a' OR i4 = 2"), ("i4", "i4 = 1 AND s = 'A'"),
    ]  # fmt: skip
    return found


@cache
def compiled() -> tuple[tuple[str, PushedFilter, str], ...]:
    """For each condition: its column, what the source is asked for, and the filter of the calc."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    found = []
    for name, condition in conditions():
        plan = compile_sql(
            "SET 'execution.runtime-mode' = 'batch';"
            f"CREATE TABLE t ({columns}) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://h/d', 'table-name' = 't');"
            "CREATE TABLE o (id INT) WITH ('connector' = 'print');"
            f"INSERT INTO o SELECT id FROM t WHERE {condition};",
            name="job",
        )
        (scan,) = (each for each in plan.operators if isinstance(each, Scan))
        (calc,) = (each for each in plan.operators if isinstance(each, Calc))
        assert scan.filter is not None, condition
        assert calc.filter is not None
        found.append((name, compile_asked(checked_over(scan.filter, dict(COLUMNS)), dict(COLUMNS)), calc.filter))
    return tuple(found)


@pytest.fixture
def source(database: Database) -> Table:
    words = {"true": "TRUE", "false": "FALSE", "y": "'x'"}
    database.execute(f"CREATE TABLE t ({STORED[database.title]})")
    for number, row in enumerate(ROWS):
        database.execute(f"INSERT INTO t VALUES ({number}, {row.format(**words)})")
    return table(database, "t", *COLUMNS)


def sent(source: Table, pushed_filter: PushedFilter | None) -> list[int]:
    """The ids of the rows that the database sends, in order."""
    columns = tuple(Column(name=column.name, type=column.type) for column in source.columns)
    context = LookupContext(table="t", options=source.options, keys=(), columns=columns, declared=columns)
    scan = TableScan(context=context, source=lookup_source(source.options), parts=(None,), pushed_filter=pushed_filter)
    return sorted(row for batch in scan._read(0) for row in batch.column("id").to_pylist())


def test_every_condition_keeps_what_spark_keeps(spark: SparkSession, source: Table, database: Database) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    names = tuple(name for name, _ in COLUMNS)
    all_rows = read_batch(spark, "t", source, names)
    answers = all_rows.select("id", *(F.expr(text).alias(f"c{at}") for at, (*_, text) in enumerate(compiled())))
    rows = answers.collect()
    kept = [sorted(row["id"] for row in rows if row[f"c{at}"]) for at in range(len(compiled()))]
    assert sent(source, None) == list(range(len(ROWS)))
    wider = 0
    for (name, pushed_filter, text), right in zip(compiled(), kept, strict=True):
        found = sent(source, pushed_filter)
        if name in INEXACT and database.title == "MySQL":
            assert set(found) >= set(right), text
            wider += len(found) > len(right)
        else:
            assert found == right, text
    assert (wider > 0) == (database.title == "MySQL")
    assert any(0 < len(right) < len(ROWS) for right in kept)


JOB = """
SET 'execution.runtime-mode' = '{mode}';
CREATE TABLE t (id INT, s STRING, n DECIMAL(20, 4)) WITH ({options}, 'table-name' = 't');
CREATE TABLE o (s STRING, total DECIMAL(38, 4), PRIMARY KEY (s) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{at}/out.db', 'table-name' = 'o');
INSERT INTO o SELECT s, SUM(n) FROM t WHERE id BETWEEN 10 AND 19 AND s IN ('x', 'y') GROUP BY s;
"""


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("parts", [False, True])
def test_a_job_reads_the_rows_that_it_asks_for(
    spark: SparkSession, database: Database, tmp_path: Path, mode: str, parts: bool
) -> None:
    database.execute("CREATE TABLE t (id INTEGER, s VARCHAR(5), n NUMERIC(20, 4))")
    database.execute("INSERT INTO t VALUES " + ", ".join(f"({n}, '{'xyz'[n % 3]}', {n})" for n in range(1000)))
    options = dict(database.options)
    if parts:
        options |= {"scan.partition.column": "id", "scan.partition.num": "2"}
        options |= {"scan.partition.lower-bound": "0", "scan.partition.upper-bound": "14"}
    texts = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    plan = compile_sql(JOB.format(mode=mode, options=texts, at=tmp_path), name="job")
    (scan,) = (each for each in plan.operators if isinstance(each, Scan))
    assert scan.filter == "id BETWEEN 10 AND 19 AND s IN ('x', 'y')"
    before = rows_sent(database)
    if mode == "batch":
        with Session(spark, policy=POLICY) as session:
            session.execute(plan).await_termination()
    else:
        execute(plan, spark, checkpoint=str(tmp_path / "c"), once=True, policy=POLICY).await_termination()
    # 12, 15 and 18 are 'x', 10, 13, 16 and 19 are 'y'.
    right = [("x", "45.0000"), ("y", "58.0000")]
    assert ask(tmp_path / "out.db", "SELECT s, total FROM o ORDER BY s") == (
        [("x", "12.0000"), ("y", "23.0000")] if parts else right
    )
    if before is not None:
        # Besides, the server is asked for its columns and settings: some rows, and not a thousand.
        assert rows_sent(database) - before < 60


def rows_sent(database: Database) -> int | None:
    """How many rows the server has sent to all clients; None if it does not count them."""
    if database.title != "MySQL":
        return None
    ((_, value),) = database.rows("SHOW GLOBAL STATUS LIKE 'Rows_sent'")
    return int(value)
