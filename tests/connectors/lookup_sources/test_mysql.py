"""Lookups in MariaDB, against a server: types, keys, and what is said when something is wrong."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.sources.failures import SourceUnavailable
from tests.connectors.lookup_sources.asking import asked, context, scanned
from tests.connectors.lookup_sources.servers import PASSWORD

KINDS = {
    "id": "BIGINT", "b": "BOOLEAN", "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "f4": "FLOAT", "f8": "DOUBLE",
    "n": "DECIMAL(10, 4)", "t": "STRING", "v": "VARCHAR(9)", "d": "DATE", "ts": "TIMESTAMP(6)",
    "tz": "TIMESTAMP_LTZ(6)", "y": "BYTES", "j": "ROW<x INT, y ARRAY<STRING>>",
}  # fmt: skip
VALUES = (
    1, True, -128, -32768, 2147483647, 1.2345677614212036, 0.1, Decimal("12.3000"), "ü'\"%s", "v", dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 23, 59, 59, 123456), dt.datetime(2024, 2, 29, 18, 29, 59, 500000, tzinfo=dt.UTC),
    b"\x00\xff", {"x": 1, "y": ["p", None]},
)  # fmt: skip


@pytest.fixture(scope="module")
def server(mariadb):
    mariadb.execute(
        "DROP DATABASE shop",
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "USE shop",
        "CREATE TABLE rates (code varchar(9) PRIMARY KEY, rate decimal(10, 4)) COLLATE utf8mb4_general_ci",
        "INSERT INTO rates VALUES ('EUR', 1.08), ('USD', 1), ('XXX', NULL)",
        "CREATE TABLE visits (who int, place varchar(20), at timestamp(6) NULL, n bigint)",
        "INSERT INTO visits VALUES (1, 'a', '2024-01-01 10:00', 1), (1, 'a', NULL, 2), (1, 'b', NULL, 3),"
        " (2, 'a', NULL, 4), (NULL, 'a', NULL, 5)",
        """CREATE TABLE kinds (id bigint, b tinyint(1), i1 tinyint, i2 smallint, i4 int, f4 float, f8 double,
           n decimal(10, 2), t longtext, v varchar(9), d date, ts datetime(6), tz timestamp(6) NULL, y blob, j json)""",
        """INSERT INTO kinds VALUES (1, true, -128, -32768, 2147483647, 1.2345678, 0.1, 12.30, 'ü''"%s', 'v',
           '2024-02-29', '2024-02-29 23:59:59.123456', '2024-02-29 18:29:59.5', x'00ff',
           '{"x": 1, "y": ["p", null]}')""",
        "INSERT INTO kinds (id) VALUES (2)",
        "CREATE TABLE wide (a bigint, b int unsigned, c time, d decimal(10, 3))",
        "INSERT INTO wide VALUES (1, 1, '10:00', 1.005)",
    )  # fmt: skip
    return mariadb


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)


def options(server, table: str, **more: str) -> dict[str, str]:
    return {
        "connector": "jdbc", "url": server.url, "table-name": table, "username": "hintplan",
        "password": "${env:SHOP_PASSWORD}",
    } | {name.replace("_", "."): value for name, value in more.items()}  # fmt: skip


def test_keys_are_compared_as_the_plan_compares_them_whatever_the_collation(server):
    rates = {"code": "STRING", "rate": "DECIMAL(10, 4)"}
    with asked("sync", context(options(server, "rates"), rates, keys=["code"])) as ask:
        found = ask(("EUR",), ("eur",), ("EUR ",), ("XXX",), ("nope",), ("%s'\\",))
    assert found == [[("EUR", Decimal("1.0800"))], [], [], [("XXX", None)], [], []]


def test_several_key_columns_and_several_rows_of_a_key(server):
    declared = {"who": "INT", "place": "STRING", "at": "TIMESTAMP_LTZ(3)", "n": "BIGINT"}
    where = context(options(server, "visits"), declared, keys=["who", "place"], columns=["n"])
    with asked("sync", where) as ask:
        one, two, none = ask((1, "a"), (2, "a"), (3, "a"))
    assert (sorted(one), two, none) == ([(1,), (2,)], [(4,)], [])
    where = context(options(server, "visits"), declared, keys=["at"], columns=["n"])
    with asked("sync", where) as ask:
        assert ask((dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC),)) == [[(1,)]]


def test_values_of_every_type(server):
    where = context(options(server, "kinds"), KINDS, keys=["id"])
    with asked("sync", where) as ask:
        assert ask((1,), (2,)) == [[VALUES], [(2, *[None] * (len(KINDS) - 1))]]
    assert sorted(scanned(where), key=str) == sorted([VALUES, (2, *[None] * (len(KINDS) - 1))], key=str)


@pytest.mark.parametrize(
    ("column", "type_", "said"),
    [
        ("a", "INT", "column 'a' is INT here, but bigint(20) in MySQL"),
        ("b", "BIGINT", "column 'b' is BIGINT here, but int(10) unsigned in MySQL"),
        ("c", "STRING", "column 'c' is STRING here, but time in MySQL"),
        ("d", "DECIMAL(10, 2)", "column 'd' in MySQL holds a value that does not fit"),
        ("nope", "INT", "the table has no column 'nope'"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(server, column, type_, said):
    declared = {"a": "BIGINT"} | {column: type_}
    with (
        asked("sync", context(options(server, "wide"), declared, keys=["a"])) as ask,
        pytest.raises(RunError) as caught,
    ):
        ask((1,))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"table-name": "gone"}, RunError, "MySQL refused a lookup: "),
        ({"username": "nobody"}, RunError, "MySQL refused a lookup: .*Access denied for user 'nobody'"),
        ({"url": "jdbc:mysql://127.0.0.1:1/shop"}, SourceUnavailable, "MySQL did not answer a lookup: "),
    ],
)
def test_failures_that_pass_and_failures_that_stay(server, changed, error, said):
    where = context(options(server, "wide") | changed, {"a": "BIGINT"}, keys=["a"])
    with asked("sync", where) as ask, pytest.raises(error, match=said):
        ask((1,))


def test_a_lookup_goes_on_after_its_connection_was_lost(server):
    rates = {"code": "STRING", "rate": "DECIMAL(10, 4)"}
    with asked("sync", context(options(server, "rates"), rates, keys=["code"])) as ask:
        assert ask(("USD",)) == [[("USD", Decimal("1.0000"))]]
        server.kill()
        server.start()
        with pytest.raises(SourceUnavailable):
            ask(("USD",))
        assert ask(("USD",)) == [[("USD", Decimal("1.0000"))]]
