"""PARTITIONED BY and INSERT INTO ... PARTITION: what they become, and where each complaint points.

What is taken and what is refused is Flink 2.3's, but for tables whose connector has no partitions, which Flink takes.
"""

from __future__ import annotations

import pytest

import hintplan
from hintplan import compile_sql
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.errors import SqlError
from hintplan.plans.lint.loss_rules import overwriting_sinks

FILES = "WITH ('connector' = 'filesystem', 'path' = '/{}', 'format' = 'json')"
SOURCE = f"CREATE TABLE s (a INT, p STRING, r INT) {FILES.format('s')};\n"
SINK = f"CREATE TABLE q (a INT, p STRING, b INT, r INT) PARTITIONED BY (p, r) {FILES.format('q')};\n"


def refused(script: str) -> str:
    """The error of ``script``, which must point to where ^ stands in it."""
    place = script.index("^")
    line, column = script.count("\n", 0, place) + 1, place - script.rfind("\n", 0, place)
    with pytest.raises(SqlError) as caught:
        compile_sql(script.replace("^", ""), name="job")
    assert str(caught.value).startswith(f"line {line}:{column}: ")
    return str(caught.value)


def selected(insert: str) -> dict[str, str | None]:
    """What the calc above the scan makes of each column."""
    plan = compile_sql(SOURCE + SINK + insert, name="job")
    (calc,) = (operator for operator in plan.operators if operator.id.startswith("calc"))
    return {item.name: item.expression for item in calc.select}  # type: ignore[union-attr]


def test_the_partitions_of_a_table_are_a_fact_of_the_plan() -> None:
    plan = compile_sql(SOURCE + SINK + "INSERT INTO q SELECT a, p, 1, r FROM s;", name="job")
    assert plan.tables["q"].partitioned_by == ("p", "r")
    text = hintplan.dumps(plan)
    assert hintplan.loads(text).tables == plan.tables
    unknown = text.replace(b'"partitioned-by": ["p", "r"]', b'"partitioned-by": ["p", "rr"]')
    assert unknown != text
    with pytest.raises(hintplan.PlanError, match="unknown column 'rr'"):
        hintplan.loads(unknown)


@pytest.mark.parametrize(
    ("insert", "expected"),
    [
        ("PARTITION (p = 'x') SELECT a, 2, r FROM s", {"a": None, "p": "'x'", "b": "2", "r": None}),
        ("PARTITION (r = '7', p = 'x') SELECT a, 2 FROM s", {"a": None, "p": "'x'", "b": "2", "r": "CAST('7' AS INT)"}),
        ("PARTITION (p = 1) (b, r) SELECT a, r FROM s", {"a": "CAST(NULL AS INT)", "b": "a", "r": None}),
    ],
)
def test_columns_of_partition_are_constants_and_the_others_are_selected(
    insert: str, expected: dict[str, str | None]
) -> None:
    assert selected(f"INSERT INTO q {insert};").items() >= expected.items()


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ("PARTITION (^a = 1) SELECT p, 2, r FROM s", "'a' is no partition column of table 'q'"),
        ("PARTITION (^zz = 1) SELECT p, 2, r FROM s", "'zz' is no partition column of table 'q'"),
        ("PARTITION (p = ^NULL) SELECT a, 2, r FROM s", "the value of partition column 'p' is no constant"),
        ("PARTITION (p = ^UPPER('x')) SELECT a, 2, r FROM s", "the value of partition column 'p' is no constant"),
        ("PARTITION (p = ^r) SELECT a, 2, r FROM s", "the value of partition column 'p' is no constant"),
        ("PARTITION (p^) SELECT a, 2, r FROM s", "expected ="),
        ("PARTITION (p = 'x', ^p = 'y') SELECT a, 2, r FROM s", "column 'p' is listed twice"),
        ("PARTITION (p = 'x') ^SELECT a, p, 2, r FROM s", "the query has 4 columns, sink 'q' has 3"),
        ("PARTITION (p = 'x') ^(p, r) SELECT a, r FROM s", "sink 'q' has no physical column 'p'"),
    ],
)
def test_what_cannot_stand_in_partition_is_refused(insert: str, message: str) -> None:
    assert message in refused(f"{SOURCE}{SINK}INSERT INTO q {insert};")


