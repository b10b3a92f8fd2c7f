"""Lookups in PostgreSQL, against a server: types, keys, sessions, and what is said when something is wrong."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.sources.failures import SourceUnavailable
from hintplan.runtime.lookup.sources.matching import MOST_ROWS
from tests.connectors.lookup_sources.asking import asked, context, opened, scanned
from tests.connectors.lookup_sources.servers import PASSWORD

MODES = ("sync", "async")
RATES = {"code": "STRING", "rate": "DECIMAL(10, 4)"}


@pytest.fixture(scope="module")
def server(postgres):
    postgres.execute(
        "CREATE TABLE rates (code text PRIMARY KEY, rate numeric(10, 4))",
        "INSERT INTO rates VALUES ('EUR', 1.08), ('USD', 1), ('XXX', NULL)",
        "CREATE TABLE visits (who int, place varchar(20), at timestamptz, n bigint)",
        "INSERT INTO visits VALUES (1, 'a', '2024-01-01 12:00+02', 1), (1, 'a', '2024-01-02 12:00Z', 2),"
        " (1, 'b', NULL, 3), (2, 'a', NULL, 4), (NULL, 'a', NULL, 5)",
        """CREATE TABLE kinds (id int8, b bool, i2 int2, i4 int4, f4 float4, f8 float8, n numeric, t text, v varchar(9),
           c char(4), d date, ts timestamp, tz timestamptz, y bytea, u uuid, j jsonb, a int[])""",
        """INSERT INTO kinds VALUES (1, true, -32768, 2147483647, 1.5, 0.1, 12.30, 'ü''"', 'v', 'ab', '2024-02-29',
           '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.5+05:30', '\\x00ff',
           'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"x": 1, "y": ["p", null]}', '{1,2}')""",
        "INSERT INTO kinds (id) VALUES (2)",
        "CREATE TABLE crowded (k int)",
        f"INSERT INTO crowded SELECT 1 FROM generate_series(1, {MOST_ROWS + 1})",
        f"INSERT INTO crowded SELECT 2 FROM generate_series(1, {MOST_ROWS})",
    )
    return postgres


@pytest.fixture
def password(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)


def options(server, table: str, **more: str) -> dict[str, str]:
    return {
        "connector": "jdbc", "url": server.url, "table-name": table, "username": "hintplan",
        "password": "${env:SHOP_PASSWORD}",
    } | {name.replace("_", "."): value for name, value in more.items()}  # fmt: skip


def tried_again(ask, *keys: tuple) -> list:
    """As the engine does with the default of lookup.max-retries, on a machine that may be slow."""
    for _ in range(3):
        try:
            return ask(*keys)
        except SourceUnavailable:
            continue
    return ask(*keys)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("password")
class TestLookups:
    def test_many_keys_are_answered_in_the_order_of_the_keys(self, server, mode):
        with asked(mode, context(options(server, "rates"), RATES, keys=["code"])) as ask:
            found = ask(("USD",), ("none",), ("EUR",), ("XXX",))
        assert found == [[("USD", Decimal(1))], [], [("EUR", Decimal("1.08"))], [("XXX", None)]]

    @pytest.mark.part(of=2)
    def test_a_query_that_finds_too_much_is_refused_by_name(self, server, mode):
        with asked(mode, context(options(server, "crowded"), {"k": "INT"}, keys=["k"])) as ask:
            assert [len(rows) for rows in ask((2,))] == [MOST_ROWS]
            with pytest.raises(RunError, match="more than 1,000,000 rows have the keys of one query"):
                ask((1,))

    def test_only_wanted_columns_come_even_without_the_key(self, server, mode):
        with asked(mode, context(options(server, "rates"), RATES, keys=["code"], columns=["rate"])) as ask:
            assert ask(("EUR",), ("none",)) == [[(Decimal("1.0800"),)], []]

    def test_a_key_of_two_columns_finds_all_its_rows(self, server, mode):
        columns = {"who": "INT", "place": "STRING", "at": "TIMESTAMP_LTZ(3)", "n": "BIGINT"}
        with asked(mode, context(options(server, "visits"), columns, keys=["who", "place"])) as ask:
            first, second, third = ask((1, "a"), (2, "b"), (1, "b"))
        noon = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
        assert sorted(first) == [(1, "a", noon, 1), (1, "a", noon + dt.timedelta(days=1, hours=2), 2)]
        assert (second, third) == ([], [(1, "b", None, 3)])

    def test_every_type_comes_as_declared(self, server, mode):
        columns = {
            "id": "BIGINT", "b": "BOOLEAN", "i2": "SMALLINT", "i4": "INT", "f4": "FLOAT", "f8": "DOUBLE",
            "n": "DECIMAL(10, 2)", "t": "STRING", "v": "VARCHAR(9)", "c": "CHAR(4)", "d": "DATE",
            "ts": "TIMESTAMP(6)", "tz": "TIMESTAMP_LTZ(6)", "y": "BYTES", "u": "STRING",
            "j": "ROW<x INT, y ARRAY<STRING>>", "a": "STRING",
        }  # fmt: skip
        with asked(mode, context(options(server, "kinds"), columns, keys=["id"])) as ask:
            (found,), (empty,) = ask((1,), (2,))
        assert found == (
            1, True, -32768, 2147483647, 1.5, 0.1, Decimal("12.30"), "ü'\"", "v", "ab", dt.date(2024, 2, 29),
            dt.datetime(2024, 2, 29, 23, 59, 59, 123456),
            dt.datetime(2024, 2, 29, 18, 29, 59, 500000, tzinfo=dt.UTC), b"\x00\xff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", {"x": 1, "y": ["p", None]}, "{1,2}",
        )  # fmt: skip
        assert empty == (2, *[None] * 16)

    @pytest.mark.parametrize(
        ("column", "type_text", "key"),
        [
            ("b", "BOOLEAN", True),
            ("i2", "TINYINT", None),
            ("i2", "SMALLINT", -32768),
            ("i4", "BIGINT", 2147483647),
            ("f4", "FLOAT", 1.5),
            ("f8", "DOUBLE", 0.1),
            ("n", "DECIMAL(10, 2)", Decimal("12.30")),
            ("t", "STRING", "ü'\""),
            ("v", "VARCHAR(9)", "v"),
            ("c", "CHAR(4)", "ab"),
            ("d", "DATE", dt.date(2024, 2, 29)),
            ("ts", "TIMESTAMP(6)", dt.datetime(2024, 2, 29, 23, 59, 59, 123456)),
            ("tz", "TIMESTAMP_LTZ(3)", dt.datetime(2024, 2, 29, 18, 29, 59, 500000, tzinfo=dt.UTC)),
            ("y", "BYTES", b"\x00\xff"),
            ("u", "STRING", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ],
    )
    def test_a_key_can_be_of_any_plain_type(self, server, mode, column, type_text, key):
        columns = {"id": "BIGINT", column: type_text}
        with asked(mode, context(options(server, "kinds"), columns, keys=[column], columns=["id"])) as ask:
            assert ask((5 if key is None else key,)) == [[] if key is None else [(1,)]]

    @pytest.mark.parametrize(
        "key",
        ["' OR '1'='1", "x'; DROP TABLE rates; --", "%s", "{EUR,USD}", '","', "\\", "NULL", "EUR\0", "", "eur", "EUR "],
    )
    def test_a_key_is_a_value_whatever_it_says(self, server, mode, key):
        with asked(mode, context(options(server, "rates"), RATES, keys=["code"])) as ask:
            assert ask((key,), ("USD",)) == [[], [("USD", Decimal(1))]]

    def test_a_text_that_is_no_uuid_is_not_found(self, server, mode):
        columns = {"u": "STRING", "id": "BIGINT"}
        with asked(mode, context(options(server, "kinds"), columns, keys=["u"])) as ask:
            assert ask(("x",), ("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",)) == [[], []]

    def test_names_are_identifiers_whatever_they_say(self, server, mode):
        server.execute(
            'CREATE SCHEMA IF NOT EXISTS "odd; --"',
            'CREATE TABLE IF NOT EXISTS "odd; --"."a ""b"".c" ("select" int, "x"" y" text, "%s" text)',
            'TRUNCATE "odd; --"."a ""b"".c"',
            """INSERT INTO "odd; --"."a ""b"".c" VALUES (1, 'yes', 'percent')""",
        )
        columns = {"select": "INT", 'x" y': "STRING", "%s": "STRING"}
        where = context(options(server, '"odd; --"."a ""b"".c"'), columns, keys=["select"])
        with asked(mode, where) as ask:
            assert ask((1,)) == [[(1, "yes", "percent")]]

    def test_a_column_name_that_is_sql_is_not_run(self, server, mode):
        columns = {"code": "STRING", "rate FROM rates; DROP TABLE rates; --": "STRING"}
        with (
            asked(mode, context(options(server, "rates"), columns, keys=["code"])) as ask,
            pytest.raises(RunError, match=r"column t\.rate FROM rates; DROP TABLE rates; -- does not exist"),
        ):
            ask(("EUR",))

    def test_an_update_is_seen_by_the_next_lookup(self, server, mode):
        server.execute("CREATE TABLE IF NOT EXISTS live (k int, v int)", "TRUNCATE live")
        with asked(mode, context(options(server, "live"), {"k": "INT", "v": "INT"}, keys=["k"])) as ask:
            assert ask((1,)) == [[]]
            server.execute("INSERT INTO live VALUES (1, 10)")
            assert ask((1,)) == [[(1, 10)]]
            server.execute("UPDATE live SET v = 11")
            assert ask((1,)) == [[(1, 11)]]

    def test_a_missing_table_is_named_with_what_to_check(self, server, mode):
        with (
            asked(mode, context(options(server, "ratse"), RATES, keys=["code"])) as ask,
            pytest.raises(RunError, match=r'tables\.t: PostgreSQL refused a lookup: relation "ratse" does not exist\n  '
                          "hint: check 'table-name'"),
        ):  # fmt: skip
            ask(("EUR",))

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"username": "nobody"}, "password authentication failed for user"),
            ({"url": "/nowhere"}, 'database "nowhere" does not exist'),
        ],
    )
    def test_a_server_that_refuses_the_user_or_the_database_is_not_asked_again(self, server, mode, changed, said):
        if "url" in changed:
            changed = {"url": server.url.removesuffix("/shop") + changed["url"]}
        with asked(mode, context(options(server, "rates") | changed, RATES, keys=["code"])) as ask:
            with pytest.raises(RunError, match=f"tables.t: PostgreSQL refused a connection: .*{said}") as caught:
                ask(("EUR",))
            assert "check 'username', the variable that 'password' refers to" in str(caught.value)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"id": "INT"}, "column 'id' is INT here, but int8 in PostgreSQL\n  hint: declare it BIGINT"),
            ({"id": "BIGINT", "t": "BIGINT"}, "column 't' is BIGINT here, but text in PostgreSQL"),
            ({"id": "BIGINT", "tz": "TIMESTAMP(3)"}, "declare it TIMESTAMP_LTZ(6)"),
            ({"id": "BIGINT", "a": "ARRAY<INT>"}, "read it from a json column, or as STRING"),
        ],
    )
    def test_a_type_that_would_lose_something_is_refused(self, server, mode, columns, message):
        with asked(mode, context(options(server, "kinds"), columns, keys=["id"])) as ask:
            with pytest.raises(RunError) as caught:
                ask((1,))
            assert message in str(caught.value)

    def test_a_number_that_does_not_fit_is_refused(self, server, mode):
        columns = {"id": "BIGINT", "n": "DECIMAL(3, 2)"}
        with (
            asked(mode, context(options(server, "kinds"), columns, keys=["id"])) as ask,
            pytest.raises(RunError, match=r"column 'n' in PostgreSQL .*'12.30' does not fit into DECIMAL\(3, 2\)"),
        ):
            ask((1,))

    def test_a_key_of_a_type_that_texts_do_not_index_is_refused(self, server, mode):
        with (
            asked(mode, context(options(server, "kinds"), {"j": "STRING"}, keys=["j"])) as ask,
            pytest.raises(RunError, match="look up by a column of a text type"),
        ):
            ask(("{}",))

    def test_the_session_cannot_write(self, server, mode):
        server.execute(
            "CREATE OR REPLACE FUNCTION stain() RETURNS int LANGUAGE sql AS 'INSERT INTO rates VALUES (''ZZZ'', 0) "
            "RETURNING 1'",
            "CREATE OR REPLACE VIEW staining AS SELECT stain() AS k",
        )
        with (
            asked(mode, context(options(server, "staining"), {"k": "INT"}, keys=["k"])) as ask,
            pytest.raises(RunError, match="cannot execute INSERT in a read-only transaction"),
        ):
            ask((1,))

    def test_a_statement_that_takes_too_long_is_ended_and_may_be_tried_again(self, server, mode):
        server.execute("CREATE OR REPLACE VIEW slow AS SELECT 1 AS k FROM pg_sleep(60)")
        where = context(options(server, "slow", statement_timeout="50 ms"), {"k": "INT"}, keys=["k"])
        with asked(mode, where) as ask, pytest.raises(SourceUnavailable, match="ended a lookup after 50 ms"):
            ask((1,))

    def test_a_wrong_password_is_said_but_not_repeated(self, server, mode, monkeypatch):
        monkeypatch.setenv("SHOP_PASSWORD", "wrong-battery-8")
        with asked(mode, context(options(server, "rates"), RATES, keys=["code"])) as ask:
            with pytest.raises(RunError, match="password authentication failed for user") as caught:
                ask(("EUR",))
            assert "wrong-battery-8" not in str(caught.value)
            assert caught.value.__suppress_context__

    def test_what_came_from_the_environment_is_not_in_messages(self, server, mode, monkeypatch):
        monkeypatch.setenv("SHOP_USER", "secret-user-9")
        where = context(options(server, "rates") | {"username": "${env:SHOP_USER}"}, RATES, keys=["code"])
        with asked(mode, where) as ask:
            with pytest.raises(RunError, match="authentication failed") as caught:
                ask(("EUR",))
            assert "secret-user-9" not in str(caught.value)
            assert "${env:SHOP_USER}" in str(caught.value)

    def test_a_server_that_is_stopped_and_started_answers_again(self, server, mode):
        with asked(mode, context(options(server, "rates", connection_timeout="2 s"), RATES, keys=["code"])) as ask:
            assert ask(("USD",)) == [[("USD", Decimal(1))]]
            server.stop()
            try:
                with pytest.raises(SourceUnavailable):
                    ask(("USD",))
                with pytest.raises(SourceUnavailable, match=r"Connection refused|closed the connection unexpectedly"):
                    ask(("USD",))
            finally:
                server.start()
            assert tried_again(ask, ("USD",)) == [[("USD", Decimal(1))]]


@pytest.mark.usefixtures("password")
def test_many_lookups_share_the_connections_of_the_pool(server):
    import asyncio

    where = context(options(server, "rates", **{"connection.pool-size": "3"}), RATES, keys=["code"])

    async def main():
        source = opened("async", where)
        await source.open(where)
        try:
            found = await asyncio.gather(*(source.lookup(("USD",)) for _ in range(50)))
            other = context(options(server, "pg_stat_activity"), {"application_name": "STRING", "state": "STRING"},
                            keys=["application_name"])  # fmt: skip
            watching = opened("sync", other)
            watching.open(other)
            try:
                sessions = watching.lookup(("hintplan",))
            finally:
                watching.close()
        finally:
            await source.close()
        return found, sessions

    found, sessions = asyncio.run(main())
    assert found == [[("USD", Decimal(1))]] * 50
    assert 2 <= len(sessions) <= 3 + 1


@pytest.mark.usefixtures("password")
def test_a_scan_reads_every_row_in_portions(server):
    server.execute(
        "CREATE TABLE IF NOT EXISTS many (k int, d date)", "TRUNCATE many",
        "INSERT INTO many SELECT i, CASE WHEN i % 2 = 0 THEN date '2024-01-01' END FROM generate_series(1, 2500) i",
    )  # fmt: skip
    where = context(options(server, "many", **{"scan.fetch-size": "1000"}), {"k": "INT", "d": "DATE"})
    new_year = dt.date(2024, 1, 1)
    assert sorted(scanned(where)) == [(i, None if i % 2 else new_year) for i in range(1, 2501)]


@pytest.mark.usefixtures("password")
def test_a_scan_of_an_empty_table_is_empty(server):
    server.execute("CREATE TABLE IF NOT EXISTS empty (k int)")
    assert scanned(context(options(server, "empty"), {"k": "INT"})) == []


@pytest.mark.usefixtures("password")
def test_a_lookup_by_an_indexed_column_uses_the_index(server):
    """Casts must not keep PostgreSQL from the index, or every lookup reads the table."""
    import psycopg

    from hintplan.runtime.connectors.jdbc.postgres_query import key_query, probe_query

    server.execute(
        "DROP TABLE IF EXISTS indexed",
        "CREATE TABLE indexed (i int4 PRIMARY KEY, v varchar(20) UNIQUE, u uuid UNIQUE, c char(8) UNIQUE)",
        "INSERT INTO indexed SELECT i, i, md5(i::text)::uuid, i FROM generate_series(1, 20000) i",
        "ANALYZE indexed",
    )
    columns = {"i": "BIGINT", "v": "STRING", "u": "STRING", "c": "STRING"}
    keys = {"i": 7, "v": "7", "u": "8f14e45f-ceea-367a-9a36-dedd4bea2543", "c": "7"}
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        for names in (["i"], ["v"], ["u"], ["c"], ["i", "v"]):
            where = context(options(server, "indexed"), columns, keys=names)
            cursor = connection.execute(probe_query(where))
            query = key_query(where, {c.name: (c.type_code, c.type_display) for c in cursor.description})
            parameters = query.parameters([tuple(keys[name] for name in names)])
            plan = connection.execute("EXPLAIN " + query.scan.statement.as_string(connection), parameters).fetchall()
            assert "Seq Scan" not in str(plan), plan
            assert "Index" in str(plan)


def test_without_psycopg_the_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    where = context({"connector": "jdbc", "url": "jdbc:postgresql://h/d", "table-name": "t"}, RATES, keys=["code"])
    with pytest.raises(RunError, match=r"pip install 'hintplan\[postgres\]'"):
        opened("sync", where)


def test_a_wrong_port_from_the_environment_is_not_repeated(monkeypatch):
    from hintplan.runtime.connectors.jdbc.postgres_lookup import _connection_settings

    monkeypatch.setenv("DB_PORT", "99887")
    options = {"connector": "jdbc", "url": "jdbc:postgresql://localhost:${env:DB_PORT}/shop", "table-name": "t"}
    with pytest.raises(RunError, match=r"must be from 1 to 65535, not \$\{env:DB_PORT\}"):
        _connection_settings(context(options, {"code": "STRING"}, keys=["code"]))
