"""What a plan must mean before it may run: graph, columns, tables, configuration, row kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Join, Operator, Scan, SelectItem, Sink, Union

Patched = Callable[..., str]


def messages(plan: Plan) -> list[str]:
    return [str(problem) for problem in plan_problems(plan)]


def with_operator(plan: Plan, changed: Operator) -> Plan:
    return replace(plan, operators=tuple(changed if o.id == changed.id else o for o in plan.operators))


def test_the_sample_plan_is_valid(plan: Plan) -> None:
    assert messages(plan) == []


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (
            ('"inputs": ["calc_o", "scan_customers"]', '"inputs": ["calc_o", "scan_customer"]'),
            "operators.join_o_c.inputs[1]: there is no operator 'scan_customer'\n"
            "  hint: did you mean 'scan_customers'?",
        ),
        (
            ('"inputs": ["aggregate_t"]', '"inputs": ["join_o_c"]'),
            "operators.aggregate_t: nothing reads operator 'aggregate_t'\n  hint: every operator must lead to a sink",
        ),
        (
            ('"inputs": ["scan_orders"]', '"inputs": ["join_o_c"]'),
            "operators.calc_o.inputs[0]: 'calc_o' reads 'join_o_c', which depends on 'calc_o': the plan has a cycle",
        ),
        (
            ('"inputs": ["scan_orders"]', '"inputs": ["calc_o"]'),
            "operators.calc_o.inputs[0]: 'calc_o' reads 'calc_o', which depends on 'calc_o': the plan has a cycle",
        ),
        (
            ('"inputs": ["join_o_c"]', '"inputs": ["sink_result"]'),
            "operators.aggregate_t.inputs[0]: 'sink_result' is a sink; a sink has no output",
        ),
        (
            ('"id": "scan_customers"', '"id": "scan_orders"'),
            "operators[2].id: two operators are called 'scan_orders'",
        ),
        (
            ('"table": "customers"', '"table": "customer"'),
            "operators.scan_customers.table: there is no table 'customer'\n  hint: did you mean 'customers'?",
        ),
        (
            ('"columns": ["o_custkey", "o_total"]', '"columns": ["o_custkey", "o_totl"]'),
            "operators.scan_orders.columns: 'o_totl' is no column of table 'orders'\n  hint: did you mean 'o_total'?",
        ),
        (
            ('"columns": ["o_custkey", "o_total"]', '"columns": ["o_custkey", "pt"]'),
            "operators.scan_orders.columns: column 'pt' is computed and cannot be read\n"
            "  hint: scan the columns that it is computed from, and compute it in a calc",
        ),
        (
            ('"select": ["o_custkey",', '"select": ["o_cust",'),
            "operators.calc_o.select: 'o_cust' is no column\n  hint: did you mean 'o_custkey'?",
        ),
        (
            ('"left": "o_custkey"', '"left": "net"'),
            "operators.join_o_c.keys[0]: the columns of a join key must have the same type: 'net' is DOUBLE, "
            "'c_custkey' is BIGINT NOT NULL",
        ),
        (
            ('"right": "c_custkey"', '"right": "c_key"'),
            "operators.join_o_c.keys[0].right: 'c_key' is no column of the right input\n"
            "  hint: did you mean 'c_custkey'?",
        ),
        (
            ('"from": "right.c_country"', '"from": "left.c_country"'),
            "operators.join_o_c.output.c_country.from: 'c_country' is no column of the left input\n"
            "  hint: columns: o_custkey, net",
        ),
        (
            ('"type": "DOUBLE", "from": "left.net"', '"type": "BIGINT", "from": "left.net"'),
            "operators.join_o_c.output.net.type: the type is BIGINT, but left.net is DOUBLE",
        ),
        (
            ('"join-type": "left"', '"join-type": "semi"'),
            "operators.join_o_c.output.c_country.from: a semi join has no columns of its right input",
        ),
        (
            ('"keys": ["c_country"]', '"keys": ["country"]'),
            "operators.aggregate_t.keys: 'country' is no key column\n  hint: did you mean 'c_country'?",
        ),
        (
            ('"argument": "net"', '"argument": "c_country"'),
            "operators.aggregate_t.aggregates.revenue: SUM needs numbers, but 'c_country' is STRING and the "
            "result DOUBLE",
        ),
        (
            ('"argument": "net", ', ""),
            "operators.aggregate_t.aggregates.revenue: SUM needs an argument",
        ),
        (
            ('"function": "SUM"', '"function": "ARRAY_AGG"'),
            "operators.aggregate_t.aggregates.revenue.type: ARRAY_AGG makes ARRAY<DOUBLE> of DOUBLE, found DOUBLE",
        ),
        (
            ('"function": "SUM", "argument": "net"', '"function": "VAR_POP", "argument": "c_country"'),
            "operators.aggregate_t.aggregates.revenue.type: VAR_POP makes DOUBLE of numbers, found STRING and DOUBLE",
        ),
        (
            ('"argument": "net"', '"argument": "net", "filter": "net"'),
            "operators.aggregate_t.aggregates.revenue.filter: expected a BOOLEAN column, but 'net' is DOUBLE",
        ),
        (
            ('"name": "revenue", "function"', '"name": "c_country", "function"'),
            "operators.aggregate_t.aggregates: two columns are called 'c_country'",
        ),
        (
            ('"name": "net", "type": "DOUBLE", "expression"', '"name": "__net", "type": "DOUBLE", "expression"'),
            "operators.calc_o.select: column names that start with __ are reserved: '__net'",
        ),
        (
            ('{ "name": "revenue", "type": "DOUBLE" }', '{ "name": "revenue", "type": "BIGINT" }'),
            "operators.sink_result: column 'revenue' is DOUBLE, which does not fit BIGINT of table 'result'",
        ),
        (
            ('{ "name": "revenue", "type": "DOUBLE" }', '{ "name": "total", "type": "DOUBLE" }'),
            "operators.sink_result: table 'result' has the columns (c_country STRING, total DOUBLE), but the input has "
            "(c_country STRING, revenue DOUBLE)",
        ),
        (
            ('"primary-key": ["c_custkey"]', '"primary-key": ["c_key"]'),
            "tables.customers.primary-key: unknown column 'c_key'\n  hint: did you mean 'c_custkey'?",
        ),
        (
            ('"column": "ts"', '"column": "rowtime"'),
            "tables.orders.watermark.column: unknown column 'rowtime'\n"
            "  hint: valid names: o_id, o_custkey, o_total, ts, pt",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(patched: Patched, edit: tuple[str, str], answer: str) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.loads(patched(edit), allow_fact_edits=True)
    found = [str(replace(problem, line=None, column=None)) for problem in caught.value.diagnostics]
    assert answer in found


def test_an_operator_below_its_consumer_is_refused(plan: Plan) -> None:
    first, second, *rest = plan.operators
    assert (
        "operators.calc_o.inputs[0]: 'scan_orders' stands below 'calc_o', which reads it\n"
        "  hint: operators must be in dependency order: inputs before their consumers"
    ) in messages(replace(plan, operators=(second, first, *rest)))


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        (
            {"parallelism.defualt": "4"},
            "config.parallelism.defualt: unknown configuration key 'parallelism.defualt'\n"
            "  hint: did you mean 'parallelism.default'?",
        ),
        (
            {"parallelism.default": "0"},
            "config.parallelism.default: expected a whole number from 1 to 32768, found '0'",
        ),
        (
            {"table.local-time-zone": "Mars/Olympus"},
            "config.table.local-time-zone: 'Mars/Olympus' is not a time zone; write a name such as 'UTC' or "
            "'Europe/Berlin'",
        ),
        (
            {"pipeline.name": "x"},
            "config.pipeline.name: 'pipeline.name' is not in config: it is 'name' at the top of the plan",
        ),
    ],
)
def test_configuration_is_checked(plan: Plan, config: dict[str, str], answer: str) -> None:
    assert messages(replace(plan, config={**plan.config, **config})) == [answer]


def test_config_and_origins_must_agree_and_the_answer_says_how_to_bring_them_together(plan: Plan) -> None:
    assert messages(replace(plan, config={"table.exec.state.ttl": "2 h"})) == [
        "config.table.exec.state.ttl: config.table.exec.state.ttl is '2 h', but the origin of "
        "'join_o_c.state.leftState' says '1 h', and 2 more differ\n"
        "  hint: hintplan set plan.json config.table.exec.state.ttl='2 h' brings all origins in step"
    ]


def test_removing_the_config_value_alone_is_refused(plan: Plan) -> None:
    (answer,) = messages(replace(plan, config={}))
    assert answer.startswith("config.table.exec.state.ttl: config.table.exec.state.ttl is absent, but the origin of ")


def test_an_origin_without_config_must_record_the_default(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    settings = replace(join.state[0].settings, origin={"hint": {"ttl": "1 d"}})
    state = (replace(join.state[0], settings=settings), join.state[1])
    assert "operators.join_o_c.state.leftState.origin: without 'config', the origin records 'default'\n" in "".join(
        messages(with_operator(plan, replace(join, state=state)))
    )


def test_a_union_of_different_columns_is_refused(plan: Plan) -> None:
    left = Scan(id="scan_orders", table="orders", columns=("o_id",))
    right = Scan(id="scan_customers", table="customers", columns=("c_custkey",))
    union = Union(id="union_u", inputs=("scan_orders", "scan_customers"))
    found = messages(replace(plan, operators=(left, right, union)))
    assert (
        "operators.union_u.inputs: the inputs must agree in columns: 'scan_orders' has (o_id BIGINT NOT NULL); "
        "'scan_customers' has (c_custkey BIGINT NOT NULL)"
    ) in found


@pytest.mark.parametrize(
    ("have", "want", "fits"),
    [
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("INT NOT NULL", "INT", True),
        ("VARCHAR(5)", "STRING", True),
        ("STRING", "VARCHAR(5)", False),
        ("VARCHAR(5)", "VARCHAR(6)", True),
        ("DECIMAL(10, 2)", "DECIMAL(12, 4)", True),
        ("DECIMAL(10, 2)", "DECIMAL(11, 4)", False),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", False),
        ("STRING", "BIGINT", False),
    ],
)
def test_a_sink_takes_only_what_fits_its_columns(plan: Plan, have: str, want: str, fits: bool) -> None:
    calc = Calc(id="calc_x", inputs=("scan_orders",), select=(SelectItem(name="x", expression="o_custkey", type=have),))
    table = Table(columns=(TableColumn(name="x", type=want),), options={"connector": "blackhole"})
    sink = Sink(id="sink_result", inputs=("calc_x",), table="result")
    scan = plan.operator("scan_orders")
    found = messages(replace(plan, tables={**plan.tables, "result": table}, operators=(scan, calc, sink)))
    assert found == (
        [] if fits else [f"operators.sink_result: column 'x' is {have}, which does not fit {want} of table 'result'"]
    )


def test_a_table_that_cannot_be_written_is_refused_as_a_sink(plan: Plan) -> None:
    table = replace(plan.tables["result"], options={"connector": "datagen"})
    found = messages(replace(plan, tables={**plan.tables, "result": table}))
    assert "operators.sink_result.table: table 'result' cannot be written: its connector is 'datagen'" in found


def test_updates_that_an_append_only_sink_cannot_take_are_refused_with_their_producer(plan: Plan) -> None:
    options = {"connector": "filesystem", "path": "out", "format": "json"}
    table = replace(plan.tables["result"], options=options)
    assert messages(replace(plan, tables={**plan.tables, "result": table})) == [
        "operators.sink_result: table 'result' takes +I, but gets -U, +U, -D from the aggregate 'aggregate_t'\n"
        "  hint: use a connector that takes updates, such as an upsert table with a primary key"
    ]


def test_a_changelog_that_hides_deletions_is_refused(patched: Patched) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.loads(patched(('"changelog": ["+I", "-D"]', '"changelog": ["+I"]')), allow_fact_edits=True)
    first, *_ = caught.value.diagnostics
    assert str(replace(first, line=None, column=None)) == (
        "operators.join_o_c.changelog: the changelog is +I, but it must be +I, -D"
    )


def test_an_upsert_sink_takes_updates_whose_key_is_wider_or_filtered(plan: Plan) -> None:
    # -U takes a row back as -D does, so HAVING and a wider primary key are no reason to refuse.
    upserts = replace(
        plan.tables["result"],
        primary_key=("c_country",),
        columns=tuple(
            replace(column, type="STRING NOT NULL") if column.name == "c_country" else column
            for column in plan.tables["result"].columns
        ),
        options={"connector": "jdbc", "url": "jdbc:sqlite:r.db", "table-name": "result"},
    )
    aggregate = plan.operator("aggregate_t")
    filtered = Calc(
        id="calc_t",
        inputs=(aggregate.id,),
        select=tuple(SelectItem(name=column.name) for column in upserts.columns),
        filter="revenue > 1",
    )
    sink = replace(plan.operator("sink_result"), inputs=(filtered.id,))
    operators = (*plan.operators[:-1], filtered, sink)
    assert "-U" in aggregate.changelog
    assert plan_problems(replace(plan, tables={**plan.tables, "result": upserts}, operators=operators)) == ()


@pytest.mark.parametrize(
    ("was", "written", "answer"),
    [
        (
            '"expression": "o_total * 0.8"',
            '"expression": "reflect(o_total)"',
            "operators.calc_o.select.net: the expression uses 'reflect', which is not allowed in a plan",
        ),
        (
            '"filter": "o_total > 0"',
            '"filter": "coalesce(java_method(\'a\'), o_total) > 0"',
            "operators.calc_o.filter: the expression uses 'java_method', which is not allowed in a plan",
        ),
        (
            '"filter": "o_total > 0"',
            '"filter": "o_totl > 0"',
            "operators.calc_o.filter: 'o_totl' is no column of the input",
        ),
        (
            '"condition": null',
            '"condition": "l.net > r.c_contry"',
            "operators.join_o_c.condition: 'c_contry' is no column of 'r'",
        ),
        (
            '"condition": null',
            '"condition": "net > 1"',
            "operators.join_o_c.condition: 'net' is no side of the join",
        ),
    ],
)
def test_expressions_name_columns_and_functions_that_there_are(
    patched: Patched, was: str, written: str, answer: str
) -> None:
    with pytest.raises(hintplan.HintplanError) as caught:
        hintplan.loads(patched((was, written)), allow_fact_edits=True)
    (problem,) = caught.value.diagnostics
    assert str(problem).partition("\n")[0].endswith(answer)
    assert problem.line is not None
    assert problem.column is not None
    assert problem.hint is not None
