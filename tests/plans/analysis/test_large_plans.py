"""Small files that would cost much: every command takes them in time that grows with their size, or refuses them."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hintplan as api
from hintplan.plans.analysis.repeated import MOST_TIMES, times_computed
from hintplan.plans.analysis.run_limits import MAX_DEPTH, check_nesting, nesting
from hintplan.plans.commands.root import root
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import BY_OP as OPS
from hintplan.plans.operators import (
    Argument,
    Calc,
    Correlate,
    GivenColumn,
    IntervalJoin,
    Join,
    LookupJoin,
    LookupKey,
    Operator,
    Scan,
    SelectItem,
    Sink,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
    WindowJoin,
)
from tests.plans.in_process import hintplan

pytestmark = pytest.mark.slow

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
    document = json.loads(api.dumps(chain(1)))
    return json.dumps({**document, "reasons": {f"x{i}": "r" for i in range(number)}}).encode()


PLANS = {
    "20,000 columns": lambda: api.dumps(many_columns(20_000)),
    "20,000 unknown columns": lambda: api.dumps(unknown_columns(20_000)),
    "9,997 calcs, one below the other": lambda: api.dumps(chain(9_997)),
    "800,000 reasons": lambda: reasons(800_000),
    "40 unions of two calcs each": lambda: api.dumps(unions(40)),
}


@pytest.mark.part(of=3)
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
    with pytest.raises(api.PlanError, match=r"an object with more than 100,000 keys") as caught:
        api.loads(reasons(100_001))
    (problem,) = caught.value.diagnostics
    assert (problem.line, problem.column is not None) == (1, True)
    with pytest.raises(api.PlanError, match="reasons: expected at most 10000 keys, found 100000"):
        api.loads(reasons(100_000))


def test_paths_to_sinks_are_counted_and_limited() -> None:
    # Each union doubles the paths.
    assert [times_computed(unions(n))["scan_t"] for n in (0, 1, 2, 9)] == [1, 2, 4, 512]
    assert api.loads(api.dumps(unions(9)))
    with pytest.raises(api.PlanError, match="'scan_t' would be computed 2,048 times") as caught:
        api.loads(api.dumps(unions(11)))
    assert "operators.scan_t" in str(caught.value)
    assert MOST_TIMES == 1_000


def test_a_path_is_at_most_as_deep_as_spark_can_walk_it() -> None:
    # A scan, calcs and a sink.
    assert api.loads(api.dumps(chain(MAX_DEPTH - 2)))
    message = f"more than {MAX_DEPTH} operators are on one path from a source to 'sink_s'"
    with pytest.raises(api.PlanError, match=message):
        api.loads(api.dumps(chain(MAX_DEPTH - 1)))


EXPRESSIONS = [
    *(("calc", place) for place in ("expression", "filter")),
    ("join", "condition"),
    *(("lookup-join", place) for place in ("constant", "pre-filter", "filter", "condition")),
    ("correlate", "constant"),
    ("values", "rows"),
    ("scan", "filter"),
    ("watermark-assigner", "base"),
    ("window-join", "condition"),
    ("temporal-join", "condition"),
    ("interval-join", "condition"),
]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(" * 201 + "1" + ")" * 201, "the expression is nested more than 200 levels deep"),
        ("CASE WHEN true THEN " * 201 + "1" + " END" * 201, "the expression is nested more than 200 levels deep"),
        ("'" + "(" * 300 + "'", None),
        ("(" * 200 + "1" + ")" * 200, None),
    ],
    ids=["brackets", "cases", "in a literal", "just deep enough"],
)
@pytest.mark.parametrize(("op", "place"), EXPRESSIONS)
def test_what_a_run_refuses_of_expressions_a_check_refuses(op: str, place: str, text: str, problem: str | None) -> None:
    calc = Calc(id="x", inputs=("s",), select=(SelectItem(name="c", expression=text, type="INT"),), filter=None)
    lookup = LookupJoin(
        id="x", inputs=("s",), table="t", join_type="left", keys=(LookupKey(column="k", constant="1"),),
        columns=("k",), pre_filter=None, filter=None, condition=None, output=(), settings={},
    )  # fmt: skip
    operator: Operator = {
        ("calc", "expression"): calc,
        ("calc", "filter"): replace(calc, select=(), filter=text),
        ("join", "condition"): Join(
            id="x", inputs=("s", "s"), join_type="inner", keys=(), condition=text, output=(), changelog=(), state=()
        ),
        ("lookup-join", "constant"): replace(lookup, keys=(LookupKey(column="k", constant=text),)),
        ("lookup-join", "pre-filter"): replace(lookup, pre_filter=text),
        ("lookup-join", "filter"): replace(lookup, filter=text),
        ("lookup-join", "condition"): replace(lookup, condition=text),
        ("correlate", "constant"): Correlate(
            id="x",
            inputs=("s",),
            function="f",
            join_type="inner",
            arguments=(Argument(constant=text),),
            output=(),
            settings={},
        ),
        ("values", "rows"): Values(id="x", columns=(GivenColumn(name="c", type="INT"),), rows=(("1",), (text,))),
        ("scan", "filter"): Scan(id="x", table="t", columns=("c",), filter=text),
        ("watermark-assigner", "base"): WatermarkAssigner(id="x", inputs=("s",), column="c", base=text),
        ("temporal-join", "condition"): TemporalJoin(
            id="x",
            inputs=("s", "s"),
            join_type="inner",
            keys=(),
            left_time="ts",
            right_time="ts",
            versions="all",
            condition=text,
            output=(),
            changelog=(),
            state=(),
        ),
        ("interval-join", "condition"): IntervalJoin(
            id="x",
            inputs=("s", "s"),
            join_type="inner",
            keys=(),
            condition=text,
            left_time="ts",
            right_time="ts",
            lower="0 ms",
            upper="1 s",
            output=(),
            changelog=(),
            state=(),
        ),
        ("window-join", "condition"): WindowJoin(
            id="x",
            inputs=("s", "s"),
            join_type="inner",
            keys=(),
            condition=text,
            window=Window(type="tumble", size="10 s"),
            left_window=WindowColumns(start="window_start", end="window_end"),
            right_window=WindowColumns(start="window_start", end="window_end"),
            output=(),
            changelog=(),
            state=(),
        ),
    }[op, place]
    found = [found.message for found in check_nesting(Plan(name="p", operators=(operator,)))]
    assert found == ([] if problem is None else [problem])
    assert nesting(text) <= 200 or problem


def expressions_in(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The keys of ``schema`` that hold an expression: one by reference, or a text of the same length."""
    if schema.get("$ref") == "#/$defs/expression" or schema.get("maxLength") == 262_144:
        yield name
    for below in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), schema.get("items", {})):
        yield from expressions_in(name, below) if below else ()
    for key, below in schema.get("properties", {}).items():
        yield from expressions_in(key, below)