@pytest.mark.parametrize(
    ("columns", "by", "message"),
    [
        ("a INT", "^(b)", "the partition column 'b' is no physical column"),
        ("a INT, b INT", "^(b, b)", "the partition column 'b' is listed twice"),
        ("a INT, b AS a + 1", "^(b)", "the partition column 'b' is no physical column"),
        ("a INT, b BIGINT METADATA FROM 'file.size' VIRTUAL", "^(b)", "the partition column 'b' is no physical column"),
        ("a INT", "^(a)", "all columns are partition columns"),
        ("a INT, b DECIMAL(3, 1)", "^(b)", "partition column 'b' is DECIMAL(3, 1)"),
        ("a INT, b TIMESTAMP_LTZ(3)", "^(b)", "partition column 'b' is TIMESTAMP_LTZ(3)"),
        ("a INT, b ARRAY<INT>", "^(b)", "partition column 'b' is ARRAY<INT>"),
    ],
)
def test_partitions_that_cannot_be_are_refused(columns: str, by: str, message: str) -> None:
    # What is asked for stands at PARTITIONED BY.
    script = f"CREATE TABLE q ({columns}) ^PARTITIONED BY {by.replace('^', '')} {FILES.format('q')};"
    assert message in refused(script)


def test_only_some_connectors_have_partitions() -> None:
    script = "CREATE TABLE q (a INT, b INT) ^PARTITIONED BY (b) WITH ('connector' = 'print');"
    assert "a table of the print connector has no PARTITIONED BY" in refused(script)
    assert "it is for delta, filesystem, iceberg" in refused(script)


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ("LIKE q", ("p", "r")),
        ("LIKE q (EXCLUDING PARTITIONS)", ("p", "r")),
    ],
)
def test_partitions_are_taken_over_by_like(like: str, expected: tuple[str, ...]) -> None:
    script = f"{SOURCE}{SINK}CREATE TABLE l WITH ('path' = '/l') {like};\nINSERT INTO l SELECT a, p, 1, r FROM s;"
    assert compile_sql(script, name="job").tables["l"].partitioned_by == expected


def test_partitions_are_declared_once() -> None:
    script = f"{SINK}CREATE TABLE l (x INT) ^PARTITIONED BY (x) WITH ('path' = '/l') LIKE q;"
    assert "'q' has partitions already" in refused(script)


@pytest.mark.parametrize("change", ["DROP ^p", "RENAME ^p TO pp"])
def test_a_partition_column_stays(change: str) -> None:
    assert "PARTITIONED BY of table 'q' depends on column 'p'" in refused(f"{SINK}ALTER TABLE q {change};")


BATCH = "SET 'execution.runtime-mode' = 'batch';\n"


def test_overwriting_is_for_batch_jobs() -> None:
    """Flink: Streaming mode not support overwrite."""
    assert "INSERT OVERWRITE is for batch jobs" in refused(
        f"{SOURCE}{SINK}INSERT ^OVERWRITE q SELECT a, p, 1, r FROM s;"
    )


@pytest.mark.parametrize("connector", ["print", "blackhole"])
def test_only_some_connectors_are_overwritten(connector: str) -> None:
    """Flink: INSERT OVERWRITE requires that the underlying DynamicTableSink implements SupportsOverwrite."""
    script = f"{BATCH}{SOURCE}CREATE TABLE x (a INT) WITH ('connector' = '{connector}');\n"
    message = refused(f"{script}INSERT ^OVERWRITE x SELECT 1 FROM s;")
    assert f"table 'x' cannot be overwritten: its connector is '{connector}'" in message
    assert "delta, filesystem, iceberg" in message


@pytest.mark.parametrize(("by", "expected"), [("", "table"), ("PARTITIONED BY (p)", "partitions")])
def test_an_overwriting_sink_is_in_the_plan_and_in_what_is_said_of_it(by: str, expected: str) -> None:
    files = "WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json')"
    script = f"{BATCH}{SOURCE}CREATE TABLE x (v INT, p INT) {by} {files};\nINSERT OVERWRITE x SELECT 1, 2 FROM s;"
    plan = compile_sql(script, name="job")
    assert plan.sinks[0].overwrite == expected
    assert hintplan.loads(hintplan.dumps(plan)) == plan
    where = "table 'x'" if expected == "table" else "the partitions of 'x' that it writes to"
    assert f"OVERWRITES all rows of {where}" in plan.sinks[0].describe(plan)
    found = list(overwriting_sinks(plan))
    assert [each.path for each in found] == ["operators.sink_x.overwrite"]
    assert f"each run deletes all rows of {where}" in found[0].message
    other = {"table": "partitions", "partitions": "table"}[expected]
    text = hintplan.dumps(plan).replace(f'"overwrite": "{expected}"'.encode(), f'"overwrite": "{other}"'.encode())
    with pytest.raises(hintplan.PlanError):
        hintplan.loads(text)
    appends = compile_sql(script.replace("OVERWRITE", "INTO"), name="job")
    (change,) = compare_plans(appends, plan)
    assert (change.path, change.after) == ("sink_x.overwrite", expected)
    assert change.note == "EXISTING ROWS ARE DELETED"
    assert [*overwriting_sinks(appends)] == []
