"""The options of connectors that look up: what is accepted, and what is refused with what to write instead."""

from __future__ import annotations

import pytest

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.jdbc import parse_server_url, split_name
from hintplan.plans.connectors.key_pattern import Slot, Text, parse_pattern, pattern_columns
from hintplan.plans.connectors.table import can_lookup, can_read, can_write, is_upsert_sink, sink_kinds
from hintplan.plans.declarations.tables import Table, TableColumn

POSTGRES = {"connector": "jdbc", "url": "jdbc:postgresql://db/shop", "table-name": "rates"}
REDIS = {"connector": "redis", "host": "cache", "key-pattern": "rates:{code}"}
HTTP = {"connector": "http", "url": "https://rates.example.com/{code}"}
PYTHON = {"connector": "python", "class": "shop.Rates"}


def table(options: dict[str, str], *columns: tuple[str, str]) -> Table:
    declared = columns or (("code", "STRING"), ("rate", "DOUBLE"))
    return Table(
        columns=tuple(TableColumn(name=n, type=t) for n, t in declared), primary_key=("code",), options=options
    )


def findings(options: dict[str, str], *columns: tuple[str, str]) -> list[str]:
    return [str(finding) for finding in check_table("t", table(options, *columns))]


@pytest.mark.parametrize(
    "options",
    [
        POSTGRES,
        POSTGRES | {"url": "jdbc:postgresql://db.example.com:5433/shop?sslmode=require&application_name=x"},
        POSTGRES | {"url": "jdbc:postgresql://localhost:${env:DB_PORT}/shop", "username": "${env:DB_USER}"},
        POSTGRES | {"url": "jdbc:postgresql://[::1]:5432/shop", "table-name": 'sales."a.b"'},
        POSTGRES | {"username": "me", "password": "${env:PW}", "connection.pool-size": "3", "statement.timeout": "5 s"},
        REDIS,
        REDIS
        | {"key-pattern": "${env:PREFIX}:{{{code}}}", "data-type": "json", "password": "${env:PW}", "ssl": "TRUE"},
        REDIS | {"data-type": "string", "timeout": "500 ms", "port": "6380", "database": "0"},
        HTTP,
        HTTP | {"url": "http://localhost:8080/v1?code={code}&key=${env:KEY}", "authorization": "${env:AUTH}"},
        HTTP | {"header.X-Client": "hintplan", "header.X-Api-Key": "${env:KEY}", "response.pointer": "/data/0"},
        PYTHON,
        {"connector": "python", "async-class": "a.b.C", "scan-class": "a.b.D", "properties.url": "anything at all"},
    ],
)
def test_a_table_that_looks_up_is_accepted(options):
    assert findings(options) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (POSTGRES | {"url": "jdbc:postgresql:shop"}, "must be followed by //host:port/database"),
        (POSTGRES | {"url": "jdbc:postgresql://db"}, "must be followed by //host:port/database"),
        (POSTGRES | {"url": "jdbc:postgresql://db:99999/shop"}, "the port in the url must be from 1 to 65535"),
        (POSTGRES | {"url": "jdbc:postgresql://a,b/shop"}, "must be followed by //host:port/database"),
        (POSTGRES | {"url": "jdbc:postgresql://db/shop?password=x"}, "the url has parameters that are not supported"),
        (POSTGRES | {"url": "jdbc:postgresql://db/shop?options=-cx"}, "the url has parameters that are not supported"),
        (POSTGRES | {"url": "jdbc:postgresql://db/shop?sslmode=no"}, "sslmode in the url must be one of"),
        (POSTGRES | {"url": "jdbc:postgresql://me:pw@db/shop"}, "a user does not belong into the url"),
        (POSTGRES | {"table-name": "a.b.c"}, "expected a table, or schema.table"),
        (POSTGRES | {"table-name": 'a"b'}, "expected a table, or schema.table"),
        (POSTGRES | {"password": "pw"}, "'password' is a secret and must not be in the text"),
        (POSTGRES | {"statement.timeout": "5"}, "'statement.timeout' is '5'"),
        (POSTGRES | {"statement.timeout": "0 s"}, "expected a duration longer than nothing"),
        (POSTGRES | {"statment.timeout": "5 s"}, "did you mean 'statement.timeout'?"),
        (POSTGRES | {"lookup.cash": "FULL"}, "did you mean 'lookup.cache'?"),
        (
            {"connector": "jdbc", "url": "jdbc:sqlite:x.db", "table-name": "t", "statement.timeout": "5 s"},
            "'statement.timeout' has no effect on an SQLite database",
        ),
        (REDIS | {"key-pattern": "rates"}, "'key-pattern' has no column in braces"),
        (REDIS | {"key-pattern": "rates:{kode}"}, "refers to {kode}, but the table has no such column"),
        (REDIS | {"key-pattern": "rates:{code"}, "a brace has no partner"),
        (REDIS | {"key-pattern": "rates:}{code}"}, "a brace has no partner"),
        (REDIS | {"data-type": "list"}, "'data-type' is 'list', expected one of hash, json, string"),
        (REDIS | {"password": "pw"}, "is a secret"),
        (REDIS | {"database": "-1"}, "expected a whole number of at least 0"),
        ({"connector": "redis", "host": "x"}, "the redis connector needs the option 'key-pattern'"),
        (HTTP | {"url": "https://example.com/rates"}, "'url' has no column in braces"),
        (HTTP | {"url": "https://{code}/rates"}, "the key belongs into the path or the query"),
        (HTTP | {"url": "https://example.com{code}"}, "the key belongs into the path or the query"),
        (HTTP | {"url": "https://me:pw@example.com/{code}"}, "a user does not belong into the url"),
        (HTTP | {"url": "file:///etc/{code}"}, "the url must start with http:// or https://"),
        (HTTP | {"url": "https://example.com/{code}#x"}, "the url has a fragment"),
        (HTTP | {"authorization": "Bearer x"}, "'authorization' is a secret"),
        (HTTP | {"header.Authorization": "${env:A}"}, "the header Authorization is set by the connector"),
        (HTTP | {"header.Host": "evil"}, "the header Host is set by the connector"),
        (HTTP | {"header.X-Api-Key": "abc"}, "the header X-Api-Key may be a secret"),
        (HTTP | {"header.a b": "c"}, "'a b' cannot be the name of a header"),
        (HTTP | {"header.X": "a\r\nY: b"}, "the value of a header is one line"),
        (HTTP | {"header.": "c"}, "the http connector has no option 'header.'"),
        (HTTP | {"response.pointer": "data"}, "expected a JSON pointer"),
        ({"connector": "python"}, "the python connector needs one of the options 'class'"),
        (PYTHON | {"class": "Rates"}, "expected the dotted name of a class"),
        (PYTHON | {"class": "os; import x.Y"}, "expected the dotted name of a class"),
        (PYTHON | {"properties.api-token": "abc"}, "the property api-token may be a secret"),
        (PYTHON | {"properties.x": "${ENV}"}, "has a placeholder that is not of the form"),
    ],
)
def test_what_is_wrong_is_said_once(options, message):
    found = findings(options)
    assert len(found) == 1
    assert message in found[0]
    assert "hint: " in found[0]