def test_every_expression_of_every_kind_of_operator_is_tried() -> None:
    definitions = json.loads(schema_text())["$defs"]
    assert {(op, key) for op in OPS for key in expressions_in("", definitions[op])} == set(EXPRESSIONS)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (" + ".join(["a"] * 402), "chains more than 400 operators"),
        (" OR ".join(["a = 1"] * 2_000) + " OR a = 2", "has more than 5,000 parts"),
        (" + ".join(["a"] * 390), None),
        (" OR ".join(["a = 1"] * 300), None),
        (f"a IN ({', '.join(map(str, range(6_000)))})", None),
    ],
    ids=["a chain", "many parts", "a chain that runs", "parts that run", "a list that runs"],
)
def test_validate_refuses_what_a_run_refuses_for_its_size(tmp_path: Path, expression: str, said: str | None) -> None:
    found = plan([Scan(id="scan_t", table="t", columns=("a",)), calc("calc_t", "scan_t", "a")], "a")
    large = replace(found.operators[1], filter=f"({expression}) IS NOT NULL")
    written = replace(found, operators=(found.operators[0], large, *found.operators[2:]))
    api.dump(written, tmp_path / "plan.json")
    done = hintplan("validate", "plan.json", "--allow-fact-edits", folder=tmp_path)
    assert done.returncode == (0 if said is None else 1), done.stderr
    assert ("operators.calc_t.filter: " in done.stderr) is (said is not None)
    assert said is None or said in done.stderr
