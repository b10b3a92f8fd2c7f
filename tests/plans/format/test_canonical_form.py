"""One plan, one sequence of bytes: layout, order, round trips, the same in every process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hintplan
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.declarations.tables import Column, Table, TableColumn, Watermark
from hintplan.plans.format.document import table_document
from hintplan.plans.format.printer import print_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    Expand,
    GivenColumn,
    Join,
    JoinColumn,
    JoinKey,
    LookupJoin,
    LookupKey,
    Operator,
    Scan,
    SelectItem,
    Sink,
    Union,
    Unnest,
    Values,
)
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.state import STATE_SETTINGS, StateEntry, ttl_settings


def test_a_plan_written_by_hand_in_canonical_form_comes_back_byte_by_byte(plan_text: str) -> None:
    assert hintplan.dumps(hintplan.loads(plan_text)).decode() == plan_text


def test_any_layout_of_the_same_plan_becomes_canonical(plan_text: str) -> None:
    document = json.loads(plan_text)
    for indent in (None, 0, 7):
        assert hintplan.dumps(hintplan.loads(json.dumps(document, indent=indent))).decode() == plan_text


def test_options_keep_the_order_of_the_sql_after_the_connector(plan: Plan) -> None:
    options = {"path": "a", "format": "json", "connector": "filesystem"}
    table = replace(plan.tables["orders"], options=options)
    written = json.loads(hintplan.dumps(replace(plan, tables={**plan.tables, "orders": table})))
    assert list(written["tables"]["orders"]["options"]) == ["connector", "path", "format"]


def test_config_and_tables_are_sorted(plan: Plan) -> None:
    config = {"table.local-time-zone": "UTC", "parallelism.default": "2", **plan.config}
    tables = dict(reversed(plan.tables.items()))
    written = json.loads(hintplan.dumps(replace(plan, config=config, tables=tables)))
    assert list(written["config"]) == ["parallelism.default", "table.exec.state.ttl", "table.local-time-zone"]
    assert list(written["tables"]) == ["customers", "orders", "result"]


def test_a_value_stands_on_one_line_while_it_fits_in_120_columns() -> None:
    fitting = "x" * (119 - len('{ "k": "" }'))
    assert print_value({"k": fitting}) == f'{{ "k": "{fitting}" }}'
    assert print_value({"k": fitting + "x"}) == f'{{\n  "k": "{fitting}x"\n}}'


def test_what_a_terminal_would_not_show_is_escaped() -> None:
    written = print_value("a\x1b[2K\u202e\u00a0ü\U000e0041日本")
    assert written == '"a\\u001b[2K\\u202e\\u00a0ü\\udb40\\udc41日本"'
    assert json.loads(written) == "a\x1b[2K\u202e\u00a0ü\U000e0041日本"


def test_digests_cover_facts_only(plan: Plan) -> None:
    before = json.loads(hintplan.dumps(plan))["digests"]
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    state = tuple(replace(entry, settings=ttl_settings(edit="9 d")) for entry in join.state)
    operators = tuple(replace(join, state=state) if o.id == join.id else o for o in plan.operators)
    orders = plan.tables["orders"]
    tables = {**plan.tables, "orders": replace(orders, options={**orders.options, "path": "elsewhere"})}
    edited = replace(plan, name="other", config={}, operators=operators, tables=tables)
    assert json.loads(hintplan.dumps(edited))["digests"] == before


def test_a_digest_is_sha256_over_sorted_compact_json_of_the_facts(plan_text: str) -> None:
    document = json.loads(plan_text)
    for operator in document["operators"]:
        facts = dict(operator)
        if "state" in facts:
            keep = ("index", "name", "input")
            facts["state"] = [{key: entry[key] for key in keep} for entry in facts["state"]]
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        expected = hashlib.sha256(text.encode()).hexdigest()[:16]
        assert document["digests"]["operators"][operator["id"]] == expected


@pytest.mark.slow
def test_the_bytes_are_the_same_in_every_process(plan_text: str, tmp_path: Path) -> None:
    source = tmp_path / "plan.json"
    source.write_text(json.dumps(json.loads(plan_text), sort_keys=True), encoding="utf-8")
    program = (
        "import sys, hintplan; sys.stdout.buffer.write(hintplan.dumps(hintplan.loads(open(sys.argv[1], 'rb').read())))"
    )
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program, str(source)]
        written = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        # sort_keys has also sorted the options, whose order is kept as it was written.
        assert json.loads(written) == json.loads(plan_text)
        assert hashlib.sha256(written).hexdigest() == hashlib.sha256(hintplan.dumps(hintplan.load(source))).hexdigest()


def test_dump_replaces_the_file_in_one_step_and_keeps_its_mode(plan: Plan, tmp_path: Path) -> None:
    target, link = tmp_path / "plan.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    hintplan.dump(plan, target)
    link.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(hintplan.PlanError, match="is a symbolic link, and links are not followed"):
        hintplan.dump(plan, link)
    assert (link.is_symlink(), target.read_bytes()) == (True, before)
    assert target.stat().st_mode & 0o777 == 0o640
    assert hintplan.load(target) == plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "plan.json"]


def test_dump_into_a_missing_folder_is_an_error_that_names_the_file(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(hintplan.PlanError, match=r"none/plan\.json: cannot be written: No such file or directory"):
        hintplan.dump(plan, tmp_path / "none" / "plan.json")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
IDS = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
TYPES = st.sampled_from(["BIGINT", "STRING", "DECIMAL(10, 2)", "ROW<a INT, `b c` STRING NOT NULL>", "DOUBLE NOT NULL"])
DURATIONS = st.integers(min_value=0, max_value=10**12).map(format_duration)
KINDS = st.sampled_from([("+I",), ("+I", "-D"), ("+I", "-U", "+U", "-D")])
TTLS = DURATIONS.map(lambda ttl: {"ttl": ttl})
ORIGINS = st.dictionaries(st.sampled_from(["default", "config", "hint"]), TTLS, min_size=1)
TTL_SETTINGS = st.builds(Settings, specs=st.just(STATE_SETTINGS), values=TTLS, origin=ORIGINS)
STATES = st.lists(
    st.builds(StateEntry, index=st.integers(0, 3), name=NAMES, input=NAMES, settings=TTL_SETTINGS), max_size=2
).map(tuple)
COLUMNS = st.builds(Column, name=NAMES, type=TYPES)


def _origins(layers: list[str], settings: dict[str, st.SearchStrategy]) -> st.SearchStrategy:
    """What layers may say, in the order of a plan; a layer that says nothing is absent."""
    said = st.fixed_dictionaries({}, optional=settings).map(
        lambda values: {k: values[k] for k in settings if k in values}
    )
    return st.fixed_dictionaries({}, optional=dict.fromkeys(layers, said.filter(bool)))


VALUES: Mapping[str, Callable[[Setting], st.SearchStrategy]] = {
    "bool": lambda setting: st.booleans(),
    "int": lambda setting: st.integers(setting.minimum, setting.maximum),
    "duration": lambda setting: st.integers(setting.minimum, 10**12).map(format_duration),
    "choice": lambda setting: st.sampled_from(setting.choices),
    "time": lambda setting: st.sampled_from(["10:15", "10:15:30+07:00"]),
    "class": lambda setting: st.just("caches.Recent"),
}


def _group(group: Group) -> st.SearchStrategy[Settings]:
    values = {name: VALUES[setting.kind](setting) for name, setting in group.settings.items()}
    always = {name: values[name] for name in group.required or values}
    there = st.fixed_dictionaries(always, optional={name: values[name] for name in values if name not in always})
    in_order = there.map(lambda found: {name: found[name] for name in values if name in found})
    return st.builds(Settings, specs=st.just(group.settings), values=in_order, origin=_origins([*group.layers], values))


def _settings(kind: type[Operator]) -> st.SearchStrategy[Mapping[str, Settings]]:
    always = {group.name: _group(group) for group in kind.groups if group.absent == "never"}
    others = {group.name: _group(group) for group in kind.groups if group.absent != "never"}
    found = st.fixed_dictionaries(always, optional=others)
    return found.map(lambda groups: {group.name: groups[group.name] for group in kind.groups if group.name in groups})


def _tuples(items: st.SearchStrategy, least: int = 0, *, unique: bool = False) -> st.SearchStrategy:
    return st.lists(items, min_size=least, max_size=3, unique=unique).map(tuple)


def _operators(operator_id: str) -> st.SearchStrategy[Operator]:
    one, two, one_id = _tuples(IDS, 1).map(lambda i: i[:1]), _tuples(IDS, 2).map(lambda i: i[:2]), st.just(operator_id)
    select = st.one_of(
        st.builds(SelectItem, name=NAMES), st.builds(SelectItem, name=NAMES, expression=TEXTS, type=TYPES)
    )
    call = st.builds(
        AggregateCall,
        name=NAMES,
        function=st.sampled_from(["COUNT", "SUM", "MIN"]),
        argument=st.none() | NAMES,
        distinct=st.booleans(),
        filter=st.none() | NAMES,
        type=TYPES,
    )
    output = st.builds(JoinColumn, name=NAMES, type=TYPES, side=st.sampled_from(["left", "right"]), column=NAMES)
    join_types = st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])
    return st.one_of(
        st.builds(Scan, id=one_id, table=NAMES, columns=_tuples(NAMES, unique=True), settings=_settings(Scan)),
        st.builds(Calc, id=one_id, inputs=one, select=_tuples(select, 1), filter=st.none() | TEXTS),
        st.builds(
            Join,
            id=one_id,
            inputs=two,
            join_type=join_types,
            keys=_tuples(st.builds(JoinKey, left=NAMES, right=NAMES)),
            condition=st.none() | TEXTS,
            state=STATES,
            output=_tuples(output, 1),
            changelog=KINDS,
        ),
        st.builds(
            LookupJoin,
            id=one_id,
            inputs=one,
            table=NAMES,
            join_type=st.sampled_from(["inner", "left"]),
            keys=_tuples(
                st.one_of(
                    st.builds(LookupKey, column=NAMES, left=NAMES), st.builds(LookupKey, column=NAMES, constant=TEXTS)
                ),
                1,
            ),
            columns=_tuples(NAMES, 1, unique=True),
            pre_filter=st.none() | TEXTS,
            filter=st.none() | TEXTS,
            condition=st.none() | TEXTS,
            output=_tuples(output, 1),
            settings=_settings(LookupJoin),
        ),
        st.builds(
            Aggregate,
            id=one_id,
            inputs=one,
            keys=_tuples(NAMES, unique=True),
            aggregates=_tuples(call),
            state=STATES,
            changelog=KINDS,
            settings=_settings(Aggregate),
        ),
        st.builds(
            Expand,
            id=one_id,
            inputs=one,
            keys=_tuples(NAMES, 1, unique=True),
            sets=_tuples(_tuples(NAMES, unique=True), 1),
            group_id=NAMES,
        ),
        st.builds(
            Unnest,
            id=one_id,
            inputs=one,
            column=NAMES,
            join_type=st.sampled_from(("inner", "left")),
            output=_tuples(output, 1),
        ),
        st.builds(
            Values,
            id=one_id,
            columns=_tuples(st.builds(GivenColumn, name=NAMES, type=TYPES), 1),
            rows=_tuples(_tuples(TEXTS, 1), 1),
        ),
        st.builds(Union, id=one_id, inputs=_tuples(IDS, 2)),
        st.builds(Sink, id=one_id, inputs=one, table=NAMES),
    )


TABLES = st.builds(
    Table,
    columns=_tuples(
        st.builds(TableColumn, name=NAMES, type=TYPES, expression=st.none() | TEXTS, comment=st.none() | TEXTS), 1
    ),
    primary_key=_tuples(NAMES, unique=True),
    watermark=st.none() | st.builds(Watermark, column=NAMES, expression=TEXTS),
    comment=st.none() | TEXTS,
    options=st.dictionaries(NAMES, TEXTS, max_size=3).map(lambda options: {"connector": "print", **options}),
)
PLANS = st.builds(
    Plan,
    name=NAMES,
    config=st.fixed_dictionaries(
        {}, optional={"table.exec.state.ttl": DURATIONS, "table.local-time-zone": st.just("UTC")}
    ),
    tables=st.dictionaries(NAMES, TABLES, max_size=2),
    operators=st.lists(IDS, min_size=1, max_size=4, unique=True).flatmap(
        lambda ids: st.tuples(*(_operators(operator_id) for operator_id in ids))
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(PLANS)
@pytest.mark.slow
def test_what_is_written_is_read_back(plan: Plan) -> None:
    written = hintplan.dumps(plan)
    assert hintplan.loads(written, check_meaning=False) == plan
    assert hintplan.dumps(hintplan.loads(written, check_meaning=False)) == written
    assert json.loads(written)["name"] == plan.name


def test_options_stand_in_the_order_of_their_connector(plan: Plan) -> None:
    table = Table(
        columns=plan.tables["orders"].columns,
        options={"zeta": "1", "format": "json", "path": "p", "connector": "filesystem", "alpha": "2"},
    )
    assert list(table_document(table)["options"]) == ["connector", "path", "format", "alpha", "zeta"]
    unknown = replace(table, options={"b": "1", "connector": "none-such", "a": "2"})
    assert list(table_document(unknown)["options"]) == ["connector", "a", "b"]
