"""Lookups in Redis, against a server: hashes, JSON and texts, and what is said when something is wrong."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from plans.errors import RunError
from runtime.lookup.sources.failures import SourceUnavailable
from tests.connectors.lookup_sources.asking import asked, context, opened
from tests.connectors.lookup_sources.servers import PASSWORD, free_port

MODES = ("sync", "async")
USER = {"id": "BIGINT", "name": "STRING", "score": "DECIMAL(5, 2)", "born": "DATE", "vip": "BOOLEAN"}


@pytest.fixture
def server(redis, monkeypatch):
    monkeypatch.setenv("REDIS_PASSWORD", PASSWORD)
    with redis.client() as client:
        client.flushall()
    return redis


def options(server, pattern: str, **more: str) -> dict[str, str]:
    return {
        "connector": "redis", "host": "127.0.0.1", "port": str(server.port), "password": "${env:REDIS_PASSWORD}",
        "key-pattern": pattern,
    } | {name.replace("_", "-"): value for name, value in more.items()}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
class TestLookups:
    def test_the_fields_of_a_hash_are_columns(self, server, mode):
        with server.client() as client:
            fields = {"name": "Ada", "score": "9.5", "born": "1815-12-10", "vip": "true", "other": "?"}
            client.hset("user:1", mapping=fields)
            client.hset("user:2", mapping={"name": ""})
        with asked(mode, context(options(server, "user:{id}"), USER, keys=["id"])) as ask:
            found = ask((2,), (3,), (1,))
        ada = (1, "Ada", Decimal("9.50"), dt.date(1815, 12, 10), True)
        assert found == [[(2, "", None, None, None)], [], [ada]]

    def test_a_hash_without_the_wanted_fields_is_a_row_of_nulls_and_no_hash_is_none(self, server, mode):
        with server.client() as client:
            client.hset("user:1", mapping={"other": "x"})
        with asked(mode, context(options(server, "user:{id}"), USER, keys=["id"], columns=["name"])) as ask:
            assert ask((1,), (2,)) == [[(None,)], []]
        with asked(mode, context(options(server, "user:{id}"), USER, keys=["id"], columns=["id"])) as ask:
            assert ask((1,), (2,)) == [[(1,)], []]

    def test_a_json_object_is_a_row_and_an_array_of_them_is_several(self, server, mode):
        columns = {"id": "BIGINT", "n": "DECIMAL(20, 10)", "tags": "ARRAY<STRING>", "at": "TIMESTAMP_LTZ(3)"}
        with server.client() as client:
            client.set("o:1", '{"n": 1234567890.0123456789, "tags": ["a", null], "at": "2024-01-01T00:00:00+02:00"}')
            client.set("o:2", '[{"n": 1}, {"n": "2.5", "id": 2}, {"n": 3, "id": 99}]')
        with asked(mode, context(options(server, "o:{id}", data_type="json"), columns, keys=["id"])) as ask:
            one, two, none = ask((1,), (2,), (3,))
        midnight = dt.datetime(2023, 12, 31, 22, tzinfo=dt.UTC)
        assert one == [(1, Decimal("1234567890.0123456789"), ["a", None], midnight)]
        assert two == [(2, Decimal(1), None, None), (2, Decimal("2.5"), None, None)]
        assert none == []

    def test_a_string_is_the_column_that_is_not_in_the_pattern(self, server, mode):
        with server.client() as client:
            client.mset({"rate:EUR": "1.08", "rate:USD": "1"})
        columns = {"code": "STRING", "rate": "DOUBLE"}
        where = context(options(server, "rate:{code}", data_type="string"), columns, keys=["code"])
        with asked(mode, where) as ask:
            assert ask(("USD",), ("x",), ("EUR",)) == [[("USD", 1.0)], [], [("EUR", 1.08)]]

    def test_bytes_are_what_is_stored(self, server, mode):
        with server.client() as client:
            client.set("b:1", b"\x00\xff")
        where = context(options(server, "b:{k}", data_type="string"), {"k": "INT", "v": "BYTES"}, keys=["k"])
        with asked(mode, where) as ask:
            assert ask((1,)) == [[(1, b"\x00\xff")]]

    def test_a_pattern_may_take_several_columns_in_any_order(self, server, mode):
        columns = {"a": "INT", "b": "STRING", "v": "STRING"}
        with server.client() as client:
            client.set("{x:1}", "found")
        where = context(options(server, "{{{b}:{a}}}", data_type="string"), columns, keys=["a", "b"])
        with asked(mode, where) as ask:
            assert ask((1, "x"), (2, "x")) == [[(1, "x", "found")], []]

    def test_keys_that_are_not_in_the_pattern_are_compared(self, server, mode):
        with server.client() as client:
            client.hset("user:1", mapping={"name": "Ada"})
            client.hset("user:2", mapping={"score": "1"})
        where = context(options(server, "user:{id}"), USER, keys=["id", "name"], columns=["id"])
        with asked(mode, where) as ask:
            assert ask((1, "Ada"), (1, "Eve"), (2, "Ada")) == [[(1,)], [], []]

    def test_a_key_is_a_name_whatever_it_says(self, server, mode):
        odd = "a b\r\nFLUSHALL\r\n*:é"
        with server.client() as client:
            client.set(f"r:{odd}", "yes")
        where = context(options(server, "r:{k}", data_type="string"), {"k": "STRING", "v": "STRING"}, keys=["k"])
        with asked(mode, where) as ask:
            assert ask((odd,), ("*",), ("",)) == [[(odd, "yes")], [], []]
        with server.client() as client:
            assert client.dbsize() == 1

    def test_an_update_is_seen_by_the_next_lookup(self, server, mode):
        where = context(options(server, "r:{k}", data_type="string"), {"k": "STRING", "v": "STRING"}, keys=["k"])
        with asked(mode, where) as ask, server.client() as client:
            assert ask(("a",)) == [[]]
            client.set("r:a", "1")
            assert ask(("a",)) == [[("a", "1")]]
            client.delete("r:a")
            assert ask(("a",)) == [[]]

    def test_another_database_of_the_server_can_be_chosen(self, server, mode):
        with server.client() as client:
            client.execute_command("SELECT", "3")
            client.set("r:a", "three")
        columns = {"k": "STRING", "v": "STRING"}
        where = context(options(server, "r:{k}", data_type="string", database="3"), columns, keys=["k"])
        with asked(mode, where) as ask:
            assert ask(("a",)) == [[("a", "three")]]

    @pytest.mark.parametrize(
        ("data_type", "stored", "message"),
        [
            ("hash", "text", "check 'data-type'"),
            ("string", "list", "'r:1' in Redis does not fit: it is a list\n  hint: the table's 'data-type'"),
            ("json", "hash", "the value of 'r:1' in Redis does not fit: it is a hash"),
            ("json", "text", "the value of 'r:1' in Redis does not fit: it is not JSON"),
            ("json", "number", "expected a JSON object, or an array of objects"),
            ("string", "text", "column 'v': 'abc' is not INT"),
        ],
    )
    def test_a_value_of_another_kind_is_an_error_and_not_a_miss(self, server, mode, data_type, stored, message):
        with server.client() as client:
            if stored == "list":
                client.rpush("r:1", "x")
            elif stored == "hash":
                client.hset("r:1", mapping={"v": "1"})
            else:
                client.set("r:1", {"text": "abc", "number": "17"}[stored])
        where = context(options(server, "r:{k}", data_type=data_type), {"k": "INT", "v": "INT"}, keys=["k"])
        with asked(mode, where) as ask:
            with pytest.raises(RunError) as caught:
                ask((0,), (1,))
            assert message in str(caught.value)

    def test_a_wrong_password_is_said_but_not_repeated(self, server, mode, monkeypatch):
        monkeypatch.setenv("REDIS_PASSWORD", "wrong-battery-8")
        with asked(mode, context(options(server, "user:{id}"), USER, keys=["id"])) as ask:
            with pytest.raises(RunError, match="Redis refused the user") as caught:
                ask((1,))
            assert "wrong-battery-8" not in str(caught.value)

    def test_a_server_that_is_not_there_may_be_tried_again(self, server, mode):
        where = context(options(server, "user:{id}") | {"port": str(free_port())}, USER, keys=["id"])
        with asked(mode, where) as ask, pytest.raises(SourceUnavailable, match=r"tables\.t: Redis did not answer"):
            ask((1,))

    def test_a_server_that_is_stopped_and_started_answers_again(self, server, mode):
        with server.client() as client:
            client.hset("user:1", mapping={"name": "Ada"})
        where = context(options(server, "user:{id}"), USER, keys=["id"], columns=["name"])
        with asked(mode, where) as ask:
            assert ask((1,)) == [[("Ada",)]]
            server.stop()
            try:
                with pytest.raises(SourceUnavailable):
                    ask((1,))
            finally:
                server.start()
            assert ask((1,)) == [[("Ada",)]]

    def test_a_key_that_the_pattern_needs_must_be_in_the_join(self, server, mode):
        where = context(options(server, "user:{id}"), USER, keys=["name"])
        with pytest.raises(RunError, match=r"looks up by name, but 'key-pattern' needs id\n  hint: join ON id = "):
            asked(mode, where).__enter__()


def test_the_values_in_the_json_are_exactly_those_in_the_text():
    from runtime.lookup.sources.decoding import parse_json

    assert str(parse_json("[0.10000000000000000001]")[0]) == "0.10000000000000000001"
    assert parse_json(json.dumps({"a": 1})) == {"a": 1}


def test_without_redis_the_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "redis", None)
    where = context({"connector": "redis", "host": "h", "key-pattern": "{id}"}, USER, keys=["id"])
    with pytest.raises(RunError, match=r"pip install 'hintplan\[redis\]'"):
        opened("async", where)
