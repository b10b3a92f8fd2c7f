"""Formats of messages: what Flink 2.3 has read and written, and what is refused of tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D
from typing import Any

import pytest

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.messages.formats import value_part
from hintplan.plans.connectors.messages.properties import ALLOWED
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.messages.csv_text import CsvStyle, split
from hintplan.runtime.connectors.messages.formats import change_encoder, changes_decoder, row_decoder, row_encoder
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

SERVERS = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "localhost:9092"}


def table(*columns: str, key: tuple[str, ...] = (), **options: str) -> Table:
    declared = tuple(TableColumn(name=c.split(" ", 1)[0], type=c.split(" ", 1)[1]) for c in columns)
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return Table(columns=declared, options={**SERVERS, **named}, primary_key=key)


# What Flink's filesystem connector wrote of this row in each format.
COLUMNS = (
    "d1 DECIMAL(10, 2)", "d2 DECIMAL(20, 8)", "d3 DECIMAL(10, 2)", "f1 DOUBLE", "f2 DOUBLE", "f3 FLOAT",
    "t1 TIMESTAMP(3)", "t2 TIMESTAMP(6)", "t3 TIMESTAMP_LTZ(3)", "dt DATE", "b BOOLEAN", "n INT", "s STRING",
    "by1 BYTES", "d0 DECIMAL(10, 2)",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    D("100.00"), D("0.00000002"), D("12.50"), 1e10, 1.0, 0.1, datetime(2020, 1, 1),
    datetime(2020, 1, 1, 10, 20, 30, 120000), datetime(2020, 1, 1, 10, 20, 30, 120000, tzinfo=UTC), date(2020, 2, 3),
    True, None, 'a"b\\é,;x', b"\x00\xff", D("0.00"),
)  # fmt: skip
ROW = (
    '{"d1":1E+2,"d2":2E-8,"d3":12.5,"f1":1.0E10,"f2":1.0,"f3":0.1,"t1":"2020-01-01 00:00:00",'
    '"t2":"2020-01-01 10:20:30.12","t3":"2020-01-01 10:20:30.12Z","dt":"2020-02-03","b":true,"n":null,'
    '"s":"a\\"b\\\\é,;x","by1":"AP8=","d0":0}'
)
CSV = (
    '1E+2,2E-8,12.5,1.0E10,1.0,0.1,"2020-01-01 00:00:00","2020-01-01 10:20:30.12","2020-01-01 10:20:30.12Z",'
    '2020-02-03,true,,"a""b\\é,;x",0'
)
WRITTEN = {
    "json": ROW,
    "debezium-json": f'{{"before":null,"after":{ROW},"op":"c"}}',
    "canal-json": f'{{"data":[{ROW}],"type":"INSERT"}}',
}


@pytest.mark.parametrize("format_", WRITTEN)
def test_a_row_is_written_as_flink_writes_it_and_read_again(format_: str) -> None:
    part = value_part(table(*COLUMNS, format=format_))
    assert change_encoder(part)(INSERT, VALUES) == WRITTEN[format_].encode()
    names = [column.name for column in part.columns]
    ((kind, values),) = changes_decoder(part, names)(WRITTEN[format_].encode())
    expected = [0.10000000149011612 if name == "f3" else v for name, v in zip(names, VALUES, strict=True)]
    assert (kind, list(values)) == (INSERT, expected)


def test_a_line_of_csv_is_written_as_flink_writes_it_and_read_again() -> None:
    columns = [column for column in COLUMNS if not column.startswith("by1")]
    values = [value for value in VALUES if not isinstance(value, bytes)]
    part = value_part(table(*columns, format="csv"))
    assert row_encoder(part)(values) == CSV.encode()
    found = row_decoder(part, [column.name for column in part.columns])(CSV.encode())
    assert found is not None
    assert found[:5] + found[6:] == values[:5] + values[6:]


ABSENT = object()
READ = {
    "INT": {
        "1.5": 1, '"1.5"': ABSENT, '" 7 "': 7, "true": ABSENT, '"x"': ABSENT, "123456789012.1": ABSENT, "[1]": ABSENT,
        "null": None, "1e3": 1000, "3000000000": ABSENT, '"NaN"': ABSENT, "1.0": 1,
    },
    "BOOLEAN": {"1.5": False, '" 7 "': False, "true": True, '"true"': True, '"x"': False, "[1]": False, "null": None},
    "DECIMAL(10, 2)": {
        "1.5": D("1.50"), '" 7 "': D("7.00"), "1.239": D("1.24"), "123456789012.1": None, '"x"': ABSENT,
        "1e3": D("1000.00"),
        "3000000000": None, "true": ABSENT, '"NaN"': ABSENT,
    },
    "TIMESTAMP(3)": {
        '"2020-01-01 10:00:00.123"': datetime(2020, 1, 1, 10, 0, 0, 123000), '"2020-01-01T10:00:00.123"': ABSENT,
        '"2020-01-01 10:00:00Z"': ABSENT, '"2020-01-01 10:00"': ABSENT, "1.5": ABSENT,
    },
    "TIMESTAMP_LTZ(3)": {
        '"2020-01-01 10:00:00Z"': datetime(2020, 1, 1, 10, tzinfo=UTC), '"2020-01-01 10:00:00.123"': ABSENT,
        '"2020-01-01T10:00:00Z"': ABSENT,
    },
    "STRING": {
        "1.5": "1.5", '" 7 "': " 7 ", "true": "true", "[1]": "[1]", '{"a":1}': '{"a":1}', "1e3": "1e3", "1.0": "1.0",
        "null": None,
    },
    "DATE": {'"2020-01-01"': date(2020, 1, 1), '"2020-01-01 10:00"': ABSENT, "1.5": ABSENT},
    "DOUBLE": {'"1.5"': 1.5, '" 7 "': 7.0, "123456789012.1": 123456789012.1, '"x"': ABSENT, "true": ABSENT},
    "BYTES": {'"AQI="': b"\x01\x02", '"NaN"': ABSENT, "1.5": ABSENT},
}  # fmt: skip
"""What Flink's format json made of values, by their types; ABSENT where it failed."""


