"""Lookups in SQLite: what the jdbc sink wrote, and what other programs did."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.sqlite import SqliteTable
from hintplan.runtime.connectors.jdbc.sqlite_sink import SqliteBatch
from hintplan.runtime.lookup.sources.matching import MOST_ROWS
from hintplan.runtime.types import to_arrow
from tests.connectors.lookup_sources.asking import asked, context, scanned

TYPES = {
    "id": "BIGINT", "b": "BOOLEAN", "i1": "TINYINT", "f": "FLOAT", "d": "DOUBLE", "n": "DECIMAL(20, 4)", "t": "STRING",
    "day": "DATE", "ts": "TIMESTAMP(3)", "tz": "TIMESTAMP_LTZ(0)", "y": "BYTES",
}  # fmt: skip
ROW = (
    2**60, True, -128, 0.5, 0.1, Decimal("1234567890123456.7000"), "é'\"", dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 1, 2, 3, 45000), dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC), b"\x00\xff",
)  # fmt: skip


class Batch:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def toArrow(self) -> pa.Table:
        return self.table


@pytest.fixture
def database(tmp_path):
    """A table as the jdbc sink writes it, with one full and one empty row."""
    path = tmp_path / "sink.db"
    columns = tuple(Column(name=name, type=type_text) for name, type_text in TYPES.items())
    target = SqliteTable(name="t", columns=columns, primary_key=("id",))
    rows = [ROW, (7, *[None] * 10)]
    arrays = [pa.array(v, to_arrow(c.type)) for v, c in zip(zip(*rows, strict=True), columns, strict=True)]
    batch = Batch(pa.table(arrays, names=list(TYPES)))
    SqliteBatch(url=f"jdbc:sqlite:{path}", target=target, credentials=(), checkpoint=None)(batch, 0)
    return path


def options(path, table: str = "t") -> dict[str, str]:
    return {"connector": "jdbc", "url": f"jdbc:sqlite:{path}", "table-name": table}


def made(path, *statements: str):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_what_the_sink_wrote_is_read_back(database):
    with asked("sync", context(options(database), TYPES, keys=["id"])) as ask:
        assert ask((7,), (8,), (2**60,)) == [[(7, *[None] * 10)], [], [ROW]]


@pytest.mark.parametrize("name", [name for name in TYPES if name not in ("f", "d")])
def test_a_key_can_be_of_any_plain_type(database, name):
    with asked("sync", context(options(database), TYPES, keys=[name], columns=["id"])) as ask:
        assert ask((ROW[list(TYPES).index(name)],)) == [[(2**60,)]]


def test_a_key_of_several_columns_finds_all_its_rows(tmp_path):
    path = made(
        tmp_path / "x.db", "CREATE TABLE t (a INT, b TEXT, n INT)",
        "INSERT INTO t VALUES (1, 'x', 1), (1, 'x', 2), (1, 'y', 3), (NULL, 'x', 4)",
    )  # fmt: skip
    where = context(options(path), {"a": "INT", "b": "STRING", "n": "INT"}, keys=["b", "a"], columns=["n"])
    with asked("sync", where) as ask:
        assert ask(("x", 1), ("y", 1), ("z", 1)) == [[(1,), (2,)], [(3,)], []]


def test_a_collation_that_ignores_case_finds_nothing_else(tmp_path):
    path = made(tmp_path / "x.db", "CREATE TABLE t (code TEXT COLLATE NOCASE)", "INSERT INTO t VALUES ('EUR'), ('eur')")
    with asked("sync", context(options(path), {"code": "STRING"}, keys=["code"])) as ask:
        assert ask(("EUR",), ("Eur",)) == [[("EUR",)], []]


def test_decimals_that_other_programs_store_as_numbers_are_found(tmp_path):
    path = made(tmp_path / "x.db", "CREATE TABLE t (p NUMERIC(10, 2), n INT)", "INSERT INTO t VALUES (1.1, 1), (2, 2)")
    with asked("sync", context(options(path), {"p": "DECIMAL(10, 2)", "n": "INT"}, keys=["p"])) as ask:
        assert ask((Decimal("1.10"),), (Decimal("2.00"),)) == [[(Decimal("1.10"), 1)], [(Decimal("2.00"), 2)]]


@pytest.mark.parametrize("key", ["' OR '1'='1", "x'; DROP TABLE t; --", "?", "EUR\0", "", "eur"])
def test_a_key_is_a_value_whatever_it_says(tmp_path, key):
    path = made(tmp_path / "x.db", "CREATE TABLE t (code TEXT)", "INSERT INTO t VALUES ('EUR')")
    with asked("sync", context(options(path), {"code": "STRING"}, keys=["code"])) as ask:
        assert ask((key,), ("EUR",)) == [[], [("EUR",)]]


def test_names_are_identifiers_whatever_they_say(tmp_path):
    path = made(
        tmp_path / "x.db", 'CREATE TABLE "a ""b""; --" ("select" INT, "x"" y" TEXT)',
        """INSERT INTO "a ""b""; --" VALUES (1, 'yes')""",
    )  # fmt: skip
    where = context(options(path, 'a "b"; --'), {"select": "INT", 'x" y': "STRING"}, keys=["select"])
    with asked("sync", where) as ask:
        assert ask((1,)) == [[(1, "yes")]]


def test_a_column_that_is_not_there_is_an_error_and_not_a_text(database):
    """SQLite reads a quoted name of no column as a text, unless it is qualified."""
    with (
        asked("sync", context(options(database), {"id": "BIGINT", "nope": "STRING"}, keys=["id"])) as ask,
        pytest.raises(RunError, match=r"no such column: t\.nope\n  hint: declare the columns as the database has them"),
    ):
        ask((7,))


def test_a_missing_table_and_a_missing_file_are_named(database, tmp_path):
    with (
        asked("sync", context(options(database, "tt"), TYPES, keys=["id"])) as ask,
        pytest.raises(RunError, match=r"no such table: tt\n  hint: check 'table-name'"),
    ):
        ask((7,))
    with (
        asked("sync", context(options(tmp_path / "none.db"), TYPES, keys=["id"])) as ask,
        pytest.raises(RunError, match="hint: check the path in 'url'"),
    ):
        ask((7,))
    assert not (tmp_path / "none.db").exists()


def test_looking_up_cannot_write(database):
    path = made(database, "CREATE TABLE log (x)", "CREATE VIEW v AS SELECT id FROM t")
    before = path.read_bytes()
    with asked("sync", context(options(path, "v"), {"id": "BIGINT"}, keys=["id"])) as ask:
        assert ask((7,)) == [[(7,)]]
    assert path.read_bytes() == before


def test_an_update_is_seen_by_the_next_lookup(database):
    with asked("sync", context(options(database), TYPES, keys=["id"], columns=["t"])) as ask:
        assert ask((7,)) == [[(None,)]]
        made(database, "UPDATE t SET t = 'now' WHERE id = 7")
        assert ask((7,)) == [[("now",)]]


@pytest.mark.parametrize(
    ("stored", "type_text", "message"),
    [
        ("300", "TINYINT", "'300' is out of the range of TINYINT"),
        ("'abc'", "INT", "'abc' is not INT"),
        ("2", "BOOLEAN", "'2' is not BOOLEAN"),
        ("'1.234'", "DECIMAL(5, 2)", "'1.234' does not fit into DECIMAL(5, 2)"),
        ("1700000000", "TIMESTAMP(3)", "'1700000000' is not TIMESTAMP(3)"),
        ("'2024-01-01 00:00:00'", "TIMESTAMP_LTZ(3)", "is not TIMESTAMP_LTZ, as it has no time zone"),
        ("'text'", "BYTES", "'text' is not BYTES"),
    ],
)
def test_a_value_that_does_not_fit_its_column_fails_with_its_name(tmp_path, stored, type_text, message):
    path = made(tmp_path / "x.db", "CREATE TABLE t (k INT, v)", f"INSERT INTO t VALUES (1, {stored})")
    with asked("sync", context(options(path), {"k": "INT", "v": type_text}, keys=["k"])) as ask:
        with pytest.raises(RunError, match="column 'v' in the SQLite database") as caught:
            ask((1,))
        assert message in str(caught.value)


def test_a_scan_reads_every_row_in_portions(tmp_path):
    path = tmp_path / "x.db"
    made(path, "CREATE TABLE t (k INT, v TEXT)")
    connection = sqlite3.connect(path)
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, None if i % 2 else str(i)) for i in range(25)])
    connection.commit()
    connection.close()
    where = context(options(path) | {"scan.fetch-size": "10"}, {"k": "INT", "v": "STRING"})
    assert scanned(where) == [(i, None if i % 2 else str(i)) for i in range(25)]


def test_a_scan_reads_what_the_sink_wrote(database):
    assert sorted(scanned(context(options(database), TYPES))) == [(7, *[None] * 10), ROW]


def test_a_query_that_finds_too_much_is_refused_by_name(tmp_path):
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT {} FROM n"
    path = made(
        tmp_path / "d.db",
        "CREATE TABLE t (k BIGINT)",
        f"INSERT INTO t {numbers.format(MOST_ROWS + 1, 1)}",
        f"INSERT INTO t {numbers.format(MOST_ROWS, 2)}",
    )
    with asked("sync", context(options(path), {"k": "BIGINT"}, keys=["k"])) as ask:
        assert [len(rows) for rows in ask((2,))] == [MOST_ROWS]
        with pytest.raises(RunError, match="more than 1,000,000 rows have the keys of one query"):
            ask((1,))
