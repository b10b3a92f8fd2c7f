"""Blocks of CSV and JSON files read by Arrow: what it reads, and what it leaves to Spark; expected by hand."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.filesystem.text_blocks import (
    block_reader,
    last_record_end,
    plain_records,
    record_ends,
)
from hintplan.runtime.connectors.filesystem.text_files import Mixed, parts
from hintplan.runtime.types import to_arrow
from tests.sample import gate_seed

TYPES = {
    "a": "BIGINT",
    "b": "STRING",
    "c": "DOUBLE",
    "d": "DECIMAL(10, 2)",
    "e": "BOOLEAN",
    "f": "DATE",
    "g": "TIMESTAMP(3)",
    "h": "TIMESTAMP_LTZ(6)",
}
ROW: dict[str, Any] = {
    "a": -7,
    "b": "grün",
    "c": 0.25,
    "d": Decimal("12.50"),
    "e": True,
    "f": date(2024, 2, 29),
    "g": datetime(2024, 2, 29, 12, 30, 0, 500000),
    "h": datetime(2024, 2, 29, 11, 30, 0, 1, tzinfo=UTC),
}
NOTHING = dict.fromkeys(TYPES)
CSV = "-7,grün,0.25,12.50,true,2024-02-29,2024-02-29 12:30:00.5,2024-02-29 13:30:00.000001+02:00\n".encode()
JSON = (
    b'{"a":-7,"b":"gr\\u00fcn","c":0.25,"d":12.5,"e":true,"f":"2024-02-29","g":"2024-02-29T12:30:00.5",'
    b'"x":[{"a":1}],"h":"2024-02-29 13:30:00.000001+02:00"}\n'
)


def table(chosen: str, columns: dict[str, str], **options: str) -> Table:
    return Table(
        columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()),
        options={"connector": "filesystem", "path": "/nowhere", "format": chosen, **options},
    )


def read(data: bytes, source: Table, *columns: str) -> list[dict[str, Any]] | None:
    """The rows of a block, read as a worker does, with a function that was sent to it."""
    wanted = columns or tuple(column.name for column in source.columns)
    reader = block_reader(source, wanted)
    assert reader is not None
    found = pickle.loads(pickle.dumps(reader))(memoryview(data))
    if found is None:
        return None
    assert found.column_names[: len(wanted)] == list(wanted)
    types = {column.name: column.type for column in source.columns}
    assert [field.type for field in found.schema][: len(wanted)] == [to_arrow(types[name]) for name in wanted]
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


@pytest.mark.parametrize(
    ("chosen", "data", "nothing"), [("csv", CSV, b",,,,,,,\n"), ("json", JSON, b'{"a":null}\n')], ids=["csv", "json"]
)
def test_values_of_each_type(chosen: str, data: bytes, nothing: bytes) -> None:
    source = table(chosen, TYPES)
    assert read(data + nothing + data, source) == [ROW, NOTHING, ROW]
    assert read(data + nothing[:-1], source) == [ROW, NOTHING]
    assert read((data + nothing).replace(b"\n", b"\r\n"), source) == [ROW, NOTHING]
    assert read(data, source, "c", "a") == [{"c": 0.25, "a": -7}]
    assert read(b"", source) == []


@pytest.mark.parametrize(("chosen", "data"), [("csv", CSV), ("json", JSON)])
def test_rows_are_counted_without_a_column(chosen: str, data: bytes) -> None:
    reader = block_reader(table(chosen, TYPES), ())
    assert reader is not None
    counted = reader(data * 3)
    assert counted is not None
    assert (counted.num_rows, counted.num_columns) == (3, 0)


TWO = {"n": "INT", "s": "STRING"}


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b'1,\n2,""\n', [(1, None), (2, "")]),
        (b'"1","a,b"\n', [(1, "a,b")]),
        (b'1,"a""b"\n2,""""\n', [(1, 'a"b'), (2, '"')]),
        (b'1,"a\nb"\n\n2,c', [(1, "a\nb"), (2, "c")]),
        (b"1, a \n", [(1, " a ")]),
        (b"007,#\n", [(7, "#")]),
        (b"\n\n", []),
    ],
)
def test_csv_fields(data: bytes, rows: list[tuple[Any, ...]]) -> None:
    assert read(data, table("csv", TWO)) == [dict(zip(TWO, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("options", "data", "rows"),
    [
        ({"csv.null-literal": "-"}, b'1,-\n-,"-"\n,\n', [(1, None), (None, None), (None, None)]),
        ({"csv.null-literal": "0"}, b'0,"0"\n"0",\n', [(None, None), (None, None)]),
        ({"csv.null-literal": ""}, b'"",""\n', [(None, None)]),
        ({"csv.field-delimiter": ";"}, b"1;a,b\n", [(1, "a,b")]),
        ({"csv.quote-character": "'"}, b"1,'a''\"'\n", [(1, "a'\"")]),
        ({"csv.disable-quote-character": "true"}, b'1,"a\n', [(1, '"a')]),
        ({"csv.allow-comments": "true"}, b"# 1\n1,#a\n#", [(1, "#a")]),
    ],
)
def test_csv_options(options: dict[str, str], data: bytes, rows: list[tuple[Any, ...]] | None) -> None:
    expected = None if rows is None else [dict(zip(TWO, row, strict=True)) for row in rows]
    assert read(data, table("csv", TWO, **options)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"1\n", b"1,a,b\n", b"+1,a\n", b" 1,a\n", b"1 ,a\n", b"0x1F,a\n", b"1.0,a\n", b"1e2,a\n", b"2147483648,a\n",
        b"x,a\n", b'"",a\n', b'1,a"b\n', b'1,"a"b\n', b'1,"a" \n', b'1, "a"\n', b'1,"a\n', b"1,a\rb\n", b"1,a\r\r\n",
        b'1,"a"\r\n', b"\r\n1,a\r\n", b"1,a\0\n", b"1,\xff\n", b"\xef\xbb\xbf1,a\n", "1,\uffff\n".encode(),
    ],
)  # fmt: skip
def test_csv_left_to_spark(data: bytes) -> None:
    assert read(b"1,a\n" + data + b"1,a\n" if not data.startswith(b"\xef") else data, table("csv", TWO)) is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"n":1}{"n":2}', b'{"n":1} {"n":2}', b'{"n":\n1}', b'[{"n":1}]', b'{"n":"1"}', b'{"n":1.0}', b'{"n":1e2}',
        b'{"n":2147483648}', b'{"n":01}', b'{"n":1,"n":2}', b'{"s":1}', b'{"s":true}', b'{"s":{}}', b'{"s":"\\ud800"}',
        b'{"s":"\\udc00a"}', b'{"s":"a\tb"}', b"{'n':1}", b'{"n":1,}', b'{"n":1', b'{"n":1} ', b' {"n":1}', b"",
        b'{"x":NaN}', b'{"x":-Infinity}', b'{"s":"\xff"}', b'{"s":"\0"}', b'{"n":1}\r{"n":2}', b"null", b'"{}"',
        b'{"x":' + b"[" * 1000 + b"]" * 1000 + b"}", b'{"x":1' + b"0" * 1000 + b"}", b'{"s":"' + b"x" * 50_000 + b'"}',
    ],
)  # fmt: skip
def test_json_left_to_spark(data: bytes) -> None:
    assert read(b'{"n":1}\n' + data + b'\n{"n":1}\n', table("json", TWO)) is None


