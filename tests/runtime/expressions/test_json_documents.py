"""Functions of JSON give for each document what Flink recorded for it; without Spark."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from hintplan.plans.declarations.json_functions import JSON_FUNCTIONS
from hintplan.plans.errors import RunError
from hintplan.runtime.expressions import json_documents, json_reader
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.exact import exact_value
from hintplan.runtime.expressions.json_calls import FUNCTIONS, rows_at_once
from hintplan.runtime.operators.calc import ArrowCalc, Chosen, Computed
from tests.flink.function_values import FAILS, TABLES
from tests.flink.test_function_values import compiled
from tests.flink.test_functions import same
from tests.runtime.expressions.checking import checked_over

FLINK = Path(__file__).parents[2] / "flink"
RECORDED: dict[str, dict[str, Any]] = json.loads((FLINK / "functions_of_rows.json").read_text(encoding="utf-8"))


def argument(node: exp.Expr) -> Any:
    """The value of a literal."""
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else float(node.name) if "E" in node.name else int(node.name)
    if isinstance(node, exp.Neg):
        return -argument(node.this)
    assert isinstance(node, exp.Boolean)
    return node.this


@cache
def single_calls(table: str) -> dict[str, tuple[CheckedExpression, str, list[Any]]]:
    """Of the recorded expressions over a table, those that are one call over its documents: the checked call, the
    function and its other arguments.
    """
    calls = {}
    for sql, recorded in RECORDED[table].items():
        plan = compiled(table, sql)
        if isinstance(plan, str) or "error" in recorded:
            continue
        checked, _ = plan
        node = checked.tree
        if isinstance(node, exp.Anonymous) and node.name in FUNCTIONS and node.expressions[0].name == "d":
            calls[sql] = (checked, node.name, [argument(each) for each in node.expressions[1:]])
    return calls


MOST = {"documents": 70, "members": 15, "escapes": 130, "paths": 15, "limits": 4}
"""Of each table of documents, how many recorded expressions are such calls at least."""


@pytest.mark.parametrize("table", MOST)
def test_most_recorded_expressions_are_single_calls(table: str) -> None:
    assert len(single_calls(table)) >= MOST[table]


@pytest.mark.parametrize("table", MOST)
def test_functions_give_what_flink_recorded(table: str) -> None:
    different = {}
    for sql, (_, name, arguments) in single_calls(table).items():
        function, _ = FUNCTIONS[name]
        for (document, *_), recorded in zip(TABLES[table][1], RECORDED[table][sql]["values"], strict=True):
            value = function(document, *arguments)
            if recorded != FAILS and not same(value, recorded):
                different[sql, document] = (value, recorded)
    assert different == {}, "ours and Flink's"


@pytest.mark.parametrize("table", MOST)
def test_a_calc_in_arrow_calls_them_for_all_rows(table: str) -> None:
    documents = [document for document, *_ in TABLES[table][1]]
    rows = pa.table({"d": pa.chunked_array([documents[:1], documents[1:]], pa.string())})
    different = {}
    for sql, (text, name, _) in single_calls(table).items():
        value = exact_value(text, rows.schema, FUNCTIONS[name].kind)
        assert value is not None, f"Arrow does not compute {sql}"
        items = (("a", Computed(value)), ("d", Chosen("d")), ("b", Computed(value)))
        for size in (None, 1, 7):
            result = ArrowCalc(columns=items, condition=None, at_once=size)(rows)
            assert result["d"].to_pylist() == documents
            assert result["a"] == result["b"]
            for each, recorded in zip(result["a"].to_pylist(), RECORDED[table][sql]["values"], strict=True):
                if recorded != FAILS and not same(each, recorded):
                    different[sql, size] = (each, recorded)
    assert different == {}, "ours and Flink's"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrow_leaves_to_spark_what_is_not_of_a_column_and_constants(name: str) -> None:
    schema = pa.schema([("d", pa.string()), ("n", pa.int32())])
    _, *rest = (*JSON_FUNCTIONS[name], "nothing")
    right = {"kind": ", 'value'", "path": ", '$.a'", "nothing": ""}[rest[0]]
    wrong = {"kind": ", 'thing'", "path": ", '$['", "nothing": ", '$.a'"}[rest[0]]
    calls = {
        f"{name}(`d`{right})": True, f"{name}(`n`{right})": False, f"{name}('{{}}'{right})": False,
        f"{name}(NULL{right})": False, f"{name}(upper(`d`){right})": False, f"{name}(`d`{wrong})": False,
        f"{name}(`d`{right}, `n`)": False, f"{name}()": False,
    }  # fmt: skip
    kind = FUNCTIONS[name].kind

    def is_computed(call: str) -> bool:
        try:
            return exact_value(checked_over(call, schema.names), schema, kind) is not None
        except RunError:  # not even Spark may compute it
            return False

    assert {call: is_computed(call) for call in calls} == calls


def test_calls_that_read_the_same_documents_take_as_many_rows_as_are_remembered() -> None:
    one, two = "hp_json_value(`d`, '$.a')", "upper(HP_IS_JSON (`d`, 'value'))"
    assert rows_at_once(["`d`", one]) is rows_at_once(["hp_thing"]) is None
    many = rows_at_once([one, two])
    assert many is not None
    texts = [f"[{number}, 1.0]" for number in range(many)]
    documents = [json_reader.json_document(text) for text in texts]
    assert all(json_reader.json_document(text) is document for text, document in zip(texts, documents, strict=True))


def test_of_long_documents_few_are_kept() -> None:
    texts = [f'["{"x" * 20_000}", {number}]' for number in range(20)]
    first, *_, last = [json_reader.json_document(text) for text in texts]
    assert json_reader.json_document(texts[-1]) is last
    again = json_reader.json_document(texts[0])
    assert again == first
    assert again is not first


def test_documents_are_as_deep_as_flink_reads_them_wherever_they_are_read() -> None:
    deep, deeper = "[" * 1000 + "]" * 1000, "[" * 1001 + "]" * 1001

    def below(frames: int) -> tuple[Any, ...]:
        if frames:
            return below(frames - 1)
        return (
            json_documents.is_document(deep, "array"),
            json_documents.json_query(deep, "$") == deep,
            json_documents.is_document(deeper, "array"),
            json_documents.is_document("[" + "{}," * 5000 + "1]", "array"),
        )

    for frames in (0, 300):
        json_reader._short_document.cache_clear()
        json_reader._long_document.cache_clear()
        assert below(frames) == (True, True, False, True)


def test_an_endless_number_of_brackets_is_no_document() -> None:
    assert json_documents.is_document("[" * 1_000_000, "value") is False
    assert json_documents.json_value('{"a":' * 100_000, "lax $.a", "empty", "error") == "empty"