def test_a_plain_string_needs_one_column_for_its_value():
    options = REDIS | {"data-type": "string"}
    columns = (("code", "STRING"), ("a", "INT"), ("b", "INT"))
    assert "a string has one value, but the table has 2 columns besides" in findings(options, *columns)[0]
    assert "but the table has 0 columns besides" in findings(options, ("code", "STRING"))[0]


def test_the_modes_of_lookup_follow_from_the_options():
    sqlite = {"connector": "jdbc", "url": "jdbc:sqlite:x.db", "table-name": "t"}
    assert can_lookup(table(POSTGRES)) == {"sync", "async", "full"}
    assert can_lookup(table(sqlite)) == {"sync", "full"}
    assert can_lookup(table(REDIS)) == can_lookup(table(HTTP)) == {"sync", "async"}
    assert can_lookup(table(PYTHON)) == {"sync"}
    assert can_lookup(table({"connector": "python", "scan-class": "a.B", "async-class": "a.C"})) == {"async", "full"}
    assert can_lookup(table({"connector": "filesystem", "path": "x", "format": "csv"})) == {"full"}
    assert can_lookup(table({"connector": "print"})) == frozenset()


@pytest.mark.parametrize("options", [REDIS, HTTP, PYTHON])
def test_what_only_looks_up_is_neither_read_nor_written(options):
    assert not can_read(table(options))
    assert not can_write(table(options))
    assert not is_upsert_sink(table(options))
    assert sink_kinds(table(options)) == frozenset()


def test_names_in_postgresql_are_taken_apart_at_dots_outside_of_quotes():
    assert split_name("rates") == ("rates",)
    assert split_name("Sales.rates") == ("Sales", "rates")
    assert split_name('"a.b"."c""d"') == ("a.b", 'c"d')
    for wrong in ("", ".", "a.", '"a', 'a"b"', "a.b.c", "a\0b"):
        with pytest.raises(ValueError, match="expected a table"):
            split_name(wrong)


def test_a_url_is_taken_apart():
    address = parse_server_url("jdbc:postgresql://[fe80::1]:5433/a%20b?sslmode=verify-full")
    assert (address.host, address.port, address.database) == ("fe80::1", 5433, "a b")
    assert address.parameters == {"sslmode": "verify-full"}


def test_patterns_keep_braces_that_are_written_twice_and_references_to_the_environment():
    assert parse_pattern("{{x}}:{a}${env:B}$") == (Text("{x}:"), Slot("a"), Text("${env:B}$"))
    assert pattern_columns("{b}/{a}/{b}") == ("b", "a")