def test_long_json_lines() -> None:
    text = "x1" * 10_000
    line = f'{{"x":[[1,2]],"n":1,"s":"{text}"}}\n'.encode()
    assert read(line * 3, table("json", TWO)) == [{"n": 1, "s": text}] * 3


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("DOUBLE", text) for text in ("NaN", "Infinity", "1e400", "1d", "0x1p3", " 1", "", "1,5")),
        *(("FLOAT", text) for text in ("NaN", "1e39", "1f")),
        *(("BOOLEAN", text) for text in ("True", "1", "yes", "")),
        *(("DECIMAL(4, 2)", text) for text in ("1.234", "100", "1234.5", "x", "1,0", " 1")),
        *(("DATE", text) for text in ("2024-1-1", "2023-02-29", "0000-01-01", "2024-01-01 ", "20240101", "")),
        *(
            ("TIMESTAMP(3)", text)
            for text in ("2024-01-01", "2024-01-01 10", "2024-01-01 10:00", "2024-01-01 24:00:00")
        ),
        *(("TIMESTAMP(3)", f"2024-01-01 10:00:00{end}") for end in ("Z", "+01:00", "-01:00", ".", ".1234567", " ")),
        ("TIMESTAMP_LTZ(3)", "2024-01-01 10:00:00"),
        *(("TIMESTAMP_LTZ(3)", f"2024-01-01 10:00{end}") for end in ("Z", "+0100", "+01:00", ":00+19:00", ":00z")),
    ],
)
def test_texts_in_another_form(kind: str, text: str) -> None:
    assert read(f'1,"{text}"\n'.encode(), table("csv", {"n": "INT", "v": kind})) is None
    if kind.startswith(("DATE", "TIME")):
        assert read(f'{{"v":"{text}"}}\n'.encode(), table("json", {"v": kind})) is None


