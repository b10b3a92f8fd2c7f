"""JSON in Arrow, a batch at a time, beside JSON row by row, which is compared with Flink's answers."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pyarrow.json
import pytest

from hintplan.plans.connectors.messages.formats import Part, value_part
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder, row_decoder, row_encoder
from hintplan.runtime.connectors.messages.json_columns import columns_reader
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import DELETE, INSERT
from hintplan.runtime.types import to_arrow
from tests.connectors.messages.test_formats import table
from tests.sample import sampled

TYPES = (
    "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 18)", "DECIMAL(20, 0)",
    "BOOLEAN", "STRING", "VARCHAR(3)", "DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)",
)  # fmt: skip

# What may stand behind "v": in a message.
NUMBERS = (
    "0", "-0", "1", "-1", "127", "128", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
    "1.0", "1.5", "-0.0", "0.1", "1e2", "1E+2", "1.239", "12.50", "1e-2", "1e400", "-1e400", "3.4028236e38", "1e39",
    "0.3333333333333333333333333", "16777217", "123456789012345678901234567890", "NaN", "Infinity", "-Infinity",
    "Inf", "01", "+1", ".5", "1.",
)  # fmt: skip
TEXTS = (
    "", "1", " 1 ", "1.5", "-0", "-0.0", "007", "-07.10", "1.", ".5", "1e3", "+1", "1.239", "128",
    "12345678901234567890", "0.1234567890123456", "123456789.01", "true", "TRUE", "x", "NaN", r"\u00e9", "é",
    r"a\"b\\c\n", r"\u0000", r"\ud800", r"\ud83d\ude00", "} {",
    ": NaN, ", "2020-02-29", "2021-02-29", "0000-01-01", "9999-12-31", "2020-1-1",
    "2020-01-01 10:20:30", "2020-01-01 10:20:30.1", "2020-01-01 10:20:30.123456", "2020-01-01 10:20:30.1234567",
    "2020-01-01T10:20:30", "2020-01-01 10:20:30Z", "2020-01-01 10:20:30.12Z", "2020-01-01 24:00:00",
    "2020-01-01 10:20",
)  # fmt: skip
OTHERS = (
    "null", "true", "false", "[]", "[1]", "{}", '{"v": 1}', "", "nul", "1 2", '1, "v": 2', '1, "w": 2, "w": 3',
    '1, "w": [{"x": 1}, {"x": 2}]', '1, "w": [NaN, Inf]', "1} {", "1}}", "1 ,",
)  # fmt: skip
VALUES = (*NUMBERS, *(f'"{text}"' for text in TEXTS), *OTHERS)


def by_row(part: Part, message: bytes) -> Any:
    try:
        found = row_decoder(part, ["v"])(message)
    except ValueError:
        return "refused"
    return "skipped" if found is None else same(pa.array(found, to_arrow(part.columns[0].type)).to_pylist()[0])


def same(value: Any) -> Any:
    """A value that equals itself, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


@pytest.mark.parametrize("options", [{}, {"json__ignore_parse_errors": "true"}])
@pytest.mark.parametrize("declared", TYPES)
def test_a_batch_is_read_as_its_rows_are_or_left_to_them(declared: str, options: dict[str, str]) -> None:
    part = value_part(table(f"v {declared}", format="json", **options))
    read = columns_reader(part, ["v"])
    assert read is not None
    plain = 0
    for value in VALUES:
        message = f'{{"v": {value}}}'.encode()
        found = read(pa.array([message, b"{}"], pa.binary()))
        if found is not None:
            plain += 1
            assert [same(each) for each in found[0].to_pylist()] == [by_row(part, message), None], value
    assert plain >= 3


ALIKE = {
    "a": "BIGINT", "b": "STRING", "c": "DECIMAL(10, 2)", "d": "DOUBLE", "e": "FLOAT", "f": "BOOLEAN", "g": "DATE",
    "h": "TIMESTAMP(3)", "i": "TIMESTAMP_LTZ(3)",
}  # fmt: skip


