"""CSV messages that are read and written in batches, beside the same ones row by row, which are Flink's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import Part, value_part
from hintplan.runtime.connectors.messages.csv_columns import csv_columns_reader, csv_columns_writer
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder, row_decoder
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import INSERT
from hintplan.runtime.types import to_arrow
from tests.connectors.messages.test_changes_in_bulk import batch_of, by_row, outcome
from tests.connectors.messages.test_formats import COLUMNS, CSV, VALUES, table
from tests.connectors.messages.test_json_columns import NUMBERS, TEXTS, TYPES, same
from tests.sample import sampled

LENIENT = {"csv.ignore-parse-errors": "true"}
STYLES: dict[str, dict[str, str]] = {
    "default": {},
    "lenient": LENIENT,
    "null literal": {"csv.null-literal": "n/a"},
    "tabs": {"csv.field-delimiter": "\\t"},
    "semicolons, single quotes": {"csv.field-delimiter": ";", "csv.quote-character": "'"},
    "escapes": {"csv.escape-character": "\\"},
    "no quotes": {"csv.disable-quote-character": "true"},
    "a high delimiter": {"csv.field-delimiter": "|", "csv.null-literal": "|"},
    "a delimiter that is not ASCII": {"csv.field-delimiter": "§"},
}
BY_ROW = {"no quotes", "a delimiter that is not ASCII"}
"""The styles that are not written in batches."""


def part_of(*columns: str, **options: str) -> Part:
    declared = table(*columns, format="csv")
    return value_part(replace(declared, options={**declared.options, **options}))


def one_by_one(part: Part, message: bytes, *wanted: str) -> Any:
    try:
        found = row_decoder(part, wanted)(message)
    except ValueError:
        return "refused"
    if found is None:
        return "skipped"
    described = zip(found, part.columns, strict=True)
    return [same(pa.array([value], to_arrow(column.type)).to_pylist()[0]) for value, column in described]


def read_in_bulk(part: Part, messages: Sequence[bytes], *wanted: str) -> list[list[Any]] | None:
    read = csv_columns_reader(part, wanted)
    assert read is not None
    columns = read(pa.array(messages, pa.binary()))
    if columns is None:
        return None
    assert [column.type for column in columns] == [to_arrow(column.type) for column in part.columns]
    return [list(row) for row in zip(*([same(v) for v in column.to_pylist()] for column in columns), strict=True)]


@pytest.mark.parametrize("style", ["default", "lenient", "null literal"])
@pytest.mark.parametrize("declared", TYPES)
def test_a_batch_is_read_as_its_rows_are_or_left_to_them(declared: str, style: str) -> None:
    part, plain = part_of(f"v {declared}", "w STRING", **STYLES[style]), 0
    for text in (*NUMBERS, *TEXTS, "n/a", "FALSE", "tRue", " true", "a b", "ｔrue", "1e-400", "9" * 50):
        for field in (text, f'"{text}"'):
            message = f"{field},x".encode()
            found = read_in_bulk(part, [message, b",", message], "v", "w")
            if found is not None:
                plain += 1
                expected = one_by_one(part, message, "v", "w")
                assert found == [expected, [None, None], expected], field
    assert plain >= 4


@pytest.mark.parametrize("nothing", [b"", b"\n", b"\r\n"])
def test_a_message_without_content_is_a_row_of_one_column_and_no_other(nothing: bytes) -> None:
    one, two = part_of("v INT"), part_of("v INT", "w INT")
    assert one_by_one(one, nothing, "v") == [None]
    assert one_by_one(two, nothing, "v", "w") == "refused"
    for part in (one, two):
        assert read_in_bulk(part, [nothing, b"1,2"[: 2 * len(part.columns) - 1]], "v", "w") is None


def test_line_ends_behind_a_message_are_no_part_of_it_and_those_in_it_are() -> None:
    part = part_of("v INT", "w STRING")
    messages = [b"1,a\r\n", b"2,b\n", b'3,""', b"4,", b"5,e\n\n\r"]
    expected = [[1, "a"], [2, "b"], [3, ""], [4, None], [5, "e"]]
    assert read_in_bulk(part, messages, "v", "w") == expected
    for odd, value in ((b'6,"a\nb"', "a\nb"), (b"6,a\rb", "a\rb"), (b"6,a\nb", "a\nb"), (b"6,a\0", "a\0")):
        assert one_by_one(part, odd, "v", "w") == [6, value]
        assert read_in_bulk(part, [odd], "v", "w") is None
    assert read_in_bulk(part, ["\ufeff1,a".encode()], "v", "w") is None
    assert read_in_bulk(part, [], "v", "w") == []


def test_columns_that_are_not_read_are_null_whatever_they_hold() -> None:
    part = part_of("v INT", "w INT", "b DECIMAL(38, 20)")
    for message in (b"1,x,?", b'1,"x,",'):
        assert one_by_one(part, message, "v") == [1, None, None]
        assert read_in_bulk(part, [message] * 2, "v") == [[1, None, None]] * 2
        assert read_in_bulk(part, [message], *()) == [[None, None, None]]
        assert one_by_one(part, message, "v", "w") == "refused"
    for message in (b"1,x", b"1,x,,", b"1,x,\xff"):
        assert one_by_one(part, message, "v") == "refused"
        assert read_in_bulk(part, [message], "v") is None
    assert csv_columns_reader(part, ["b"]) is None


def test_the_line_that_flink_writes_is_written_and_read_in_bulk() -> None:
    columns = [column for column in COLUMNS if not column.startswith("by1")]
    values = [value for value in VALUES if not isinstance(value, bytes)]
    part, names = part_of(*columns), [column.split()[0] for column in columns]
    arrays = [pa.array([value], to_arrow(column.type)) for value, column in zip(values, part.columns, strict=True)]
    write = csv_columns_writer(part)
    assert write is not None
    assert write(pa.record_batch(arrays, names=names)).to_pylist() == [CSV.encode()]
    assert read_in_bulk(part, [CSV.encode()], *names) == [one_by_one(part, CSV.encode(), *names)]


def test_random_decimals_are_read_as_row_by_row() -> None:
    chance, in_bulk = random.Random(5), 0
    for declared in ("DECIMAL(10, 2)", "DECIMAL(38, 18)", "DECIMAL(18, 0)", "DECIMAL(38, 0)"):
        part = part_of(f"v {declared}", "w STRING")
        for _ in range(400):
            digits = "".join(chance.choices("0123456789", k=chance.randint(1, 20)))
            fraction = chance.choice(("", f".{chance.randrange(1000)}", f".{chance.randrange(10**12)}"))
            exponent = chance.choice(("", "", f"E{chance.choice(('', '+', '-'))}{chance.randint(0, 12)}"))
            message = f"{chance.choice(('', '-'))}{digits}{fraction}{exponent},".encode()
            found = read_in_bulk(part, [message], "v", "w")
            in_bulk += found is not None
            assert found is None or found == [one_by_one(part, message, "v", "w")], (declared, message)
    assert in_bulk > 400


WRITTEN: dict[str, list[Any]] = {
    "STRING": ["", "a", "n/a", "|", "a b", "a,b", 'a"b', "a'b", "a;b", "a\\b", "é😀", "\x7f", "-", ".", "{", "}", "~"],
    "VARCHAR(3)": ["abc", "x,y"], "TINYINT": [0, -128], "INT": [7, -(2**31)], "BIGINT": [2**63 - 1],
    "BOOLEAN": [True, False], "FLOAT": [0.0, -0.0, 0.1, 1e10, float("nan")],
    "DOUBLE": [0.1, 1e10, 1e-4, -5.0, 123456.75, float("nan"), float("inf"), -0.0],
    "DECIMAL(10, 2)": [D("100.00"), D("12.50"), D("0.00"), D("-0.01")], "DECIMAL(38, 18)": [D("1.5")],
    "DATE": [date(2020, 1, 2), date(1, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP(3)": [datetime(2020, 1, 1), datetime(1, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 120000)],
    "TIMESTAMP_LTZ(3)": [datetime(2020, 1, 1, 1, 2, 3, 4000, tzinfo=UTC)],
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("declared", WRITTEN)
def test_values_are_written_as_row_by_row(declared: str, style: str) -> None:
    part, values = part_of(f"v {declared}", "id INT", **STYLES[style]), [*WRITTEN[declared], None]
    if style == "no quotes":
        values = [value for value in values if not isinstance(value, str) or "," not in value]
    batch = pa.record_batch({"v": pa.array(values, to_arrow(declared)), "id": pa.array(range(len(values)), pa.int32())})
    batch = pa.concat_batches([batch, batch]).slice(len(values))  # a part of a batch
    encode = change_encoder(part)
    rows = zip(*(batch.column(name).to_pylist() for name in ("v", "id")), strict=True)
    expected = [encode(INSERT, row) for row in rows]
    write = csv_columns_writer(part)
    assert (write is None) == (style in BY_ROW)
    if write is not None:
        assert write(batch).to_pylist() == expected
        for place in range(len(values)):
            assert write(batch.slice(place, 1)).to_pylist() == expected[place : place + 1]
    assert batch_encoder(part)(batch, [INSERT] * len(values)).to_pylist() == expected


ALPHABET = ("a", "é", " ", ",", ";", "\t", '"', '""', "'", "\\", "|", "n/a", "1", "§", "")


@pytest.mark.parametrize("seed", sampled(range(20), keep=1))
@pytest.mark.parametrize("style", STYLES)
def test_random_texts_are_written_and_read_as_row_by_row(style: str, seed: int) -> None:
    chance, part = random.Random(f"{style} {seed}"), part_of("a STRING", "b INT", "c STRING", **STYLES[style])
    encode, write, read = change_encoder(part), batch_encoder(part), csv_columns_reader(part, "abc")
    in_bulk = 0
    for _ in range(40):
        rows = []
        for number in range(chance.randint(1, 6)):
            texts = ["".join(chance.choices(ALPHABET, k=chance.randint(0, 3))) for _ in "ac"]
            if style == "no quotes":
                texts = [text.replace(",", "") for text in texts]
            first, second = (None if chance.random() < 0.2 else text for text in texts)
            rows.append((first, number, second))
        arrays = (pa.array(list(values)) for values in zip(*rows, strict=True))
        types = (pa.string(), pa.int32(), pa.string())
        batch = pa.record_batch([a.cast(t) for a, t in zip(arrays, types, strict=True)], names=list("abc"))
        messages = write(batch, [INSERT] * len(rows)).to_pylist()
        assert messages == [encode(INSERT, row) for row in rows]
        found = None if read is None else read_in_bulk(part, messages, *"abc")
        if found is not None:
            in_bulk += 1
            assert found == [one_by_one(part, message, *"abc") for message in messages]
    assert (read is None) == (style == "a delimiter that is not ASCII")
    assert read is None or in_bulk > 5


@pytest.mark.parametrize("seed", sampled(range(20), keep=1))
@pytest.mark.parametrize("style", STYLES)
def test_random_messages_have_the_rows_or_the_error_of_row_by_row(style: str, seed: int) -> None:
    chance, part = random.Random(f"{style} {seed}"), part_of("a STRING", "b INT", "c STRING", **STYLES[style])
    messages = Messages(
        table="t", columns=("a", "b", "c"), key=None, value=part, upserts=False, changes=True, ordered=True, splits=True
    )
    outcomes = []
    delimiter = STYLES[style].get("csv.field-delimiter", ",").replace("\\t", "\t")
    for _ in range(100):
        values: list[bytes] = []
        for _ in range(chance.choice((1, 3))):
            first, last = ("".join(chance.choices(ALPHABET, k=chance.randint(0, 3))) for _ in "ac")
            fields = [first, str(chance.randrange(99)), last]
            if chance.random() < 0.3:
                fields = [f'"{field}"' for field in fields]
            values.append(delimiter.join(fields).encode() + chance.choice((b"", b"", b"", b"\n", b"\xff")))
        read = outcome(lambda b: list(messages.read([b], Report())), batch_of(values))
        assert str(read) == str(outcome(lambda b: by_row(messages, b), batch_of(values))), values
        outcomes.append(type(read))
    assert outcomes.count(list) > 5
    assert style == "lenient" or outcomes.count(str) > 5
