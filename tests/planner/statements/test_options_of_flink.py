"""Options of Flink's connectors: those that change nothing are noted and left out, others are refused with advice.

Advice is tested by what it advises: the options that it names are known, and scripts that follow it compile.
"""

from __future__ import annotations

import re

import pytest

import hintplan
from hintplan.planner.compile import compile_script
from hintplan.plans.connectors.connector import Readable
from hintplan.plans.connectors.messages.format_options import CHANGELOGS, OF_REGISTRY
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError, SqlError

KAFKA = {"topic": "t", "properties.bootstrap.servers": "k:9092", "scan.startup.mode": "earliest-offset"}
NEEDED = {
    "blackhole": {},
    "datagen": {},
    "filesystem": {"path": "t", "format": "json"},
    "jdbc": {"url": "jdbc:sqlite:x.db", "table-name": "t"},
    "kafka": {**KAFKA, "format": "json"},
    "print": {},
    "upsert-kafka": {
        "topic": "t",
        "properties.bootstrap.servers": "k:9092",
        "key.format": "json",
        "value.format": "json",
    },
}
WATERMARKS = ("scan.watermark.alignment.group", "scan.watermark.emit.on-event.gap")
"""Options of every source in Flink, by FLIP-296, that have no effect here."""
IDLE = [
    *((connector, option) for connector in NEEDED for option in CONNECTORS[connector].idle),
    *(
        (connector, option)
        for connector in NEEDED
        if isinstance(CONNECTORS[connector], Readable)
        for option in WATERMARKS
    ),
]
INSTEAD = [(connector, option) for connector in NEEDED for option in CONNECTORS[connector].instead]
OPTIONS = {name for each in CONNECTORS.values() for name in each.settings} | {"value.json"}
OF_FORMATS = {
    **{name: {f"{name}.url": "http://localhost:8081"} for name in OF_REGISTRY},
    "protobuf": {"protobuf.message-class-name": "shop.Order", "protobuf.descriptor-file": "orders.desc"},
}
VALUES = [
    (connector, option, value)
    for connector in NEEDED
    for option, values in CONNECTORS[connector].values.items()
    for value in values
]


def script(connector: str, **more: str) -> str:
    """A script that writes a table of ``connector``, with the options that it needs and ``more``."""
    options = {"connector": connector, **NEEDED[connector], **{key.replace("__", "."): v for key, v in more.items()}}
    if "value.format" in more:
        options.pop("format", None)
    listed = ",\n".join(f"'{key}' = '{value}'" for key, value in options.items())
    return (
        f"CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (\n{listed}\n);"
        if connector in ("jdbc", "upsert-kafka")
        else f"CREATE TABLE t (id BIGINT, v STRING) WITH (\n{listed}\n);"
    ) + (
        "CREATE TABLE s (id BIGINT, v STRING) WITH ('connector' = 'blackhole'); INSERT INTO s SELECT * FROM t;"
        if connector == "datagen"
        else "CREATE TABLE s (id BIGINT, v STRING) WITH ('connector' = 'datagen'); INSERT INTO t SELECT * FROM s;"
    )


def test_each_connector_with_such_options_is_tried() -> None:
    assert {name for name, each in CONNECTORS.items() if each.idle or each.instead or each.values} <= NEEDED.keys()


def refusal(text: str) -> tuple[int | None, int | None, str, str]:
    with pytest.raises(SqlError) as caught:
        compile_script(text)
    (found,) = caught.value.diagnostics
    return found.line, found.column, found.message, found.hint or ""


@pytest.mark.parametrize(("connector", "option"), IDLE)
def test_an_option_that_changes_nothing_is_noted_where_it_stands_and_left_out(connector: str, option: str) -> None:
    text = script(connector, **{option: "1"} if option[-1] != "." else {f"{option}x": "1"})
    option = option if option[-1] != "." else f"{option}x"
    done = compile_script(text)
    assert option not in done.plan.tables["t"].options
    (note,) = done.findings
    line = 2 + text.split("\n")[1:].index(next(one for one in text.split("\n") if one.startswith(f"'{option}'")))
    assert (note.severity, note.diagnostic.line, note.diagnostic.column) == ("note", line, 1)
    assert note.diagnostic.message.startswith(f"'{option}' has no effect: ")
    assert done.plan == compile_script(script(connector)).plan