def random_message(chance: random.Random, keys: list[str], odd: float) -> str:
    moment = (
        f"20{chance.randrange(10, 99)}-0{chance.randint(1, 9)}-1{chance.randrange(10)} 1{chance.randrange(10)}:20:30"
    )
    texts = {
        "a": str(chance.randint(-(10**6), 10 ** chance.randint(1, 18))), "b": chance.choice(['""', '"é x"', '"} {"']),
        "c": f"{chance.randint(-999, 999)}.{chance.randrange(100):02d}",
        "d": repr(round(chance.uniform(1, 1e3), chance.randint(1, 13))),
        "e": repr(chance.uniform(-9, -1)), "f": chance.choice(["true", "false"]), "g": f'"{moment[:10]}"',
        "h": f'"{moment}.{chance.randrange(1000):03d}"', "i": f'"{moment}Z"', "x": chance.choice(["1", '"a"', "null"]),
        "y": chance.choice(['{"a": 1, "b": "c"}', "[1, 2]", "[]"]),
    }  # fmt: skip
    for key in keys:
        if chance.random() < odd:
            texts[key] = chance.choice(
                ["null", "null", "null", '"7"', "1e2", "-0", "-0.0", r'"\u00e9\n"', '"x"', "1.5", "[]"]
            )
    return "{" + ", ".join(f'"{key}": {texts[key]}' for key in keys) + "}"


@pytest.mark.parametrize("seed", sampled(range(20), keep=2))
@pytest.mark.parametrize("odd", [0.0, 0.01, 0.1])
def test_messages_that_are_alike_are_read_as_row_by_row(odd: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{odd} {seed}")
    part = value_part(table(*(f"{name} {declared}" for name, declared in ALIKE.items()), format="json"))
    in_bulk = 0
    for _ in range(60):
        wanted = chance.sample(list(ALIKE), chance.randint(1, len(ALIKE)))
        forms = [
            chance.sample([*ALIKE, "x", *("y" if odd else "")], chance.randint(1, 10))
            for _ in range(chance.randint(1, 3))
        ]
        messages = [random_message(chance, chance.choice(forms), odd).encode() for _ in range(chance.randint(1, 12))]
        read = columns_reader(part, wanted)
        assert read is not None
        if odd == 0.0:
            monkeypatch.setattr(pyarrow.json, "read_json", None)  # lines that are alike need no parser
        found = read(pa.array(messages, pa.binary()))
        assert found is not None or odd > 0.0
        if found is not None:
            in_bulk += 1
            rows = [row_decoder(part, wanted)(message) or () for message in messages]
            expected = [
                [same(value) for value in pa.array(list(values), column.type).to_pylist()]
                for values, column in zip(zip(*rows, strict=True), found, strict=True)
            ]
            assert [[same(value) for value in column.to_pylist()] for column in found] == expected, messages
    assert in_bulk > 5


@pytest.mark.parametrize("declared", ["TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)"])
def test_numbers_in_quotes_are_read_in_bulk_and_so_are_the_numbers_after_them(declared: str) -> None:
    part = value_part(table(f"v {declared}", "t STRING", format="json"))
    read = columns_reader(part, ["v", "t"])
    assert read is not None
    quoted = [b'{"v": "7", "t": "1"}', b'{"v" : null}', b'{"t": "2"}']
    plain = [b'{"v": 7, "t": "1"}', b'{"v": null}', b'{"t": "2"}']
    for messages in (plain, quoted, quoted, plain):
        found = read(pa.array(messages, pa.binary()))
        assert found is not None
        assert [column.to_pylist() for column in found] == [[7, None, None], ["1", None, "2"]]
    # Arrow reads a DECIMAL in both ways.
    assert (read(pa.array([*quoted, *plain], pa.binary())) is None) == (not declared.startswith("DECIMAL"))


def test_random_numbers_in_quotes_are_read_as_row_by_row() -> None:
    chance = random.Random(8)
    part = value_part(table("d DOUBLE", "f FLOAT", "c DECIMAL(12, 4)", "n BIGINT", format="json"))
    messages = []
    for _ in range(3000):
        whole, digits = chance.randrange(10 ** chance.randint(1, 8)), chance.randint(1, 4)
        text = f"{chance.choice(['', '-', '0'])}{whole}.{chance.randrange(10**digits):0{digits}d}"
        row = {"d": text, "f": text, "c": text, "n": str(chance.randint(-(10**18) + 1, 10**18 - 1))}
        messages.append(json.dumps(row).encode())
    read, decode = columns_reader(part, ["d", "f", "c", "n"]), row_decoder(part, ["d", "f", "c", "n"])
    assert read is not None
    found = read(pa.array(messages, pa.binary()))
    assert found is not None
    rows = [decode(message) or () for message in messages]
    expected = [pa.array(list(v), c.type).to_pylist() for v, c in zip(zip(*rows, strict=True), found, strict=True)]
    assert [column.to_pylist() for column in found] == expected


# Each is wrong, or more than one row, or left out; none may be told by how many rows there are in all.
ODD = [
    [b'{"v": [', b'{"w": 1}]}', b"{}{}"],
    [b'{"v": 1', b"}", b"{}"],
    [b"{}{}", b""],
    [b"{} {}", b"null"],
    [b'{"v": "\xff"}'],
    [b' {"v": 1}'],
    [b"[1]"],
    [b'\xef\xbb\xbf{"v": 1}'],
    ['{"v": 1}'.encode("utf-16-le")],
    [b'{"w": ' + b"[" * 5000 + b"]" * 5000 + b"}"],
    [b'{"w": ' * 5000 + b"1" + b"}" * 5000],
    [b'{"v": 1}', b""],
]


@pytest.mark.parametrize("messages", ODD)
def test_what_is_not_one_object_a_message_is_left_to_the_rows(messages: list[bytes]) -> None:
    read = columns_reader(value_part(table("v INT", format="json")), ["v"])
    assert read is not None
    assert read(pa.array(messages, pa.binary())) is None


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (["v ARRAY<INT>"], {}),
        (["v ROW<a INT>"], {}),
        (["v BYTES"], {}),
        (["v INT"], {"json__fail_on_missing_field": "true"}),
    ],
)
def test_other_columns_are_read_row_by_row(columns: list[str], options: dict[str, str]) -> None:
    assert columns_reader(value_part(table(*columns, format="json", **options)), ["v"]) is None