def test_numbers_of_json() -> None:
    assert read(b'{"v":-0}\n', table("json", {"v": "DOUBLE"})) is None
    assert read(b'{"v":-0.0}\n', table("json", {"v": "DOUBLE"})) is None
    assert read(b'{"v":1e400}\n', table("json", {"v": "DOUBLE"})) is None
    assert read(b'{"v":12.345}\n', table("json", {"v": "DECIMAL(4, 2)"})) is None
    assert read(b'{"v":1234}\n', table("json", {"v": "DECIMAL(4, 2)"})) is None
    assert read(b'{"v":"AP8="}\n', table("json", {"v": "BYTES"})) == [{"v": b"\x00\xff"}]
    assert read(b'{"v":"AP9="}\n', table("json", {"v": "BYTES"})) is None  # not canonical


def test_lines_that_are_alike_and_others() -> None:
    """Objects of some shapes, in which values may be null, nested or with escapes; Python reads the same values."""
    dice = Random(gate_seed())
    columns = {"n": "INT", "s": "STRING", "d": "DOUBLE", "b": "BOOLEAN", "u": "STRING"}
    source = table("json", columns)
    for _ in range(200):
        shapes = [dice.sample([*columns, "x y", "é"], dice.randrange(1, 8)) for _ in range(dice.choice([1, 2, 3, 20]))]
        marks, plain = dice.choice([(",", ":"), (", ", ": ")]), dice.random() < 0.1
        lines = []
        for _ in range(dice.choice([*range(1, 12), 150])):
            values = {
                "n": dice.choice([0, -5, 123, None]),
                "s": dice.choice(["", "a", "ü,:{}", None, "n"]),
                "d": dice.choice([0.5, 1e-7, 3, None, 1e30]),
                "b": dice.choice([True, False, None]),
                "u": dice.choice(["x", "yy", 'a"b']),
                "x y": dice.choice(
                    [1, "t", None, [1, {"a": "}"}], {"n": dice.random(), "s": {"d": "]"}, "e": [], "f": None}]
                ),
                "é": "1",
            }
            chosen = {key: values[key] for key in dice.choices(shapes, [9, *[1] * (len(shapes) - 1)])[0]}
            lines.append(json.dumps(chosen, separators=marks, ensure_ascii=plain))
        expected = [{name: json.loads(line).get(name) for name in columns} for line in lines]
        assert read("\n".join(lines).encode(), source) == expected


NESTED = [b'{"s":"a","n":{"s":1}}', b'{"s":{},"n":1}', b'{"s":["a"],"n":1}', b'{"n":[],"s":"a"}']


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"s":"a","n":01}', b'{"s":"a","n":1.}', b'{"s":"a","n":}', b'{"s":"a","n":+1}', b'{"s":"a","n":1 1}',
        b'{"s":"a","n":nul}', b'{"s":"a","n":True}', b'{"s":"a";"n":1}', b'{"s":"a","n":1,}', b'{"s":"a","m":1"n":1}',
        b'{"s":"a,"n":1}', b'{"s":"a"b","n":1}', b'{"s":"a\tb","n":1}', b'{"s":a,"n":1}', b'{"s":"a""n":1}',
        b'{"s","n":1}',
        b'{"s":"a","n":1}{"s":"a","n":1}', b'{"s":1,"n":1}', b'{"s":"a","n":"1"}', b'{"s":"a","s":"n"}',
        b'{"s":"a",n:1}', *NESTED,
    ],
)  # fmt: skip
def test_wrong_lines_among_lines_that_are_alike(wrong: bytes) -> None:
    alike = b'{"s":"a","n":1}\n'
    for block in (wrong + b"\n" + alike * 2, alike * 2 + wrong + b"\n", alike + wrong):
        assert read(block, table("json", TWO)) is None
        # Keys that are not wanted must be correct, too, but may be there twice, with values of any type.
        found = read(block, table("json", {"n": "INT", "x": "INT"}), "x")
        assert found is None or wrong in (b'{"s":1,"n":1}', b'{"s":"a","n":"1"}', b'{"s":"a","s":"n"}', *NESTED)


