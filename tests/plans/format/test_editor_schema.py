"""The schema for editors: all described, completions that make sense, and nothing refused that hintplan takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.format.editor_schema import editor_schema
from hintplan.plans.model.config import KEYS

SCHEMA = editor_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PLANS = sorted(Path(__file__).parents[1].glob("*.json"))


def resolved(node: Any) -> Any:
    """The node with what it refers to; what it says itself wins, as in editors."""
    if isinstance(node, dict) and "$ref" in node:
        return {**resolved(SCHEMA["$defs"][node["$ref"].removeprefix("#/$defs/")]), **node}
    return node


def branches(node: Any, value: Any) -> Iterator[Any]:
    """The schemas that speak of ``value``: the node, and the branches that its content chooses."""
    node = resolved(node)
    yield node
    for branch in node.get("allOf", ()):
        if "if" not in branch:
            yield from branches(branch, value)
        elif jsonschema.Draft202012Validator({**branch["if"], "$defs": SCHEMA["$defs"]}).is_valid(value):
            yield from branches(branch["then"], value)


def at(document: Any, *path: Any) -> list[Any]:
    """The schemas of what stands at ``path`` in ``document``, as an editor finds them."""
    found, value = list(branches(SCHEMA, document)), document
    for part in path:
        below = []
        value = value[part] if isinstance(value, list) or part in value else None
        for node in found:
            child = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
            below += [*branches(child, value)] if child is not None else []
        found = below
    return found


def keys(document: Any, *path: Any) -> set[str]:
    """The keys that an editor offers in the object at ``path``."""
    return {key for node in at(document, *path) for key in node.get("properties", {})}


def values(document: Any, *path: Any) -> set[Any]:
    """The values that an editor offers at ``path``."""
    found: set[Any] = set()
    for node in at(document, *path):
        for one in (node, *node.get("anyOf", ())):
            found |= {*one.get("enum", ()), *one.get("examples", ())} | (
                {one["default"]} if "default" in one else set()
            )
            found |= {one["const"]} if "const" in one else set()
    return found


@pytest.fixture
def document(plan_text: str) -> Any:
    return json.loads(plan_text)


def test_it_is_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_property_has_a_description() -> None:
    missing = []

    def visit(node: Any, path: str) -> None:
        if isinstance(node, dict):
            for name, child in node.get("properties", {}).items():
                # A condition only compares, and a connector is described where it is chosen.
                if "description" not in resolved(child) and not path.endswith(("/if", "/then")):
                    missing.append(f"{path}.{name}")
            for name, child in node.items():
                visit(child, f"{path}/{name}")
        elif isinstance(node, list):
            for index, child in enumerate(node):
                visit(child, f"{path}/{index}")

    visit(SCHEMA, "")
    assert missing == []


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_the_plans_of_the_tests_are_valid(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(json.loads(path.read_text()))] == []


def test_defaults_and_examples_are_valid_themselves() -> None:
    def visit(node: Any) -> None:
        if isinstance(node, dict):
            given = [*node.get("examples", ())] + ([node["default"]] if "default" in node else [])
            if not isinstance(node.get("default"), dict):
                for value in given:
                    jsonschema.Draft202012Validator({**node, "$defs": SCHEMA["$defs"]}).validate(value)
            for child in node.values():
                visit(child)
        elif isinstance(node, list):
            for child in node:
                visit(child)

    visit(SCHEMA)


def test_config_offers_every_key_and_no_other(document: Any) -> None:
    offered = keys(document, "config")
    assert offered == {key for key, known in KEYS.items() if known.in_config}
    assert values(document, "config", "table.exec.async-lookup.output-mode") == {"ordered", "allow_unordered"}
    assert "5 min" in values(document, "config", "table.exec.async-lookup.timeout")
    document["config"]["table.exec.state.tll"] = "1 h"
    assert not VALIDATOR.is_valid(document)


def test_operators_offer_the_keys_of_their_kind(document: Any) -> None:
    kinds = {operator["op"]: index for index, operator in enumerate(document["operators"])}
    assert {"keys", "condition", "state", "join-type"} <= keys(document, "operators", kinds["join"])
    assert "state" not in keys(document, "operators", kinds["scan"])
    assert values(document, "operators", kinds["join"], "join-type") >= {"inner", "left", "full", "semi"}
    assert {"scan", "join", "sink"} <= values({"operators": [{}]}, "operators", 0, "op")


def test_durations_are_offered_and_checked(document: Any) -> None:
    join = next(index for index, operator in enumerate(document["operators"]) if operator["op"] == "join")
    offered = values(document, "operators", join, "state", 0, "ttl")
    assert {"3 d", "12 h"} <= offered
    assert all(parse_duration(text) >= 0 for text in offered)
    document["operators"][join]["state"][0]["ttl"] = "3"
    assert not VALIDATOR.is_valid(document)


def test_settings_of_lookups_offer_their_defaults() -> None:
    document = json.loads((Path(__file__).parents[1] / "enriched_orders.json").read_text())
    lookup = next(index for index, operator in enumerate(document["operators"]) if operator["op"] == "lookup-join")
    assert 100 in values(document, "operators", lookup, "async", "capacity")
    assert values(document, "operators", lookup, "cache", "lookup.cache") == {"NONE", "PARTIAL", "FULL"}


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_option_of_a_connector_is_offered_with_its_default(name: str) -> None:
    spec = CONNECTORS[name]
    (options,) = list(branches(SCHEMA["$defs"]["table"]["properties"]["options"], {"connector": name}))[1:]
    assert {option.name for option in spec.options} <= options["properties"].keys()
    for option in spec.options:
        shown = options["properties"][option.name]
        assert (shown.get("default"), shown["description"]) == (option.default, option.description)
    assert ("lookup.cache" in options["properties"]) == isinstance(spec, LookedUp)


def test_every_connector_is_offered_with_its_description() -> None:
    offered = SCHEMA["$defs"]["table"]["properties"]["options"]["properties"]["connector"]
    descriptions = [connector.description for connector in CONNECTORS.values()]
    assert (offered["enum"], offered["enumDescriptions"]) == (list(CONNECTORS), descriptions)


def options_valid(**options: str) -> bool:
    node = {**SCHEMA["$defs"]["table"]["properties"]["options"], "$defs": SCHEMA["$defs"]}
    return jsonschema.Draft202012Validator(node).is_valid({name.replace("__", "."): v for name, v in options.items()})


def test_options_are_checked_by_their_connector() -> None:
    assert options_valid(connector="print", **{"print-identifier": "x"})
    assert not options_valid(connector="print", **{"print-identifer": "x"})
    assert not options_valid(connector="filesystem", path="data")
    assert not options_valid(connector="filesystem", path="data", format="xml")
    assert not options_valid(connector="jdbc", url="u", **{"table-name": "t", "password": "hunter2"})
    assert options_valid(
        connector="jdbc", url="u", **{"table-name": "t", "password": "${env:P}", "lookup.cache": "partial"}
    )
    assert options_valid(connector="datagen", **{"fields.id.kind": "sequence", "rows-per-second": "${env:RATE}"})
    assert not options_valid(connector="datagen", **{"fields.id.knd": "sequence"})
    assert options_valid(connector="http", url="http://x/{id}", **{"header.accept": "a", "timeout": "3"})


def test_what_hintplan_accepts_of_an_option_the_editor_accepts(patched: Callable[..., str]) -> None:
    from hintplan.plans.connectors.check import check_table

    for spec in CONNECTORS.values():
        for option in spec.options:
            for value in ("true", "TRUE", "3", "10 s", "${env:X}", "x", "csv", "hash", "\\t", ",", "module.Class"):
                given = {"connector": spec.name, option.name: value}
                table = Table(columns=(TableColumn(name="v", type="STRING"),), options=given)
                wrong = [p for p in check_table("t", table) if p.path == f"tables.t.options.{option.name}"]
                schema = next(
                    branch["then"]["properties"][option.name]
                    for branch in SCHEMA["$defs"]["table"]["properties"]["options"]["allOf"]
                    if branch["if"]["properties"]["connector"]["const"] == spec.name
                )
                if not wrong:
                    validator = jsonschema.Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})
                    assert validator.is_valid(value), given


def test_patterns_are_ones_that_javascript_knows() -> None:
    patterns = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', json.dumps(SCHEMA))
    assert patterns
    assert [p for p in patterns if re.search(r"\(\?[aiLmsux<P]|\\[AZ]|\[\[:", json.loads(f'"{p}"'))] == []