@pytest.mark.parametrize("declared", READ)
def test_json_is_read_as_flink_reads_it(declared: str) -> None:
    strict = row_decoder(value_part(table(f"v {declared}", format="json")), ["v"])
    lenient = row_decoder(value_part(table(f"v {declared}", format="json", json__ignore_parse_errors="true")), ["v"])
    for text, expected in READ[declared].items():
        message = f'{{"v":{text}}}'.encode()
        assert lenient(message) == [None if expected is ABSENT else expected], text
        if expected is ABSENT:
            with pytest.raises(ValueError, match="field 'v': "):
                strict(message)
        else:
            assert strict(message) == [expected], text


def test_what_is_no_object_is_refused_or_skipped() -> None:
    strict = row_decoder(value_part(table("v INT", format="json")), ["v"])
    lenient = row_decoder(value_part(table("v INT", format="json", json__ignore_parse_errors="true")), ["v"])
    for message in (b"[1]", b"nope", b"", b"\xff", b"[" * 100_000):
        assert lenient(message) is None
        with pytest.raises(ValueError, match="it is "):
            strict(message)
    assert strict(b"{}") == [None]
    complete = row_decoder(value_part(table("v INT", format="json", json__fail_on_missing_field="true")), ["v"])
    assert complete(b'{"v": null}') == [None]
    with pytest.raises(ValueError, match="field 'v' is missing"):
        complete(b"{}")


def test_nested_values_are_read_and_written() -> None:
    part = value_part(table("v ROW<a ARRAY<INT>, m MAP<STRING, DECIMAL(4, 1)>>", format="json"))
    value = {"a": [1, None], "m": [("x", D("1.5")), ("y", None)]}
    text = b'{"v":{"a":[1,null],"m":{"x":1.5,"y":null}}}'
    assert row_encoder(part)([value]) == text
    assert row_decoder(part, ["v"])(text) == [value]


def test_times_in_iso_8601_decimals_without_exponents_and_fields_left_out() -> None:
    part = value_part(
        table(
            "t TIMESTAMP(3)", "d DECIMAL(10, 2)", "n INT", format="json", json__timestamp_format__standard="ISO-8601",
            json__encode__decimal_as_plain_number="true", json__encode__ignore_null_fields="true",
        )
    )  # fmt: skip
    values = [datetime(2020, 1, 1, 1, 2, 3), D("100.00"), None]
    text = b'{"t":"2020-01-01T01:02:03","d":100}'
    assert row_encoder(part)(values) == text
    assert row_decoder(part, ["t", "d", "n"])(text) == values


@pytest.mark.parametrize(
    ("line", "style", "expected"),
    [
        ("a,,c", CsvStyle(), ["a", None, "c"]),
        ('"",x', CsvStyle(), ["", "x"]),
        ('"a,b","c ""d"""', CsvStyle(), ["a,b", 'c "d"']),
        ("a\\,b,c", CsvStyle(escape="\\"), ["a,b", "c"]),
        ("a|n/a|", CsvStyle(delimiter="|", null="n/a"), ["a", None, None]),
        ('a "b",c', CsvStyle(), ['a "b"', "c"]),
        ('"a,b', CsvStyle(quote=""), ['"a', "b"]),
        ("", CsvStyle(), [None]),
    ],
)
def test_a_line_of_csv_is_taken_apart(line: str, style: CsvStyle, expected: list[str | None]) -> None:
    assert split(line, style) == expected


