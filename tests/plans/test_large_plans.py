"""Small files that would cost much: every command takes them in time that grows with their size, or refuses them."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import plans
from plans.cli import root
from plans.model import Calc, Operator, Plan, Scan, SelectItem, Sink, Union
from plans.repeated import MOST_TIMES, times_computed
from plans.tables import Table, TableColumn

SECONDS = 20.0
"""Of processor time, ten times what was measured: the quadratic ones took minutes."""

COMMANDS = [
    ["validate"],
    ["explain"],
    ["lint"],
    ["show", "--format", "svg"],
    ["diff", "plan.json"],
]


def table(*columns: str, **options: str) -> Table:
    return Table(columns=tuple(TableColumn(name=name, type="BIGINT") for name in columns), options=options)


def plan(operators: list[Operator], *columns: str) -> Plan:
    sink = Sink(id="sink_s", inputs=(operators[-1].id,), table="s")
    source = table(*columns, connector="filesystem", path="in", format="json")
    return Plan(
        name="large", tables={"t": source, "s": table(*columns, connector="print")}, operators=(*operators, sink)
    )


def calc(name: str, above: str, *columns: str) -> Calc:
    return Calc(
        id=name,
        inputs=(above,),
        select=tuple(SelectItem(name=column, expression=f"`{column}` + 1", type="BIGINT") for column in columns),
    )


def many_columns(number: int) -> Plan:
    names = [f"c{i}" for i in range(number)]
    return plan([Scan(id="scan_t", table="t", columns=tuple(names)), calc("calc_t", "scan_t", *names)], *names)


def unknown_columns(number: int) -> Plan:
    found = many_columns(number)
    return replace(found, tables={**found.tables, "t": replace(found.tables["t"], columns=(
        *(TableColumn(name=f"d{i}", type="BIGINT") for i in range(number)),))})  # fmt: skip


def chain(number: int) -> Plan:
    operators: list[Operator] = [Scan(id="scan_t", table="t", columns=("a",))]
    for i in range(number):
        operators.append(calc(f"calc_{i}", operators[-1].id, "a"))
    return plan(operators, "a")


def unions(number: int) -> Plan:
    operators: list[Operator] = [Scan(id="scan_t", table="t", columns=("a",))]
    for i in range(number):
        above = operators[-1].id
        operators += [calc(f"calc_{i}a", above, "a"), calc(f"calc_{i}b", above, "a")]
        operators.append(Union(id=f"union_{i}", inputs=(f"calc_{i}a", f"calc_{i}b")))
    return plan(operators, "a")


def reasons(number: int) -> bytes:
    document = json.loads(plans.dumps(chain(1)))
    return json.dumps({**document, "reasons": {f"x{i}": "r" for i in range(number)}}).encode()


PLANS = {
    "20,000 columns": lambda: plans.dumps(many_columns(20_000)),
    "20,000 unknown columns": lambda: plans.dumps(unknown_columns(20_000)),
    "9,997 calcs, one below the other": lambda: plans.dumps(chain(9_997)),
    "800,000 reasons": lambda: reasons(800_000),
    "40 unions of two calcs each": lambda: plans.dumps(unions(40)),
}


@pytest.mark.parametrize("what", PLANS)
def test_no_small_plan_takes_long(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_bytes(PLANS[what]())
    for words in COMMANDS:
        before = resource.getrusage(resource.RUSAGE_SELF)
        done = CliRunner().invoke(root, [*words, "plan.json"])
        after = resource.getrusage(resource.RUSAGE_SELF)
        assert after.ru_utime - before.ru_utime < SECONDS, words
        error = "" if done.exception is None else str(done.exception)
        assert len(error) < 50_000, words


def test_an_object_of_too_many_keys_is_refused_where_it_starts() -> None:
    with pytest.raises(plans.PlanError, match=r"an object with more than 100,000 keys") as caught:
        plans.loads(reasons(100_001))
    (problem,) = caught.value.diagnostics
    assert (problem.line, problem.column is not None) == (1, True)
    with pytest.raises(plans.PlanError, match="reasons: expected at most 10000 keys, found 100000"):
        plans.loads(reasons(100_000))


def test_paths_to_sinks_are_counted_and_limited() -> None:
    # Each union doubles the paths.
    assert [times_computed(unions(n))["scan_t"] for n in (0, 1, 2, 9)] == [1, 2, 4, 512]
    assert plans.loads(plans.dumps(unions(9)))
    with pytest.raises(plans.PlanError, match="'scan_t' would be computed 2,048 times") as caught:
        plans.loads(plans.dumps(unions(11)))
    assert "operators.scan_t" in str(caught.value)
    assert MOST_TIMES == 1_000
