"""The shipped schema against the standard's own validator, and the reader of the schema against both."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.format.schema import ENOUGH, schema_findings, schema_text
from hintplan.plans.format.schema_findings import ORDER
from hintplan.plans.operators import BY_OP as OPS

SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SAMPLES = sorted(Path(__file__).parents[1].glob("*.json"))
"""Plans of streams with joins, lookups, function calls and grouping sets."""
JUNK = st.sampled_from(
    [None, True, 0, -1, 7, "", "x", "3 d", "left.x", [], ["a"], ["a", "a"], {}, {"name": "x"}, "join"]
)
NEW_KEYS = st.sampled_from(["extra", "filter", "distinct", "comment"])


def test_the_schema_is_valid_json_schema_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_operator_has_a_definition_that_op_selects() -> None:
    chosen = {branch["then"]["$ref"] for branch in SCHEMA["$defs"]["operator"]["allOf"]}
    assert chosen == {f"#/$defs/{op}" for op in OPS}
    for op in OPS:
        definition = SCHEMA["$defs"][op]
        assert definition["additionalProperties"] is False
        assert definition["properties"]["op"]["const"] == op
        assert definition["description"]


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every schema in ``schema``, but for the conditions of branches."""
    yield schema
    for name in ("properties", "$defs"):
        for child in schema.get(name, {}).values():
            yield from _schemas(child)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _schemas(schema[name])


def test_there_are_words_for_every_keyword_of_the_schema() -> None:
    annotations = {"$schema", "$id", "title", "description", "examples"}
    read = {"$defs", "$ref", "allOf", "properties", "additionalProperties", "items", *ORDER}
    for schema in _schemas(SCHEMA):
        assert not schema.keys() - annotations - read, schema
        if "$ref" in schema:
            assert not schema.keys() - annotations - {"$ref"}, "what stands beside a reference is not read"
        # A name is written into a JSON pointer as it is.
        assert all(re.fullmatch(r"[\w.-]+", name) for key in ("properties", "$defs") for name in schema.get(key, ()))
        for branch in schema.get("allOf", ()):
            assert branch.keys() == {"if", "then"}
            assert branch["then"].keys() == {"$ref"}
            ((key, constant),) = branch["if"]["properties"].items()
            assert (constant.keys(), branch["if"]["required"]) == ({"const"}, [key])


def test_the_sample_plan_is_valid_to_the_standard_validator(plan_text: str) -> None:
    VALIDATOR.validate(json.loads(plan_text))
    assert schema_findings(json.loads(plan_text)) == []


def test_the_examples_in_the_schema_match_their_own_patterns() -> None:
    def visit(node: Any) -> None:
        if isinstance(node, dict):
            for example in node.get("examples", ()):
                jsonschema.Draft202012Validator({**node, "$defs": SCHEMA["$defs"]}).validate(example)
            for child in node.values():
                visit(child)

    visit(SCHEMA)


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_a_damaged_plan_is_refused_exactly_when_the_standard_validator_refuses_it(data: st.DataObject) -> None:
    document = json.loads(data.draw(st.sampled_from(SAMPLES)).read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(_places(document)[1:]))
        container = document
        for part in parents:
            container = container[part]
        damage = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if damage == "remove":
            del container[last]
        elif damage == "add" and isinstance(container, dict):
            container[data.draw(st.sampled_from(["extra", "filter", "distinct", "comment"]))] = deepcopy(
                data.draw(JUNK)
            )
        else:
            container[last] = deepcopy(data.draw(JUNK))
        if not document:
            break
    # Types and durations are parsed beyond their patterns, so there the reader may refuse more.
    refused = [
        finding for finding in schema_findings(document) if not finding.message.startswith(("bad type", "bad duration"))
    ]
    errors = [
        error for error in VALIDATOR.iter_errors(document) if error.validator != "pattern" or "ttl" not in error.path
    ]
    errors = [error for error in errors if not _is_duration_pattern(error)]
    assert bool(refused) == bool(errors), (refused, errors)


def _is_duration_pattern(error: jsonschema.ValidationError) -> bool:
    return error.validator == "pattern" and error.validator_value == SCHEMA["$defs"]["duration"]["pattern"]


@pytest.mark.parametrize("text", ["3 d", "12 h", "PT1H30M", "0 ms", " 5 minutes ", "1500 µs"])
def test_editors_accept_what_is_a_duration(text: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA["$defs"]["duration"]).validate(text)


@pytest.mark.parametrize(
    "damage",
    [
        lambda document, many: document["operators"][0].update(columns=[0] * many),
        lambda document, many: document["operators"][0].update(columns=["a"] * many + [1] * many),
        lambda document, many: document.update(operators=[0] * many),
        lambda document, many: document.update(reasons={f"x{index}": "" for index in range(many // 10)}),
        lambda document, many: document.update({f"x{index}": [0] * 10 for index in range(many // 10)}),
    ],
    ids=["scalars", "second half", "operators", "members", "keys"],
)
def test_a_million_mistakes_are_refused_as_quickly_as_a_hundred(plan_text: str, damage: Any) -> None:
    document = json.loads(plan_text)
    damage(document, 1_000_000)
    started = time.process_time()
    found = schema_findings(document)
    # At most a second on an idle core; a copy of every mistake would take half a minute, and gigabytes.
    assert time.process_time() - started < 5
    assert 0 < len(found) <= ENOUGH


def test_what_is_wrong_with_an_operator_is_said_by_its_own_kind(plan_text: str) -> None:
    document = json.loads(plan_text)
    del document["operators"][0]["id"]
    document["operators"][1] = "scan"
    document["operators"][2]["op"] = "scann"
    found = [(finding.path, finding.message, finding.hint) for finding in schema_findings(document)]
    assert found[:2] == [
        (("operators", 0), "missing key 'id'", None),
        (("operators", 1), "expected an object, found 'scan'", None),
    ]
    assert found[2][0] == ("operators", 2, "op")
    assert found[2][2] == "did you mean 'scan'?"
    assert len(found) == 3


def test_a_line_break_after_an_id_is_not_part_of_its_pattern(plan_text: str) -> None:
    document = json.loads(plan_text)
    document["operators"][0]["id"] += "\n"
    (found,) = schema_findings(document)
    assert found.path == ("operators", 0, "id")


def test_an_index_is_not_written_with_a_decimal_point(plan_text: str) -> None:
    document = json.loads(plan_text)
    state = next(operator["state"] for operator in document["operators"] if "state" in operator)
    state[0]["index"] = 0.0
    (found,) = schema_findings(document)
    assert found.message == "expected a whole number, found the number 0.0"
