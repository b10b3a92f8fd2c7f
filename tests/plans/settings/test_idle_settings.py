"""`set` of every setting in every state of its operator is applied and shown as a difference, or refused with a reason.

Which values a setting takes is written down here, by hand; which operators there are, too.
"""

from __future__ import annotations

from itertools import product

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.connectors.table import can_lookup
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin
from hintplan.plans.settings.lookup import GROUPS, SETTINGS

VALUES = {"bool": ("true", "false"), "int": ("7", "8"), "duration": ("7 s", "8 s"), "class": ("m:A", "m:B")}
VALUES["time"] = ("10:15", "11:15")
SQLITE = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:c.db', 'table-name' = 'c'"
HTTP = "'connector' = 'http', 'url' = 'https://h/{k}'"
PERIODIC = ", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '10 min'"
TIMED = (
    ", 'lookup.cache' = 'FULL', 'lookup.full-cache.reload-strategy' = 'TIMED', "
    "'lookup.full-cache.timed-reload.iso-time' = '10:15'"
)
PARTIAL = ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '9'"
TABLES = {
    "sync": SQLITE,
    "sync, partial": SQLITE + PARTIAL,
    "sync, full": SQLITE + PERIODIC,
    "sync, timed": SQLITE + TIMED,
    "both": HTTP,
    "both, partial": HTTP + PARTIAL,
}
HINTS = {
    "no hint": "",
    "retry": "/*+ LOOKUP('table' = 'c', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay', "
    "'fixed-delay' = '1 s', 'max-attempts' = '3') */",
    "unordered": "/*+ LOOKUP('table' = 'c', 'async' = 'true', 'output-mode' = 'allow_unordered') */",
}


def compiled(table: str, hint: str, mode: str) -> Plan:
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}';"
        "CREATE TABLE o (id BIGINT, k BIGINT, p AS PROCTIME()) "
        "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');"
        f"CREATE TABLE c (k BIGINT, name STRING) WITH ({TABLES[table]});"
        "CREATE TABLE r (id BIGINT, n STRING) WITH ('connector' = 'print');"
        f"INSERT INTO r SELECT {HINTS[hint]} o.id, c.name FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.k;"
    )


def attempts() -> list[tuple[str, str]]:
    found = [("retry", "5 x 9 s"), ("retry", "off")]
    for group in GROUPS:
        for name, spec in SETTINGS[group].items():
            found += [(f"{group}.{name}", value) for value in VALUES.get(spec.kind, spec.choices)]
    return found


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(("table", "hint"), list(product(TABLES, HINTS)))
def test_a_setting_is_applied_and_shown_or_refused_with_the_reason(table: str, hint: str, mode: str) -> None:
    plan = compiled(table, hint, mode)
    (lookup,) = (o for o in plan.operators if isinstance(o, LookupJoin))
    modes = can_lookup(plan.tables["c"])
    for path, value in attempts():
        group, _, name = path.partition(".")
        was = lookup.settings.get(group)
        try:
            edited, changes = set_value(plan, f"{lookup.id}.{path}", value)
        except PlanError as error:
            (found,) = error.diagnostics
            assert found.hint, found.message
            assert "wrong" not in found.message
            continue
        if path == "retry":
            assert bool(changes) == (value != "off" or was is not None)
            assert not changes or "full" not in table.replace("timed", "full")
            continue
        (now,) = (o.settings[group].values[name] for o in edited.operators if o.id == lookup.id)
        assert str(now).lower() == value.lower(), path
        assert bool(changes) == (was is None or was.values.get(name) != now), path
        assert changes == compare_plans(plan, edited)
        if group == "async" and changes:
            assert "async" in modes or name == "output-mode", path  # which also says whether a row may wait in state
            assert "full" not in table, path
            assert "timed" not in table, path


def test_a_setting_without_effect_says_why_and_what_to_set_first() -> None:
    plan = compiled("sync, full", "no hint", "streaming")
    with pytest.raises(PlanError) as caught:
        set_value(plan, "lookup_c.async.enabled", "true")
    (found,) = caught.value.diagnostics
    assert found.message == "'enabled' has no effect here: a FULL cache answers every row at once from memory"
    assert found.hint == "set lookup_c.cache.lookup.cache=PARTIAL or NONE first"
