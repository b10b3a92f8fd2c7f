"""Nothing changes a plan, wherever it comes from, and it is still copied, pickled, compared and written as before."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import hintplan
from hintplan.plans.model.plan import Plan

SQL = """
CREATE TABLE orders (id BIGINT, customer BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'in');
CREATE TABLE customers (id BIGINT, country STRING)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'customers');
CREATE TABLE result (customer BIGINT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO result
SELECT /*+ STATE_TTL('o' = '6 h'), LOOKUP('table' = 'c', 'async' = 'true') */ o.customer, COUNT(*)
FROM (SELECT *, PROCTIME() AS p FROM orders) AS o
JOIN customers FOR SYSTEM_TIME AS OF o.p AS c ON o.customer = c.id GROUP BY o.customer;
"""


def compiled() -> Plan:
    return hintplan.compile_sql(SQL, {"table.exec.state.ttl": "1 d"}, name="orders")


MADE: Mapping[str, Callable[[], Plan]] = {
    "compiled": compiled,
    "loaded": lambda: hintplan.loads(hintplan.dumps(compiled())),
    "edited": lambda: hintplan.set(compiled(), "config.parallelism.default", 3, reason="more"),
    "made by hand": lambda: replace(compiled(), config={"parallelism.default": "3"}),
    "pickled": lambda: pickle.loads(pickle.dumps(compiled())),
    "copied": lambda: copy.deepcopy(compiled()),
}


def mappings(value: Any, path: str = "plan") -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Every mapping in ``value``, which may be changed by whoever holds the plan."""
    if isinstance(value, Mapping):
        yield path, value
        for key, inner in value.items():
            yield from mappings(inner, f"{path}[{key!r}]")
    elif isinstance(value, tuple):
        for number, inner in enumerate(value):
            yield from mappings(inner, f"{path}[{number}]")
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "specs":  # the kinds of settings, which all plans share
                yield from mappings(getattr(value, field.name), f"{path}.{field.name}")
        if hasattr(value, "settings"):
            yield from mappings(value.settings, f"{path}.settings")


@pytest.mark.parametrize("made", MADE)
def test_no_mapping_of_a_plan_can_be_changed(made: str) -> None:
    plan = MADE[made]()
    before = hintplan.dumps(plan)
    found = dict(mappings(plan))
    assert {"plan.config", "plan.tables", "plan.tables['orders'].options"} <= set(found)
    assert any(".values" in path for path in found)
    assert any(".origin['hint']" in path for path in found)
    changes: tuple[Callable[[Any], object], ...] = (
        lambda one: one.__setitem__("x", 1),
        lambda one: one.update(x=1),
        lambda one: one.__ior__({"x": 1}),
        lambda one: one.setdefault("x", 1),
        lambda one: one.pop("x", None),
        lambda one: one.popitem(),
        lambda one: one.clear(),
        lambda one: one.__delitem__("x"),
    )
    for path, mapping in found.items():
        for change in changes:
            with pytest.raises(TypeError, match=r"hintplan\.set\(plan, path, value\) gives another one"):
                change(mapping)
        assert json.loads(json.dumps(mapping, default=str)) is not None, path
    assert hintplan.dumps(plan) == before


def test_a_dict_that_a_plan_was_made_of_is_no_way_into_it() -> None:
    config = {"parallelism.default": "3"}
    plan = Plan(name="p", config=config)
    config["parallelism.default"] = "4"
    assert plan.config == {"parallelism.default": "3"}
    assert plan == Plan(name="p", config={"parallelism.default": "3"}) == pickle.loads(pickle.dumps(plan))
    assert repr(plan.config) == "{'parallelism.default': '3'}"
