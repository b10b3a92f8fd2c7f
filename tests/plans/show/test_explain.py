"""`explain`: the tree, word by word."""

from __future__ import annotations

from dataclasses import replace

from hintplan.plans.declarations.tables import Table
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate, AggregateCall, Calc, Join, Scan, SelectItem, Sink, Union
from hintplan.plans.settings.state import StateEntry, ttl_settings
from hintplan.plans.show.explain import explain_json, plan_tree


def test_the_tree_shows_every_state_and_who_set_it(plan: Plan) -> None:
    assert (
        plan_tree(plan)
        == """\
revenue_by_country · streaming · 6 operators, 2 with state
config: table.exec.state.ttl 1 h

sink_result                        print
└─ aggregate_t                     GROUP BY c_country: SUM(net)
   │  groupAggregateState  t       1 h     config
   └─ join_o_c                     LEFT JOIN ON o.o_custkey = c.c_custkey
      │  leftState   o             3 d     edit · hint 1 d · config 1 h
      │  rightState  c             20 d    hint · config 1 h
      ├─ calc_o                    WHERE o_total > 0 · net = o_total * 0.8
      │  └─ scan_orders            filesystem · 2 of 5 columns · read in Arrow if Arrow computes calc_o
      └─ scan_customers            filesystem · 2 of 3 columns · read in Arrow"""
    )


def test_a_join_that_lacks_a_state_is_shown_by_its_inputs(plan: Plan) -> None:
    operators = [replace(each, state=each.state[1:]) if isinstance(each, Join) else each for each in plan.operators]
    tree = plan_tree(replace(plan, operators=tuple(operators)))
    assert "LEFT JOIN ON calc_o.o_custkey = scan_customers.c_custkey" in tree
    assert "leftState" not in tree


def test_an_operator_with_two_consumers_is_printed_once(plan: Plan) -> None:
    audit = Sink(id="sink_audit", inputs=("join_o_c",), table="audit")
    tables = {**plan.tables, "audit": Table(columns=(), options={"connector": "blackhole"})}
    both = plan_tree(replace(plan, tables=tables, operators=(*plan.operators, audit)))
    tree = "sink_audit                         blackhole\n└─ ↑ join_o_c                      shown above"
    assert both.endswith(f"\n\n{tree}")
    assert both.count("leftState") == 1


def test_sinks_that_run_as_one_query_are_named_together(plan: Plan) -> None:
    calc = Calc(id="calc_more", inputs=("aggregate_t",), select=(SelectItem(name="SUM(net)"),), filter="net > 1")
    sinks = (
        Sink(id="sink_more", inputs=("calc_more",), table="more"),
        Sink(id="sink_files", inputs=("aggregate_t",), table="files"),
    )
    tables = {
        **plan.tables,
        "more": Table(columns=(), options={"connector": "blackhole"}),
        "files": Table(columns=(), options={"connector": "filesystem"}),
    }
    several = replace(plan, tables=tables, operators=(*plan.operators, calc, *sinks))
    assert plan_tree(several).split("\n")[2] == "1 query: sink_result + sink_more + sink_files from aggregate_t"
    assert explain_json(several)["queries"] == [["sink_result", "sink_more", "sink_files"]]
    scan = Scan(id="scan_apart", table="orders", columns=("o_id",))
    apart = Sink(id="sink_apart", inputs=("scan_apart",), table="files")
    both = plan_tree(replace(several, operators=(*several.operators, scan, apart))).split("\n")[2]
    assert both == "2 queries: sink_result + sink_more + sink_files from aggregate_t · sink_apart"


