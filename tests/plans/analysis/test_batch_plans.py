"""Batch plans: sorts, cached results with their layers, what a batch plan must not have, and what operators mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import hintplan
from hintplan.plans.analysis.fingerprints import meaning
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import changes_text
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.edit.edit import set_value
from hintplan.plans.files.rewrite import rewrite
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink, Sort, SortKey, Union
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.show.explain import explain_json, plan_tree
from tests.groups import cached_result

ORDERS = Table(
    columns=(TableColumn(name="id", type="BIGINT"), TableColumn(name="total", type="DOUBLE")),
    options={"connector": "filesystem", "path": "orders", "format": "json"},
)
PRINT = Table(columns=ORDERS.columns, options={"connector": "print"})


@pytest.fixture
def batch() -> Plan:
    """Two sinks that read one sort."""
    return Plan(
        name="top",
        mode="batch",
        tables={"orders": ORDERS, "all": PRINT, "some": PRINT},
        operators=(
            Scan(id="scan_orders", table="orders", columns=("id", "total")),
            Sort(
                id="sort_orders",
                inputs=("scan_orders",),
                order=(
                    SortKey(column="total", direction="desc", nulls="last"),
                    SortKey(column="id", direction="asc", nulls="first"),
                ),
                offset=1,
                limit=3,
            ),
            Sink(id="sink_all", inputs=("sort_orders",), table="all"),
            Sink(id="sink_some", inputs=("sort_orders",), table="some"),
        ),
    )


def edited(plan: Plan, **changes: Any) -> str:
    """What loading says of the plan with other values in its JSON: ``sort_orders__limit=-1``."""
    document = json.loads(hintplan.dumps(plan))
    for place, value in changes.items():
        *path, last = place.split("__")
        found = document
        for part in path:
            by_id = {operator["id"]: operator for operator in document["operators"]}
            found = by_id[part] if part in by_id else found[part]
        found[last] = value
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.loads(json.dumps(document), allow_fact_edits=True)
    return str(caught.value)


def test_a_batch_plan_reads_back_as_it_was_written(batch: Plan) -> None:
    cached = cached_result({"hint": {"enabled": True}, "statement": {"storage-level": "DISK_ONLY"}}, {"enabled": False})
    scan, sort, *sinks = batch.operators
    whole = replace(batch, operators=(scan, replace(sort, settings=cached), *sinks))
    assert hintplan.loads(hintplan.dumps(whole)) == whole
    assert hintplan.dumps(hintplan.loads(hintplan.dumps(whole))) == hintplan.dumps(whole)


def test_a_sort_names_columns_of_its_input(batch: Plan) -> None:
    message = edited(batch, sort_orders__order=[{"column": "totl", "direction": "asc", "nulls": "first"}])
    assert "'totl' is no column of the input" in message
    assert "did you mean 'total'?" in message


def test_a_sort_that_does_nothing_is_refused(batch: Plan) -> None:
    assert "this sort does nothing" in edited(
        batch, sort_orders__order=[], sort_orders__offset=0, sort_orders__limit=None
    )


def test_a_limit_is_no_negative_number(batch: Plan) -> None:
    assert "expected at least 0, found -1" in edited(batch, sort_orders__limit=-1)


def test_a_limit_is_at_most_what_spark_counts_to(batch: Plan) -> None:
    assert "at most 2147483647" in edited(batch, sort_orders__limit=2**31)


def test_a_stream_is_not_sorted(batch: Plan) -> None:
    message = edited(batch, mode="streaming")
    assert "operators.sort_orders" in message
    assert "a stream of changes has no order and no end" in message
    assert "execution.runtime-mode=batch" in message


def test_a_stream_caches_no_results(plan: Plan, patched: Callable[..., str], refusal: Callable[..., str]) -> None:
    cached = '"select": ["o_custkey", { "name": "net", "type": "DOUBLE", "expression": "o_total * 0.8" }]'
    on = '"cached": { "enabled": true, "storage-level": "DISK_ONLY", "origin": {} }'
    assert "results are cached in batch mode only" in refusal(patched((cached, f"{cached}, {on}")))
    off = on.replace("true", "false")
    assert hintplan.loads(patched((cached, f"{cached}, {off}"))).operators
    with pytest.raises(hintplan.PlanError, match="batch mode only"):
        set_value(plan, "calc_o.cached.enabled", "true")


def test_a_batch_plan_keeps_no_state_and_takes_nothing_back(plan: Plan) -> None:
    message = edited(plan, mode="batch")
    assert message.count("a batch plan keeps no state") == 2
    assert "the changelog is +I, -D, but it must be +I" in message


def test_a_source_that_never_ends_is_refused_in_batch(batch: Plan) -> None:
    endless = {"columns": [{"name": "id", "type": "BIGINT"}, {"name": "total", "type": "DOUBLE"}]}
    message = edited(batch, tables__orders=endless | {"options": {"connector": "datagen"}})
    assert "table 'orders' never ends" in message
    ended = endless | {"options": {"connector": "datagen", "number-of-rows": "5"}}
    document = json.loads(hintplan.dumps(batch))
    document["tables"]["orders"] = ended
    assert hintplan.loads(json.dumps(document), allow_fact_edits=True).mode == "batch"


@pytest.mark.parametrize("operator", ["scan_orders", "sort_orders"])
def test_any_operator_but_a_sink_can_be_cached_by_an_edit(batch: Plan, operator: str) -> None:
    cached, changes = set_value(batch, f"{operator}.cached.enabled", "true")
    (settings,) = [o.cached for o in cached.operators if o.id == operator and not isinstance(o, Sink)]
    assert settings is not None
    assert (settings.enabled, settings.storage_level) == (True, "MEMORY_AND_DISK")
    (change,) = changes
    assert (change.path, change.before, change.after) == (f"{operator}.cached.enabled", "false", "true")
    assert hintplan.loads(hintplan.dumps(cached)) == cached
    assert set_value(cached, f"{operator}.cached.enabled", "false")[0] == batch


def test_a_storage_level_is_one_of_sparks(batch: Plan) -> None:
    with pytest.raises(hintplan.PlanError, match="expected one of DISK_ONLY"):
        set_value(batch, "sort_orders.cached.storage-level", "NONE")
    with pytest.raises(hintplan.PlanError, match="'cached' has no setting 'storagelevel'"):
        set_value(batch, "sort_orders.cached.storagelevel", "DISK_ONLY")


def test_a_sink_has_no_result_to_cache(batch: Plan) -> None:
    with pytest.raises(hintplan.PlanError, match="no result to cache"):
        set_value(batch, "sink_all.cached.enabled", "true")


def test_an_edit_is_stronger_than_a_statement_a_hint_and_config(batch: Plan) -> None:
    asked = {"config": {"storage-level": "MEMORY_ONLY"}, "hint": {"enabled": True, "storage-level": "OFF_HEAP"}}
    assert CACHED.resolved(asked).values["storage-level"] == "OFF_HEAP"
    stated = CACHED.resolved({**asked, "statement": {"storage-level": "DISK_ONLY"}})
    assert stated.values["storage-level"] == "DISK_ONLY"
    scan, sort, *sinks = batch.operators
    hinted = replace(batch, operators=(scan, replace(sort, settings=cached_result({"hint": asked["hint"]})), *sinks))
    once, changes = set_value(hinted, "sort_orders.cached.storage-level", "disk_only")
    assert [(c.after, c.note) for c in changes] == [("DISK_ONLY", "edit over hint OFF_HEAP")]
    tree = plan_tree(once)
    assert "│  cached                       DISK_ONLY    hint · storage-level edit · hint OFF_HEAP" in tree
    assert set_value(once, "sort_orders.cached.storage-level", "OFF_HEAP")[0] == hinted


def test_config_caches_what_is_read_more_than_once(batch: Plan) -> None:
    cached, _ = set_value(batch, "config.table.exec.cached-results.enabled", "true")
    assert [o.id for o in cached.operators if o.cached] == ["sort_orders"]
    assert plan_tree(cached).startswith("top · batch · 4 operators, 1 cached")
    level, _ = set_value(cached, "config.table.exec.cached-results.storage-level", "DISK_ONLY")
    assert level.operators[1].cached.storage_level == "DISK_ONLY"  # type: ignore[union-attr]
    assert hintplan.loads(hintplan.dumps(level)) == level
    off, _ = set_value(level, "sort_orders.cached.enabled", "false")
    assert "off" in plan_tree(off)
    assert "edit · config true" in plan_tree(off)
    assert set_value(off, "config.table.exec.cached-results.enabled", "false")[0].operators[1] == batch.operators[1]


def test_config_and_origins_out_of_step_are_told_with_the_mending_edit(batch: Plan) -> None:
    key = "table.exec.cached-results.enabled"
    document = json.loads(hintplan.dumps(batch))
    document["config"][key] = "true"
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.loads(json.dumps(document))
    message = str(caught.value)
    assert "there was no value for 'enabled'" in message
    assert f"hintplan set plan.json config.{key}='true'" in message


def test_a_cached_result_is_no_fact_so_a_hand_edit_passes(batch: Plan) -> None:
    document = json.loads(hintplan.dumps(batch))
    document["operators"][0]["cached"] = {"enabled": True, "storage-level": "DISK_ONLY", "origin": {}}
    found = hintplan.loads(json.dumps(document))
    assert found.operators[0].cached.storage_level == "DISK_ONLY"  # type: ignore[union-attr]
    assert [change.path for change in compare_plans(batch, found)] == [
        "scan_orders.cached.enabled",
        "scan_orders.cached.storage-level",
    ]
    assert all(change.keeps_state for change in compare_plans(batch, found))


def test_a_difference_of_batch_plans_speaks_of_the_next_job_and_not_of_state(batch: Plan) -> None:
    scan, sort, *sinks = batch.operators
    assert isinstance(sort, Sort)
    longer = replace(batch, config={"parallelism.default": "8"}, operators=(scan, replace(sort, limit=5), *sinks))
    changes = compare_plans(batch, longer)
    assert [(c.path, c.effect.text) for c in changes if c.path != "config.parallelism.default"] == [
        ("sort_orders.limit", "another result, from the next job on")
    ]
    assert changes_text(changes).endswith("1 setting changed · 1 operator changed")
    assert "state" not in changes_text(changes[1:])


def test_a_change_of_mode_is_an_incompatible_plan(batch: Plan) -> None:
    scan, _, *sinks = batch.operators
    plain = replace(batch, operators=(scan, *(replace(sink, inputs=("scan_orders",)) for sink in sinks)))
    (change,) = compare_plans(replace(plain, mode="streaming"), plain)
    assert (change.path, change.before, change.after, change.keeps_state) == ("mode", "streaming", "batch", False)


def test_an_edit_keeps_the_layout_of_the_file(batch: Plan) -> None:
    data = json.dumps(json.loads(hintplan.dumps(batch))).encode()
    cached, _ = set_value(batch, "scan_orders.cached.enabled", "true")
    written = rewrite(data, batch, cached)
    assert hintplan.loads(written) == cached
    assert written.startswith(data[: data.index(b'"columns": ["id", "total"]}')])
    assert written.endswith(data[data.index(b'{"id": "sort_orders"') :])


def test_an_operator_used_twice_is_shown_once_and_referred_to(batch: Plan) -> None:
    assert plan_tree(batch) == (
        "top · batch · 4 operators, 0 cached\n\n"
        "sink_all                           print\n"
        "└─ sort_orders                     ORDER BY total DESC NULLS LAST, id ASC NULLS FIRST · OFFSET 1 · LIMIT 3\n"
        "   └─ scan_orders                  filesystem · 2 of 2 columns\n\n"
        "sink_some                          print\n"
        "└─ ↑ sort_orders                   shown above"
    )


def test_explain_json_tells_who_asked_for_a_cached_result(batch: Plan) -> None:
    cached, _ = set_value(batch, "sort_orders.cached.enabled", "true")
    (found,) = [o["cached"] for o in explain_json(cached)["operators"] if "cached" in o]
    assert found["enabled"] == {"value": True, "set-by": "edit", "origin": {"default": False}}


def test_meaning_is_the_same_in_another_plan_whatever_things_are_called(batch: Plan) -> None:
    scan, sort, *_ = batch.operators
    other = Plan(
        name="other",
        mode="batch",
        tables={"o": replace(ORDERS, comment="the same file"), "x": PRINT},
        operators=(
            Scan(id="scan_o", table="o", columns=("id",)),
            replace(scan, id="scan_o2", table="o"),
            replace(sort, id="sort_o", inputs=("scan_o2",), settings=cached_result({"hint": {"enabled": True}})),
            Sink(id="sink_x", inputs=("sort_o",), table="x"),
        ),
    )
    assert meaning(other, "sort_o") == meaning(batch, "sort_orders")
    assert meaning(other, "scan_o2") == meaning(batch, "scan_orders")
    assert meaning(other, "scan_o") != meaning(batch, "scan_orders")


def test_meaning_follows_what_decides_the_rows(batch: Plan) -> None:
    before = meaning(batch, "sort_orders")

    def after(**changes: Any) -> str:
        return meaning(replace(batch, **changes), "sort_orders")

    elsewhere = replace(ORDERS, options={**ORDERS.options, "path": "other"})
    assert after(tables={**batch.tables, "orders": elsewhere}) != before
    assert after(config={"table.local-time-zone": "Europe/Berlin"}) != before
    assert after(config={"parallelism.default": "7"}) == before
    scan, sort, *rest = batch.operators
    assert isinstance(sort, Sort)
    assert after(operators=(scan, replace(sort, limit=4), *rest)) != before
    assert after(operators=(replace(scan, columns=("total", "id")), sort, *rest)) != before


def test_meaning_tells_the_inputs_of_an_operator_apart_by_their_place(batch: Plan) -> None:
    tables = {**batch.tables, "late": replace(ORDERS, options={**ORDERS.options, "path": "late"})}
    first = Scan(id="scan_orders", table="orders", columns=("id",))
    second = Scan(id="scan_late", table="late", columns=("id",))
    found = {
        meaning(replace(batch, tables=tables, operators=(first, second, Union(id="union_u", inputs=inputs))), "union_u")
        for inputs in (("scan_orders", "scan_late"), ("scan_late", "scan_orders"), ("scan_orders", "scan_orders"))
    }
    assert len(found) == 3