def test_a_quote_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="a quote has no end"):
        split('"a', CsvStyle())


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        ("STRING", "é", "é".encode()),
        ("BYTES", b"\x00\xff", b"\x00\xff"),
        ("BOOLEAN", True, b"\x01"),
        ("SMALLINT", -2, b"\xff\xfe"),
        ("BIGINT", 258, b"\x00\x00\x00\x00\x00\x00\x01\x02"),
        ("DOUBLE", 1.0, b"\x3f\xf0\x00\x00\x00\x00\x00\x00"),
    ],
)
def test_the_format_raw_is_the_bytes_of_a_value(declared: str, value: Any, message: bytes) -> None:
    part = value_part(table(f"v {declared}", format="raw"))
    assert row_encoder(part)([value]) == message
    assert row_decoder(part, ["v"])(message) == [value]


# Each field by the specification of Avro: the branch of a union, then zigzag numbers, sizes before text and bytes.
AVRO = [
    ("INT", 1, "02 02"),
    ("INT NOT NULL", -2, "03"),
    ("BIGINT", None, "00"),
    ("STRING", "é", "02 04 c3a9"),
    ("BYTES", b"\x00\xff", "02 04 00ff"),
    ("BOOLEAN", True, "02 01"),
    ("DOUBLE", 1.0, "02 000000000000f03f"),
    ("DATE", date(1970, 1, 3), "02 04"),
    ("DECIMAL(4, 2)", D("-1.00"), "02 02 9c"),
    ("TIMESTAMP(3)", datetime(1970, 1, 1, 0, 0, 1), "02 d00f"),
    ("ARRAY<INT>", [1, None], "02 04 0202 00 00"),
    ("MAP<STRING, INT>", [("a", 3)], "02 02 0261 0206 00"),
    ("ROW<a INT, b STRING>", {"a": 1, "b": None}, "02 0202 00"),
]


@pytest.mark.parametrize(("declared", "value", "message"), AVRO)
def test_avro_is_as_its_specification_has_it(declared: str, value: Any, message: str) -> None:
    part = value_part(table(f"v {declared}", format="avro"))
    assert row_encoder(part)([value]) == bytes.fromhex(message)
    assert row_decoder(part, ["v"])(bytes.fromhex(message)) == [value]


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        ("TIMESTAMP(6)", datetime(1970, 1, 1, 0, 0, 0, 1), "02 02"),
        ("TIMESTAMP_LTZ(3)", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "02 d00f"),
    ],
)
def test_times_in_avro_without_the_older_mapping(declared: str, value: datetime, message: str) -> None:
    part = value_part(table(f"v {declared}", format="avro", avro__timestamp_mapping__legacy="false"))
    part = replace(part, options={"avro.timestamp_mapping.legacy": "false"})
    assert row_encoder(part)([value]) == bytes.fromhex(message)
    assert row_decoder(part, ["v"])(bytes.fromhex(message)) == [value]


@pytest.mark.parametrize("message", [b"", b"\x06", b"\x02", b"\x02\x80" + b"\x80" * 20])
def test_bytes_that_are_no_avro_are_refused(message: bytes) -> None:
    decode = row_decoder(value_part(table("v STRING", "w BIGINT", format="avro")), ["v", "w"])
    with pytest.raises(ValueError, match="it is not of its schema of Avro"):
        decode(message)


def test_an_update_is_the_row_as_it_was_and_as_it_is() -> None:
    columns = ("id INT", "v STRING")
    debezium = changes_decoder(value_part(table(*columns, format="debezium-json")), ["id", "v"])
    found = list(debezium(b'{"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": null}, "op": "u"}'))
    assert found == [(UPDATE_BEFORE, [1, "a"]), (UPDATE_AFTER, [1, None])]
    canal = changes_decoder(value_part(table(*columns, format="canal-json")), ["id", "v"])
    found = list(canal(b'{"data": [{"id": 1, "v": "b"}], "old": [{"v": null}], "type": "UPDATE"}'))
    assert found == [(UPDATE_BEFORE, [1, None]), (UPDATE_AFTER, [1, "b"])]
    assert list(canal(b'{"data": [{"id": 1, "v": "b"}], "type": "DELETE"}')) == [(DELETE, [1, "b"])]
    with pytest.raises(ValueError, match="'before' is null; in PostgreSQL the table needs REPLICA IDENTITY FULL"):
        debezium(b'{"before": null, "after": {"id": 1}, "op": "u"}')
    wrapped = table(*columns, format="debezium-json", debezium_json__schema_include="true")
    read = changes_decoder(value_part(wrapped), ["id", "v"])
    assert list(read(b'{"schema": {}, "payload": {"after": {"id": 1, "v": "a"}, "op": "c"}}')) == [(INSERT, [1, "a"])]