def test_a_ttl_of_zero_says_that_it_never_expires(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    never = replace(join.state[0], settings=ttl_settings())
    edited = replace(join.state[1], settings=ttl_settings(edit="5 d"))
    changed = replace(join, state=(never, edited))
    text = plan_tree(replace(plan, operators=tuple(changed if o.id == join.id else o for o in plan.operators)))
    assert "│  leftState   o             never    default\n" in text
    assert "│  rightState  c             5 d      edit · default never\n" in text


def test_a_long_name_is_still_apart_from_its_ttl(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    name = "o" * 80
    changed = replace(join, state=(replace(join.state[0], input=name), join.state[1]))
    text = plan_tree(replace(plan, operators=tuple(changed if o.id == join.id else o for o in plan.operators)))
    assert f"│  leftState   {name} 3 d " in text


def test_every_kind_of_operator_has_its_words(plan: Plan) -> None:
    scan = Scan(id="scan_orders", table="orders", columns=("o_id", "o_custkey"))
    other = Scan(id="scan_orders_in_late", table="orders", columns=("o_id", "o_custkey"))
    calc = Calc(id="calc_x", inputs=("scan_orders",), select=(SelectItem(name="o_id"), SelectItem(name="o_custkey")))
    union = Union(id="union_u", inputs=("calc_x", "scan_orders_in_late"))
    entry = StateEntry(index=0, name="groupAggregateState", input="u", settings=ttl_settings(config="1 h"))
    distinct = Aggregate(
        id="aggregate_u", inputs=("union_u",), keys=("o_id",), aggregates=(), state=(entry,), changelog=("+I",)
    )
    calls = (
        AggregateCall(name="n", function="COUNT", type="BIGINT"),
        AggregateCall(name="m", function="SUM", argument="o_id", distinct=True, filter="f", type="BIGINT"),
    )
    total = Aggregate(
        id="aggregate_all", inputs=("aggregate_u",), keys=(), aggregates=calls, state=(entry,), changelog=("+I",)
    )
    sink = Sink(id="sink_result", inputs=("aggregate_all",), table="result")
    lines = plan_tree(replace(plan, operators=(scan, other, calc, union, distinct, total, sink))).splitlines()
    words = {line.split("─ ")[-1].split()[0]: " ".join(line.split("─ ")[-1].split()[1:]) for line in lines[3:]}
    assert words["aggregate_all"] == "one group: COUNT(*), SUM(DISTINCT o_id) FILTER (f)"
    assert words["aggregate_u"] == "DISTINCT o_id"
    assert words["union_u"] == "UNION ALL of 2 inputs"
    assert words["calc_x"] == "SELECT o_id, o_custkey"
    scanned = "filesystem · 2 of 5 columns · read by Spark: Spark computes union_u"
    assert words["scan_orders"] == scanned
    assert words["scan_orders_in_late"] == f"orders · {scanned}"


def test_joins_are_told_apart(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)

    def line(changed: Join) -> str:
        text = plan_tree(replace(plan, operators=tuple(changed if o.id == join.id else o for o in plan.operators)))
        return next(line for line in text.splitlines() if "join_o_c" in line).split("  ")[-1].strip()

    assert line(replace(join, join_type="inner", keys=())) == "CROSS JOIN"
    assert line(replace(join, join_type="anti", condition="l.net > 1")) == (
        "ANTI JOIN ON o.o_custkey = c.c_custkey AND o.net > 1"
    )
    assert line(replace(join, join_type="full", keys=())) == "FULL JOIN ON TRUE"


def test_a_deep_plan_goes_on_below_instead_of_off_the_screen(plan: Plan) -> None:
    scan = plan.operator("scan_orders")
    calcs = [
        Calc(id=f"calc_{i}", inputs=(f"calc_{i - 1}" if i else "scan_orders",), select=(SelectItem(name="o_total"),))
        for i in range(2000)
    ]
    sink = Sink(id="sink_result", inputs=("calc_1999",), table="result")
    text = plan_tree(replace(plan, operators=(scan, *calcs, sink)))
    assert max(map(len, text.splitlines())) <= 120
    assert text.count("(continues below)") > 100
    for calc in calcs:
        assert f" {calc.id} " in text.replace("\n", "  ")


def test_control_characters_from_the_plan_are_shown_not_sent(plan: Plan) -> None:
    calc = plan.operator("calc_o")
    assert isinstance(calc, Calc)
    evil = replace(calc, filter="a\x1b[2K\n > '\u202e'")
    text = plan_tree(replace(plan, operators=tuple(evil if o.id == calc.id else o for o in plan.operators)))
    assert "WHERE a\\x1b[2K > '\\u202e'" in text
    assert text.replace("\n", "").isprintable()


def test_the_json_names_columns_and_who_set_each_ttl(plan: Plan) -> None:
    operators = {operator["id"]: operator for operator in explain_json(plan)["operators"]}
    assert set(operators) == {operator.id for operator in plan.operators}
    assert operators["join_o_c"]["columns"] == [
        {"name": "net", "type": "DOUBLE"},
        {"name": "c_country", "type": "STRING"},
    ]
    assert [entry["set-by"] for entry in operators["join_o_c"]["state"]] == ["edit", "hint"]
    assert len(operators["aggregate_t"]["state"]) == len(plan.operator("aggregate_t").state)


def test_a_plan_with_a_cycle_is_shown_all_the_same(plan: Plan) -> None:
    calc = plan.operator("calc_o")
    assert isinstance(calc, Calc)
    cyclic = replace(calc, inputs=("aggregate_t",))
    text = plan_tree(replace(plan, operators=tuple(cyclic if o.id == calc.id else o for o in plan.operators)))
    for operator in plan.operators:
        assert operator.id in text