@pytest.mark.parametrize("value", ["1 1", "01", "a", '"a"b"', '"a', "", "NaN", '"a","b"', "1,", "1}", '"a":"b"'])
def test_wrong_values_inside_of_a_field_that_is_not_read(value: str) -> None:
    line = '{"n":1,"x":{"a":%s,"c":{"d":"e"}}}\n'
    source = table("json", {"n": "INT"})
    for right in ("1", '"a"', "null"):
        assert read((line % right).encode() * 3, source) == [{"n": 1}] * 3
        assert read(((line % right) * 2 + line % value + line % right).encode(), source) is None


def test_op_of_a_changelog() -> None:
    changelog = {"source.changelog": "true"}
    assert read(b"1,a,+I\n", table("csv", TWO, **changelog), "n") == [{"n": 1, "op": "+I"}]
    assert read(b'{"op":"-D","n":1}\n', table("json", TWO, **changelog), "n") == [{"n": 1, "op": "-D"}]


def test_each_column_counts_if_wrong_ones_become_null() -> None:
    assert read(b"x,a\n", table("csv", TWO), "s") == [{"s": "a"}]
    assert read(b"x,a\n", table("csv", TWO, **{"csv.ignore-parse-errors": "true"}), "s") is None
    assert read(b'{"n":"","s":"a"}\n', table("json", TWO), "s") == [{"s": "a"}]
    assert read(b'{"n":"","s":"a"}\n', table("json", TWO, **{"json.ignore-parse-errors": "true"}), "s") is None


@pytest.mark.parametrize(("chosen", "columns", "wanted"), [("json", {"n": "INT", "r": "ARRAY<INT>"}, ("n", "r"))])
def test_what_only_spark_reads(chosen: str, columns: dict[str, str], wanted: tuple[str, ...]) -> None:
    assert block_reader(table(chosen, columns), wanted) is None
    assert block_reader(table(chosen, columns), ("n",)) is not None


@pytest.mark.parametrize("options", [{"csv.field-delimiter": "\\t"}, {"csv.escape-character": "\\"}])
def test_forms_whose_records_have_no_sure_end(options: dict[str, str]) -> None:
    assert block_reader(table("csv", TWO, **options), ("n",)) is None
    assert block_reader(table("csv", {"n": "INT"}, **options), ("n",)) is not None


@pytest.mark.parametrize(
    ("source", "data", "ends"),
    [
        (table("json", TWO), b"a\nb\r\nc\rd", [2, 5, 7]),
        (table("csv", {"n": "INT"}), b"1\n2\r", [2]),
        (table("csv", TWO), b"1,a\r\n2,b\rc\n", [5, 11]),
        (table("csv", TWO), b'1,"a\nb"\n2,"c""\n"\n3,"d\n', [8, 17]),
        # Odd quotes: text in a field, text behind a quote, a blank behind one, a comment.
        (table("csv", TWO), b'1,a"b\n2,c"\n', [6, 11]),
        (table("csv", TWO), b'1,"a"b\n2,"c\n"\n', [7, 14]),
        (table("csv", TWO), b'1,"a" \n2,b\n', [7, 11]),
        (table("csv", TWO), b'1,"a\n2,b\n', []),
        (table("csv", TWO, **{"csv.allow-comments": "true"}), b'# "\n1,"a\nb"\n', [4, 12]),
        (table("csv", TWO), b"", []),
    ],
)
def test_ends_of_records(source: Table, data: bytes, ends: list[int]) -> None:
    assert list(record_ends(source, memoryview(data))) == ends
    assert last_record_end(source, data) == (ends[-1] if ends else 0)


