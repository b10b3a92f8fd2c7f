"""Messages of Protobuf: what Flink 2.3 has read and written of them, and what is refused of tables."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.messages.formats import Part, value_part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.formats import prepare_part, row_decoder, row_encoder
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.test_formats import table
from tests.connectors.messages.test_topics import run, source
from tests.connectors.messages.test_topics import table as topic_table
from tests.flink.protobuf_cases import CLASSES, COLUMNS, MESSAGES, NUMBERED, NUMBERS_WRITTEN, WRITTEN

RECORDED = json.loads((Path(__file__).parents[2] / "flink" / "protobuf.json").read_text(encoding="utf-8"))
READ = [
    (file, way, case) for file, ways in RECORDED["read"].items() for way, cases in ways.items() for case in cases
]  # fmt: skip


def part_of(compiled: Path, file: str, columns: dict[str, str], **options: str) -> Part:
    declared = [f"{name} {kind}" for name, kind in columns.items()]
    named = {"protobuf__message-class-name": CLASSES[file], "protobuf__descriptor-file": str(compiled), **options}
    return prepare_part("t", value_part(table(*declared, format="protobuf", **named)))


def as_json(value: Any, data_type: DataType) -> Any:
    """A value as the format json of Flink writes it."""
    if value is None:
        return None
    if data_type.root == "ROW":
        return {n: as_json(value[n], c) for n, c in zip(data_type.names, data_type.children, strict=True)}
    if data_type.root == "ARRAY":
        return [as_json(each, data_type.children[0]) for each in value]
    if data_type.root == "MAP":
        return {key: as_json(each, data_type.children[1]) for key, each in value}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def expected(case: dict[str, Any]) -> dict[str, Any]:
    (row,) = case["found"]
    return {**row, "f": pytest.approx(row["f"])} if row["f"] is not None else row


@pytest.mark.parametrize(("file", "way", "case"), READ)
def test_a_message_is_read_as_flink_has_read_it(compiled: Path, file: str, way: str, case: str) -> None:
    kind, _, defaults = way.partition(", defaults ")
    columns = COLUMNS if kind == "names" else NUMBERED
    part = part_of(compiled, file, columns, **{"protobuf__read-default-values": defaults})
    decode, message = row_decoder(part, list(columns)), bytes.fromhex(RECORDED["messages"][file][case])
    answer = RECORDED["read"][file][way][case]
    if "refused" in answer:
        with pytest.raises(ValueError, match=r"it is no shop|has no value"):
            decode(message)
        return
    values = decode(message)
    assert values is not None
    types = [parse_type(kind) for kind in columns.values()]
    found = {name: as_json(value, t) for (name, value), t in zip(zip(columns, values, strict=True), types, strict=True)}
    assert found == expected(answer)


def item(sku: str | None, pieces: int | None) -> dict[str, Any]:
    return {"sku": sku, "pieces": pieces}


# The rows of WRITTEN and NUMBERS_WRITTEN.
ROWS: dict[str, dict[str, Any]] = {
    "nulls": {},
    "zeros": {
        "b": False, "i": 0, "l": 0, "u": 0, "v": 0, "f": 0.0, "d": 0.0, "s": "", "y": b"", "e": "NEW",
    },
    "values": {
        "b": True, "i": -5, "l": -6, "u": 7, "v": 8, "f": 1.5, "d": -2.25, "s": "hé", "y": b"\x00\xff",
        "e": "SENT", "camelCase": "c",
    },
    "ends": {"i": -(2**31), "l": -(2**63) + 1, "u": -1, "v": -1},
    "nested": {"item": item("a", 2), "items": [item("b", None), item(None, 3)]},
    "row of nulls": {"item": item(None, None)},
    "repeated": {"numbers": [1, -1, 0], "texts": ["x", ""], "states": ["PAID", "NEW"]},
    "nulls in arrays": {
        "numbers": [1, None], "texts": ["x", None], "states": ["PAID", None], "items": [item("b", 1), None],
    },
    "maps": {"counts": [("k", 1)], "by_name": [("m", item("q", 1))]},
    "nulls in maps": {"counts": [("k", None)], "by_name": [("m", None)]},
    "null key": {"counts": [(None, 1)]},
    "both": {"left_side": "l", "right_side": 3},
    "right": {"right_side": 0},
    "unknown enum": {"e": "LOST", "states": ["LOST"]},
    "enum in lower case": {"e": "paid"},
    "numbers of enums": {"e": 5, "states": [1, 0]},
    "unknown number": {"e": 3},
}  # fmt: skip


@pytest.mark.parametrize("file", CLASSES)
@pytest.mark.parametrize("case", [*WRITTEN, *NUMBERS_WRITTEN])
def test_a_row_is_written_as_flink_has_written_it(compiled: Path, file: str, case: str) -> None:
    columns = COLUMNS if case in WRITTEN else NUMBERED
    part = part_of(compiled, file, columns, **{"protobuf__write-null-string-literal": "nil"})
    found = row_encoder(part)([ROWS[case].get(name) for name in columns])
    assert found is not None
    assert found.hex() == RECORDED["written"][file][case]["found"]


def test_the_same_map_is_the_same_bytes(compiled: Path) -> None:
    encode = row_encoder(part_of(compiled, "orders3.proto", {"counts": "MAP<STRING, BIGINT>"}))
    entries = [(f"k{number}", number) for number in range(50)]
    assert encode([entries]) == encode([entries[::-1]])


@pytest.mark.parametrize("name", [*CLASSES.values(), *MESSAGES.values()])
def test_a_message_is_found_by_its_name_in_java_and_in_protobuf(compiled: Path, name: str) -> None:
    file = next(each for each in CLASSES if name in (CLASSES[each], MESSAGES[each]))
    part = part_of(compiled, file, {"i": "INT"}, **{"protobuf__message-class-name": name})
    assert row_decoder(part, ["i"])(b"\x10\x05") == [5]


def test_what_cannot_be_read_is_skipped_if_the_table_says_so(compiled: Path) -> None:
    part = part_of(compiled, "orders3.proto", {"s": "STRING"}, **{"protobuf__ignore-parse-errors": "true"})
    assert row_decoder(part, ["s"])(b"\x42\x05") is None


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ({"x": "INT"}, {}, "column 'x' is no field of the message shop.Order, which has b, i, l"),
        ({"i": "BIGINT"}, {}, "column 'i' is BIGINT, and the field shop.Order.i is INT"),
        ({"s": "BYTES"}, {}, "column 's' is BYTES, and the field shop.Order.s is STRING"),
        ({"numbers": "INT"}, {}, "column 'numbers' is INT, and the field shop.Order.numbers is repeated, an ARRAY"),
        ({"numbers": "ARRAY<BIGINT>"}, {}, "the field shop.Order.numbers is repeated INT"),
        ({"counts": "ARRAY<INT>"}, {}, "the field shop.Order.counts is a map"),
        ({"counts": "MAP<STRING, INT>"}, {}, "the field shop.Order.counts is a map with BIGINT"),
        ({"item": "STRING"}, {}, "the field shop.Order.item is a message, a ROW"),
        ({"item": "ROW<price INT>"}, {}, "column 'price' is no field of the message shop.Order.Item"),
        ({"e": "DOUBLE"}, {}, "the field shop.Order.e is an enum, STRING or INT"),
        ({"i": "INT"}, {"protobuf__message-class-name": "shop.None"}, "has no message 'shop.None'; it has com.example"),
    ],
)
def test_columns_that_are_not_what_is_defined_are_refused(
    compiled: Path, columns: dict[str, str], options: dict[str, str], problem: str
) -> None:
    with pytest.raises(RunError) as refused:
        part_of(compiled, "orders2.proto", columns, **options)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read: No such file or directory"), (b"x", "is no descriptor set")]
)
def test_a_file_that_defines_no_messages_is_named(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "other.desc"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match=problem) as refused:
        part_of(path, "orders2.proto", {"i": "INT"})
    assert str(path) in str(refused.value)


def test_a_file_without_what_it_imports_says_so(tmp_path: Path) -> None:
    from grpc_tools import protoc

    (tmp_path / "a.proto").write_text('syntax = "proto3"; message Item { int32 i = 1; }')
    (tmp_path / "b.proto").write_text('syntax = "proto3"; import "a.proto"; message Order { Item item = 1; }')
    path = tmp_path / "b.desc"
    assert protoc.main(["", f"-I{tmp_path}", f"--descriptor_set_out={path}", "b.proto"]) == 0
    with pytest.raises(RunError, match="was it made with --include_imports"):
        part_of(path, "orders2.proto", {"item": "ROW<i INT>"}, **{"protobuf__message-class-name": "Order"})


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (["i INT"], {}, "needs the option 'protobuf.message-class-name'"),
        (["i INT"], {"protobuf__message-class-name": "shop.Order"}, "needs the option 'protobuf.descriptor-file'"),
        (["d DATE"], {}, "the format protobuf cannot hold column 'd': it knows no DATE"),
        (["d ARRAY<DECIMAL(4, 2)>"], {}, "it knows no DECIMAL(4, 2)"),
    ],
)
def test_a_table_that_cannot_be_of_protobuf_is_refused(
    columns: list[str], options: dict[str, str], problem: str
) -> None:
    refused = table(*columns, format="protobuf", **options)
    assert any(problem in str(found) for found in check_table("t", refused)), check_table("t", refused)


@pytest.mark.spark
def test_messages_are_as_a_file_defines_them(
    spark: SparkSession, broker: Broker, tmp_path: Path, compiled: Path
) -> None:
    topic, result = broker.create(), broker.create()
    # By hand: field 3 (sint64, zigzag) and field 8 (text) of shop3.Order3; without a text, it is empty in proto3.
    broker.send(topic, [(None, b"\x18\x06" + b"\x42\x02hi"), (None, b"\x18\x06"), (None, b"\x18\x08")])
    of_value, of_key = (
        {f"{side}protobuf.message-class-name": name, f"{side}protobuf.descriptor-file": str(compiled)}
        for side, name in (("", "com.example.shop.Order3"), ("key.", "shop3.Order3"))
    )
    script = (
        source("orders", "l BIGINT, s STRING", broker, topic, format="protobuf", **of_value)
        + topic_table(
            "result", "l BIGINT, s STRING, PRIMARY KEY (l) NOT ENFORCED", broker, "upsert-kafka", topic=result,
            key__format="protobuf", value__format="protobuf", **of_key,
            **{f"value.{name}": value for name, value in of_value.items()},
        )
        + "INSERT INTO result SELECT l, MAX(s) FROM orders GROUP BY l;"
    )  # fmt: skip
    run(spark, script, tmp_path / "checkpoint")
    assert broker.latest(result) == {b"\x18\x06": b"\x18\x06\x42\x02hi", b"\x18\x08": b"\x18\x08"}
    broker.send(topic, [(None, b"\x42\x05h")])
    with pytest.raises(RunError, match=r"offset 3 does not fit its format, protobuf, .* it is no shop3.Order3"):
        run(spark, script, tmp_path / "checkpoint")
