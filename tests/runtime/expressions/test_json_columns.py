"""Functions of JSON over a column give what the function of each single text gives, which Flink's answers test."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from hintplan.runtime.expressions import json_columns, json_parts
from hintplan.runtime.expressions.json_calls import FUNCTIONS, JsonCall
from hintplan.runtime.expressions.json_parts import Part
from hintplan.runtime.expressions.shared_documents import with_shared_parts
from hintplan.runtime.kernels.evaluation import Apply, EvaluatedRows, Read
from tests.flink.function_values import TABLES

CALLS: tuple[tuple[Any, ...], ...] = (
    *(("hp_is_json", kind) for kind in ("value", "object", "array", "scalar")),
    *(
        ("hp_json_query", path, wrapper, "[]", "{}")
        for path in ("$", "$.a", "lax $.a.b", "lax $.a[0]", "$[-1]", "$.é")
        for wrapper in ("without", "conditional", "unconditional")
    ),
    *(
        (name, path, *defaults)
        for name, defaults in (
            ("hp_json_value", ("empty", "error")),
            ("hp_json_integer", (1, 2)),
            ("hp_json_double", (1.5, 2.5)),
            ("hp_json_boolean", (True, False)),
            ("hp_json_exists", (None,)),
        )
        for path in ("$", "$.a", "lax $.a", "$.a.b", "lax $.a[1].b", "$[0]", "lax $[-2].a", "$.😀", "$['a b']", "$.a.a")
    ),
)
NUMBERS = (
    "0", "-0", "7", "-12", "1.50", "-0.0", "0.00", "1e3", "1E-7", "0.0000001", "1e400", "9223372036854775808",
    "2147483648", "-2147483648", "18446744073709551616", "123456789012345678901234567890", "0.1e-2147483648",
    "1e99999999999", "1" * 1001, "0." + "1" * 1001, "1" * 99 + "." + "2" * 99, "4.9e-324",
    "01", "1.", ".5", "-", "1e", "+1", "NaN", "Infinity", "0x1", "1_0",
)  # fmt: skip
TEXTS = (
    '""', '"x"', '"größer 😀"', r'"\u0041\n\/\\\""', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\x"', r'"\u00z1"',
    '"\t"', '"\x7f\u2028"', '"null"', '"\x00"', "'x'", '"open', r'"\u0000\u001f"', r'"\b\f"',
)  # fmt: skip
NAMES = ('"a"', '"b"', '"a"', '"b"', '"a b"', '"é"', '"😀"', '"\uffff"', r'"\u0061"', r'"\ud800"', '"\ue000"', "a")
BLANKS = ("", "", "", " ", "\n", "\t\r", "\x0b", "\xa0")


def value(chance: random.Random, depth: int) -> str:
    """A value in JSON, or nearly."""
    form = chance.random()
    if depth and form < 0.35:
        return "{" + ",".join(member(chance, depth) for _ in range(chance.randrange(4))) + "}"
    if depth and form < 0.55:
        return "[" + ",".join(spaced(chance, value(chance, depth - 1)) for _ in range(chance.randrange(4))) + "]"
    if form < 0.75:
        return chance.choice(NUMBERS[:14] if chance.random() < 0.9 else NUMBERS)
    if form < 0.9:
        return chance.choice(TEXTS[:5] if chance.random() < 0.9 else TEXTS)
    return chance.choice(("true", "false", "null"))


def member(chance: random.Random, depth: int) -> str:
    name = chance.choice(NAMES[:8] if chance.random() < 0.95 else NAMES)
    return spaced(chance, name) + ":" + spaced(chance, value(chance, depth - 1))


def spaced(chance: random.Random, text: str) -> str:
    blanks = BLANKS if chance.random() < 0.02 else BLANKS[:6]
    return chance.choice(blanks) + text + chance.choice(blanks)


def documents(seed: int, number: int) -> Iterator[str | None]:
    """Documents, of which a quarter have a fault: cut off, followed by text, or with another character."""
    chance = random.Random(seed)
    for _ in range(number):
        text = spaced(chance, value(chance, 4))
        fault, place = chance.random(), chance.randrange(len(text) + 1)
        if fault < 0.1:
            text = text[:place]
        elif fault < 0.15:
            text += chance.choice((" x", "}", "1", "\0", ",", " {}", "é", "$"))
        elif fault < 0.25:
            text = text[:place] + chance.choice('{}[]",:\\ux0-.e\n\ufeff/') + text[place + 1 :]
        yield None if chance.random() < 0.01 else text


def differences(texts: list[str | None]) -> dict[Any, Any]:
    """For each call and text: the result of the column, and of the text alone, if they differ."""
    different = {}
    for name, *constants in CALLS:
        function, kind = FUNCTIONS[name]
        expected = pa.array([function(text, *constants) for text in texts], kind)
        results = JsonCall(name, tuple(constants))(pa.array(texts, pa.string()))
        assert results.type == kind
        for text, *both in zip(texts, results.to_pylist(), expected.to_pylist(), strict=True):
            if repr(both[0]) != repr(both[1]):
                different[name, *constants, text] = both
    return different


def test_a_column_gives_what_each_text_gives() -> None:
    assert differences([*documents(1, 1500)]) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 12))
def test_columns_of_many_documents_give_what_each_text_gives(seed: int) -> None:
    assert differences([*documents(seed, 20_000)]) == {}


def test_documents_of_flink_give_in_a_column_what_each_gives() -> None:
    texts = [row[0] for table in ("documents", "escapes", "paths", "limits", "members") for row in TABLES[table][1]]
    assert differences([text for text in texts if text is None or len(text) < 300]) == {}


def test_documents_at_the_limits_give_in_a_column_what_each_gives() -> None:
    nested = ['{"a":' + "[" * depth + "]" * depth + "}" for depth in (199, 998, 999, 1000, 1001)]
    longer = ['{"a":"' + "x" * 5000 + '","b":' + "1" * digits + "}" for digits in (99, 100, 1000, 1001)]
    assert differences([*nested, *longer, '{"a":"' + "[" * 1001 + '"}', "[" * 100_000]) == {}


def test_a_value_of_another_kind_on_the_path_is_read_like_any_other() -> None:
    parts = ("{}", "[]", "null", "1", '"x"', '{"b":null}', '{"b":1}', '[null,{"b":2}]', '[1,{"b":2}]', "[[],[]]")
    texts = [f'{{"a":{part}}}' for part in parts]
    assert differences([*texts, *parts, '{"a":1,"a":{"b":1}}', '{"a":{"b":1},"a":1}', '{"a":{"b":1},"a":{}}']) == {}


def test_functions_of_one_column_share_its_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted(texts: pa.Array, parts: Any) -> Any:
        reads.append(len(parts))
        return json_parts.read_parts(texts, parts)

    monkeypatch.setattr(json_columns, "read_parts", counted)
    different = {}
    for seed, size in ((13, 1), (14, 7), (15, 400)):
        texts = [*documents(seed, size)]
        column = pa.array(["before", *texts], pa.string()).slice(1)
        chosen = random.Random(seed).sample(CALLS, 12)
        for calls in (chosen, [chosen[0], chosen[0]], [call for call in CALLS if call[1] == "$.a"]):
            read = Read(name="r.d", kind=pa.string())
            nodes = [
                Apply(function=JsonCall(name, tuple(rest)), args=(read,), kind=FUNCTIONS[name].kind, text="")
                for name, *rest in calls
            ]
            reads.clear()
            rows = EvaluatedRows(lambda _name, column=column: column, size)
            for call, node in zip(calls, with_shared_parts(nodes), strict=True):
                function, kind = FUNCTIONS[call[0]]
                expected = pa.array([function(text, *call[1:]) for text in texts], kind)
                if (given := node.on(rows)) != expected:
                    different[call, size] = (given, expected)
            assert len(reads) <= 1
            assert json_columns._shared is None
    assert different == {}


def test_a_column_that_has_changed_is_read_again() -> None:
    parts = (Part(("a",)), Part(("b",)))
    first, second = (JsonCall("hp_json_value", (path,), parts) for path in ("$.a", "$.b"))
    for each in range(3):
        texts = pa.array([f'{{"a":{each},"b":"{each}"}}', "[]"])
        assert first(texts).to_pylist() == [str(each), None]
        if each != 1:  # in between, nothing asks for the second part
            assert second(texts).to_pylist() == [str(each), None]
    assert second(pa.array(['{"b":7}'])).to_pylist() == ["7"]
    assert first(pa.array(['{"a":8}'])).to_pylist() == ["8"]


def test_faults_that_prove_a_text_to_be_no_document_need_no_other_reader() -> None:
    texts = ['{"a":1', '{"a":tru}', '{"a" 1}', "[1,]", '{"a":"\x01"}', "", "-", "[01]"]
    left = ['{"a":1} x', "1 2", '{"a":"\\ud800"}', "[" * 1001, f"1{'0' * 1000}", None]
    read = json_parts.read_parts(pa.array([*texts, '{"a":1}', *left], pa.string()), (Part(("a",)),))
    assert read.broken == [*range(len(texts))]
    assert sorted(read.left) == [*range(len(texts) + 1, len(texts) + 1 + len(left))]


def test_ten_digits_are_found_wherever_they_are() -> None:
    for before in range(12):
        for digits in range(8, 13):
            texts = pa.array(["x" * before, "12345678901234567890"[:digits] + "x", "1,2"])
            assert json_parts._has_ten_digits(texts) or digits < 10
            assert not json_parts._has_ten_digits(pa.array(["x" * before + "123456", "a1b2c3"]))


def test_without_msgspec_a_column_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([json.dumps({"a": {"b": number / 8}}) for number in range(5)] + ["{} x", None])
    fast = JsonCall("hp_json_value", ("$.a.b",))(texts)
    monkeypatch.setattr(json_parts, "msgspec", None)
    assert json_columns.json_column(texts, "hp_json_value", ("$.a.b",)) is None
    slow = JsonCall("hp_json_value", ("$.a.b",))(texts)
    assert fast.to_pylist() == slow.to_pylist() == ["0.0", "0.125", "0.25", "0.375", "0.5", None, None]