@pytest.mark.parametrize("shift", range(20))
def test_a_decimal_of_twenty_digits_is_left_to_spark_wherever_it_is(shift: int) -> None:
    """Arrow's parser computes another value for some of them. Long numbers of other columns do not matter."""
    source = table("json", {"v": "DECIMAL(38, 2)", "c": "DOUBLE"})
    line = f'{{"x":[1,2],"p":"{"p" * shift}","c":0.1234567890123456789,"v":%s}}\n'
    assert read((line % "1234567890123456789.5").encode(), source, "v") == [{"v": Decimal("1234567890123456789.50")}]
    for number in ("12345678901234567890.5", "-1.12345678901234567890", "12345678901234567890"):
        assert read((line % number).encode(), source, "v") is None


@pytest.mark.parametrize(
    ("kind", "plain", "others"),
    [
        ("TINYINT", ["0", "-5", "99", "127", "-127"], ["128", "1000", "-", "x", "1.0", "+1"]),
        ("INT", ["2147483647", "999999999", "-2147483647"], ["2147483648", "3000000000", "9" * 11]),
        ("BIGINT", ["9223372036854775807", "1" * 18], ["9223372036854775808", "1e3"]),
        ("DOUBLE", ["1.5", "-0.25", "1e5", "7"], ["N/A", "NaN", "1d", ".5", "1e400"]),
        ("DECIMAL(5, 2)", ["1", "-999.99", "12.5"], ["1000", "1.005", "1e1", ""]),
        ("BOOLEAN", ["true", "false"], ["True", "yes", "1"]),
        ("DATE", ["2024-12-31", "2023-02-28"], ["2023-02-30", "2024-13-01", "2024-1-1", "n/a"]),
        ("TIMESTAMP(3)", ["2024-01-01 10:11:12", "2024-01-01T10:11:12.123456"], ["2024-01-01", "2024-01-01 24:00:00"]),
        ("TIMESTAMP_LTZ(3)", ["2024-01-01 10:11:12Z", "2024-01-01 10:11:12+02:00"], ["2024-01-01 10:11:12"]),
    ],
)
def test_records_of_a_plain_form_are_readable(kind: str, plain: list[str], others: list[str]) -> None:
    numbers = kind.startswith(("TINY", "INT", "BIG", "DOUBLE", "DEC", "BOOL"))
    for chosen in ("csv", "json"):
        source = table(chosen, {"v": kind, "s": "STRING"})
        texts = [text for text in (*plain, *others) if text or chosen == "json"]
        if chosen == "csv":
            records = [f"{text},a\n".encode() for text in texts]
        else:
            records = [f'{{"v": {text if numbers else json.dumps(text)}, "s":"a"}}\n'.encode() for text in texts]
        data, ends = b"".join(records), np.cumsum([len(record) for record in records])
        found = plain_records(source, ("v",), data, ends)
        assert found is not None
        assert found.tolist() == [text in plain for text in texts]
        for record in records[: len(plain)]:
            assert read(record, source, "v") is not None


@pytest.mark.parametrize("chosen", ["csv", "json"])
@pytest.mark.parametrize("wrong", [["x"], ["x", None]])
def test_the_rows_between_odd_records_stay_rows(chosen: str, wrong: list[str | None]) -> None:
    dice = Random(gate_seed())
    source = table(chosen, {"n": "INT", "s": "STRING"}, **{f"{chosen}.ignore-parse-errors": "true"})
    for share in (0.01, 0.3):
        odd: list[int] = []
        records = []
        for number in range(2000):
            value = str(number)
            if dice.random() < share:
                odd.append(number)
                value = dice.choice(wrong) or "1,2"
            text = f'{value},"a""{number}"\n' if chosen == "csv" else f'{{"n":{value},"o":[1],"s":"a\\"{number}"}}\n'
            records.append(text.encode())
        reader = block_reader(source, ("n", "s"))
        assert reader is not None
        found = parts(
            b"".join(records), reader, partial(record_ends, source), partial(plain_records, source, ("n", "s"))
        )
        numbers, left = [], []
        for part in found:
            assert isinstance(part, Mixed)
            values = part.rows.column("n").to_pylist()
            for record, before in zip(part.records, part.before.to_pylist(), strict=True):
                left.append(records.index(record, len(numbers) + len(left)))
                assert before == len(values) or values[before] > left[-1]
                assert before == 0 or values[before - 1] < left[-1]
            numbers += values
            assert part.rows.column("s").to_pylist() == [f'a"{number}' for number in values]
        assert left == odd
        assert sorted([*numbers, *left]) == list(range(2000))