@pytest.mark.parametrize(("connector", "option"), IDLE)
def test_a_plan_does_not_have_it(connector: str, option: str) -> None:
    plan = compile_script(script(connector)).plan
    option = option if option[-1] != "." else f"{option}x"
    edited, _ = set_value(plan, f"tables.t.options.{option}", "1")
    with pytest.raises(PlanError) as caught:
        hintplan.loads(hintplan.dumps(edited))
    assert f"'{option}' has no effect: " in str(caught.value)


@pytest.mark.parametrize(("connector", "option"), INSTEAD)
def test_advice_for_an_option_names_options_that_there_are(connector: str, option: str) -> None:
    line, column, message, hint = refusal(script(connector, **{option: "1"}))
    assert (line, column) == (2 + len(NEEDED[connector]) + 1, 1)
    assert option in message
    assert hint == CONNECTORS[connector].instead[option]
    named = [name for name in re.findall(r"'([a-z.-]+)'", hint) if "." in name]
    assert [name for name in named if name not in OPTIONS] == []


@pytest.mark.parametrize(("connector", "option", "value"), VALUES)
def test_advice_for_a_value_compiles(connector: str, option: str, value: str) -> None:
    key = {"key.fields": "v"} if connector == "kafka" and option == "key.format" else {}
    *_, message, hint = refusal(script(connector, **key, **{option: value}))
    assert value in message
    assert hint == CONNECTORS[connector].values[option][value]
    choices = next(each.choices for each in CONNECTORS[connector].options if each.name == option)
    named = [name for name in re.findall(r"'([a-z-]+)'", hint) if name in choices]
    for instead in named:
        before = option.removesuffix("format")
        more = {f"{before}{key}": value for key, value in OF_FORMATS.get(instead, {}).items()}
        if instead == "raw" and connector == "upsert-kafka":
            more["value.fields-include"] = "EXCEPT_KEY"
        reads = script(connector, **key, **{option: instead, **more})
        if instead in CHANGELOGS:
            reads = f"{reads.partition(');')[0]}); CREATE TABLE s (id BIGINT, v STRING) WITH ('connector' = 'print');"
            reads += "INSERT INTO s SELECT * FROM t;"
        if instead == "raw" and connector != "upsert-kafka" and before != "key.":
            reads = reads.replace("id BIGINT, v STRING", "v STRING")
        compile_script(reads)
    assert named or hint.startswith(("remove it: ", "let Debezium write"))


@pytest.mark.parametrize("connector", CONNECTORS)
def test_no_hint_lists_all_of_many_options(connector: str) -> None:
    text = f"CREATE TABLE t (id BIGINT) WITH ('connector' = '{connector}', 'zzzz-qqqq' = '1');"
    with pytest.raises(SqlError) as caught:
        compile_script(text)
    (hint,) = (found.hint for found in caught.value.diagnostics if "zzzz-qqqq" in found.message)
    assert len(hint) < 300
    if len(CONNECTORS[connector].settings) > 12:
        assert hint == f"docs/connectors/{connector}.md has its {len(CONNECTORS[connector].settings)} options"


def test_add_jar_is_noted() -> None:
    done = compile_script(f"ADD JAR '/opt/flink/lib/postgresql.jar';\n{script('jdbc')}")
    (note,) = done.findings
    assert note.diagnostic.message == "ADD JAR has no effect: connectors are built in, and functions are Python classes"
    assert note.diagnostic.line == 1
    with pytest.raises(SqlError, match="expected the path of a JAR"):
        compile_script("ADD JAR;")