REFUSED = [
    (table("id INT", format="json", key=("id",)), "keeps no row of each primary key"),
    (table("id INT"), "the table has no format"),
    (table("id INT", format="json", key__format="json"), "'key.format' needs 'key.fields'"),
    (table("id INT", format="json", key__format="json", key__fields="x"), "the key column 'x' is no physical column"),
    (table("id INT", "v INT", format="raw"), "the format raw is one column, and there are 2"),
    (table("id ARRAY<INT>", format="csv"), "the format csv cannot hold column 'id'"),
    (table("id MAP<INT, INT>", format="json"), "whose keys are no text"),
    (table("id INT", format="json", csv__null_literal="x"), "'csv.null-literal' is for 'format' = 'csv'"),
    (table("id INT", value__format="json", json__ignore_parse_errors="true"), "'json.ignore-parse-errors' is for"),
    (table("id INT", format="json", key__json__nonsense="true"), "is no option of a format of messages"),
    (table("id INT", format="json", scan__startup__mode="timestamp"), "which needs 'scan.startup.timestamp-millis'"),
    (table("id INT", format="json", scan__startup__mode="group-offsets"), "'scan.startup.mode' is 'group-offsets'"),
    (table("id INT", format="json", sink__delivery_guarantee="exactly-once"), "'exactly-once' is not held"),
    (table("id INT", format="maxwell-json"), "'format' is 'maxwell-json'"),
    (table("id INT", format="avro-confluent"), "needs the option 'avro-confluent.url'"),
    (table("id INT", format="avro-confluent", **{"avro-confluent.url": "http://u:p@h/"}), "with no user"),
    (table("t TIMESTAMP_LTZ(3)", format="avro"), "Flink maps no TIMESTAMP_LTZ(3) to its times"),
    (table("t ROW<u TIMESTAMP(6)>", format="avro"), "Flink maps no TIMESTAMP(6) to its times"),
]


@pytest.mark.parametrize(("refused", "problem"), REFUSED)
def test_what_a_table_cannot_mean_is_refused(refused: Table, problem: str) -> None:
    assert any(problem in str(found) for found in check_table("t", refused)), check_table("t", refused)


@pytest.mark.parametrize(
    "name",
    [
        "interceptor.classes", "metric.reporters", "key.deserializer", "sasl.login.class", "config.providers",
        "sasl.client.callback.handler.class", "ssl.engine.factory.class", "security.providers", "group.id.x",
        "sasl.oauthbearer.token.endpoint.url", "auto.offset.reset", "partitioner.class",
        "sasl.login.callback.handler.class",
        "ssl.endpoint.identification.algorithm", "transactional.id", "security.protocol.x",
        "partition.assignment.strategy",
    ],
)  # fmt: skip
def test_a_property_that_is_not_listed_is_refused(name: str) -> None:
    found = check_table("t", Table(columns=(TableColumn(name="a", type="INT"),),
                                   options={**SERVERS, "format": "json", f"properties.{name}": "x"}))  # fmt: skip
    assert [problem.path for problem in found] == [f"tables.t.options.properties.{name}"]


@pytest.mark.parametrize("name", [name for name, setting in ALLOWED.items() if setting.secret])
def test_a_secret_is_a_reference(name: str) -> None:
    options = {**SERVERS, "format": "json", f"properties.{name}": "hunter2"}
    (found,) = check_table("t", Table(columns=(TableColumn(name="a", type="INT"),), options=options))
    assert "is a secret and must not be in the text" in str(found)
    assert "hunter2" not in str(found)
    options[f"properties.{name}"] = "${env:SECRET}"
    assert check_table("t", Table(columns=(TableColumn(name="a", type="INT"),), options=options)) == ()


@pytest.mark.parametrize("servers", ["", "host", "host:0", "host:99999", "user@host:1", "host:1/x", "${env:HOST}:9092"])
def test_servers_are_hosts_with_ports(servers: str) -> None:
    options = {**SERVERS, "format": "json", "properties.bootstrap.servers": servers}
    assert check_table("t", Table(columns=(TableColumn(name="a", type="INT"),), options=options))