def test_messages_become_the_same_rows_whatever_is_beside_them_in_a_batch() -> None:
    chance = random.Random(5)
    part = value_part(table("id BIGINT", "v DOUBLE", "t STRING", format="json"))
    messages: list[bytes | None] = []
    for number in range(400):
        row = {"id": number, "v": chance.choice([None, 1.5, "2.5", 7]), "t": chance.choice(["x", None, 5])}
        messages.append(None if number % 97 == 0 else json.dumps(row).encode())
    whole = pa.record_batch(
        {
            "key": pa.nulls(400, pa.binary()), "value": pa.array(messages, pa.binary()), "topic": pa.array(["t"] * 400),
            "partition": pa.array([0] * 400, pa.int32()), "offset": pa.array(range(400), pa.int64()),
        }
    )  # fmt: skip
    columns = ("v", "id", "t")
    read = Messages(table="t", columns=columns, key=None, value=part, upserts=False, changes=False, ordered=True)
    at_once = pa.concat_tables(read.read([whole], Report()))
    one_by_one = pa.concat_tables(read.read([whole.slice(n, 1) for n in range(400)], Report()))
    assert at_once.equals(one_by_one)
    assert at_once.num_rows == 400 - 5


def test_rows_have_the_partition_of_their_message_if_the_watermark_goes_by_it() -> None:
    part = value_part(table("id BIGINT", format="json"))
    batch = pa.record_batch(
        {
            "key": pa.nulls(3, pa.binary()), "value": pa.array([b'{"id": 1}', None, b'{"id": 3}'], pa.binary()),
            "topic": pa.array(["a", "a", "b"]), "partition": pa.array([7, 7, 0], pa.int32()),
            "offset": pa.array([1, 2, 1], pa.int64()),
        }
    )  # fmt: skip
    for topic, wanted in ((None, ["a/7", "b/0"]), ("t", ["t/7", "t/0"])):
        read = Messages(
            table="t", columns=("id",), key=None, value=part, upserts=False, changes=False, splits=True, topic=topic
        )
        rows = pa.concat_tables(read.read([batch], Report()))
        assert rows.schema == read.schema
        assert rows["__split"].to_pylist() == wanted


WRITTEN: dict[str, list[Any]] = {
    "INT": [0, -1, 2**31 - 1], "BIGINT": [-(2**63)], "BOOLEAN": [True, False],
    "DATE": [date(2020, 1, 2), date(1, 1, 1)],
    "STRING": ["", "x", "é😀", 'a"b', "a\\b", "\n\t\x00\x1f\x7f", "\u2028", "</x>"],
    "DOUBLE": [
        0.0, -0.0, 1.0, 100.0, 0.001, 0.00099, 1e7, 9999999.0, 9999999.999, 123.456, 1e-300, 1e300, 0.1 + 0.2, 5e-324,
        float("inf"), float("-inf"), float("nan"), -2.5, 1 / 3, 2.0**53,
    ],
    "FLOAT": [0.1, 1e10, 3.4028235e38],
    "DECIMAL(38, 18)": [D("0.000000000000000001"), D("1"), D("100"), D("-120.500000000000000000"), D("0.000001")],
    "DECIMAL(10, 2)": [D("0.00"), D("100.00"), D("12.50"), D("-0.10"), D("99999999.99"), D("20.00"), D("7")],
    "DECIMAL(10, 0)": [D("0"), D("100"), D("101"), D("-7")],
    "DECIMAL(12, 10)": [D("0.0000001"), D("0.0000010"), D("0.0000100"), D("1.0000000001")],
    "TIMESTAMP(3)": [
        datetime(2020, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 450000), datetime(1, 1, 1), datetime(999, 12, 31, 23),
        datetime(9999, 12, 31, 23, 59, 59, 999000), datetime(1969, 12, 31, 23, 59, 59, 10000),
        datetime(1970, 1, 1, 10, 10),
    ],
    "TIMESTAMP(6)": [datetime(2020, 1, 1, 0, 0, 0, 1), datetime(1900, 10, 10, 10, 10, 10, 100000)],
    "TIMESTAMP_LTZ(3)": [datetime(2020, 1, 1, 1, 2, 3, 450000, tzinfo=UTC), datetime(10, 1, 1, tzinfo=UTC)],
    "BYTES": [b"\x00\xff"], "ARRAY<INT>": [[1, None]], "ROW<a INT, b STRING>": [{"a": 1, "b": None}],
    "MAP<STRING, INT>": [[("k", 1)]],
}  # fmt: skip


@pytest.mark.parametrize("declared", WRITTEN)
@pytest.mark.parametrize(
    "options",
    [{}, {"json__encode__decimal_as_plain_number": "true"}, {"json__timestamp_format__standard": "ISO-8601"}],
)
def test_a_batch_is_written_as_its_rows_are(declared: str, options: dict[str, str]) -> None:
    part = value_part(table("id INT", f"v {declared}", format="json", **options))
    values = [*WRITTEN[declared], None]
    batch = pa.record_batch({"id": pa.array(range(len(values)), pa.int32()), "v": pa.array(values, to_arrow(declared))})
    encode = row_encoder(part)
    rows = zip(batch.column("id").to_pylist(), batch.column("v").to_pylist(), strict=True)
    assert batch_encoder(part)(batch, [0] * len(values)).to_pylist() == [encode(row) for row in rows]


@pytest.mark.parametrize("format_", ["json", "csv", "raw", "avro", "debezium-json", "canal-json"])
def test_a_batch_of_any_format_is_written_as_its_rows_are(format_: str) -> None:
    part = value_part(table("v STRING", format=format_))
    batch = pa.record_batch({"v": pa.array(["a", 'b"', None])})
    encode = change_encoder(part)
    kinds = [INSERT, DELETE, INSERT]
    expected = [encode(kind, [value]) for kind, value in zip(kinds, batch.column("v").to_pylist(), strict=True)]
    assert batch_encoder(part)(batch, kinds).to_pylist() == expected


def test_random_numbers_are_written_as_row_by_row() -> None:
    chance = random.Random(3)
    part = value_part(table("d DOUBLE", "c DECIMAL(14, 6)", format="json"))
    doubles = [
        chance.choice([1, 10, 1e-5]) * round(chance.uniform(-1e7, 1e7), chance.randint(0, 9)) for _ in range(3000)
    ]
    sizes = [10 ** chance.randint(1, 13) for _ in range(3000)]
    decimals = [D(chance.randint(-size, size) * 10 ** chance.randint(0, 1)).scaleb(-6) for size in sizes]
    batch = pa.record_batch({"d": pa.array(doubles, pa.float64()), "c": pa.array(decimals, pa.decimal128(14, 6))})
    encode = row_encoder(part)
    rows = zip(*(batch.column(name).to_pylist() for name in ("d", "c")), strict=True)
    assert batch_encoder(part)(batch, [0] * 3000).to_pylist() == [encode(row) for row in rows]
