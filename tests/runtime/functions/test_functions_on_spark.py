"""Calls of functions on Spark: streams and batches, inner and left joins, changelogs, failures, classes, metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import Column, Function, Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate, AggregateCall, Argument, Correlate, JoinColumn, Operator, Scan, Sink
from hintplan.plans.settings.state import StateEntry, ttl_settings
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.correlate import call_function
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.shipping import ship_code
from tests.groups import call_settings
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
MODULES = ("tests.runtime.functions.samples",)
WORDS = (Column(name="word", type="STRING"), Column(name="length", type="INT"))
TEXTS = ["a bb", None, "ccc", "", "d d"]
FOUND = [("a bb", "a", 1), ("a bb", "bb", 2), ("ccc", "ccc", 3), ("d d", "d", 1), ("d d", "d", 1)]


def settings(kind: str, *, timeout: str = "1 min", attempts: int = 2) -> dict[str, Any]:
    if not kind.startswith("async"):
        return {"settings": {}}
    found = call_settings(buffer_capacity=3, timeout=timeout, fixed_delay="10 ms", max_attempts=attempts)
    return {"settings": found}


def job(directory: Path, name: str, kind: str = "async-table", join_type: Any = "inner", **changed: Any) -> Plan:
    """The words of each text, by the class ``name`` of the samples."""
    function = Function(class_name=f"{MODULES[0]}.{name}", kind=kind, arguments=("STRING", "STRING"), output=WORDS)  # type: ignore[arg-type]
    call = Correlate(
        id="correlate_w",
        inputs=("scan_t",),
        function="words",
        join_type=join_type,
        arguments=(Argument(column="text"), Argument(constant="' '")),
        output=(
            JoinColumn(name="text", type="STRING", side="left", column="text"),
            JoinColumn(name="word", type="STRING", side="right", column="word"),
            JoinColumn(name="length", type="INT", side="right", column="length"),
        ),
        **settings(kind, **changed),
    )
    result = {"text": "STRING", "word": "STRING", "length": "INT"}
    operators = (Scan(id="scan_t", table="texts", columns=("text",)), call)
    return whole_plan(directory, {"words": function}, operators, result)


def whole_plan(
    directory: Path,
    functions: dict[str, Function],
    operators: tuple[Operator, ...],
    result: dict[str, str],
    **sink: str,
) -> Plan:
    for name in ("texts", "result"):
        (directory / name).mkdir(exist_ok=True)
    files = {"connector": "filesystem", "format": "json"}
    texts = {**files, "path": str(directory / "texts"), "source.max-files-per-trigger": "1"}
    return Plan(
        name="words",
        config={"parallelism.default": "2"},
        functions=functions,
        tables={
            "texts": table({"text": "STRING"}, texts),
            "result": table(result, {**files, "path": str(directory / "result"), **sink}),
        },
        operators=(*operators, Sink(id="sink_result", inputs=(operators[-1].id,), table="result")),
    )


def table(columns: dict[str, str], options: dict[str, str]) -> Table:
    return Table(columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()), options=options)


def texts(directory: Path, *found: str | None) -> None:
    add_rows(directory, "texts", [{"text": text} for text in found])


def tuples(directory: Path) -> list[tuple[Any, ...]]:
    found = [(row.get("text"), row.get("word"), row.get("length")) for row in changes(directory)]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def run(plan: Plan, spark: SparkSession, directory: Path) -> Execution:
    execution = execute(
        plan, spark, once=True, checkpoint=str(directory / "checkpoint"), policy=Policy(modules=MODULES)
    )
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


@pytest.mark.parametrize(("name", "kind"), [("Words", "table"), ("AsyncWords", "async-table")])
def test_an_inner_join_has_a_row_for_each_row_that_the_function_returns(
    spark: SparkSession, tmp_path: Path, name: str, kind: str
) -> None:
    texts(tmp_path, *TEXTS)
    execution = run(job(tmp_path, name, kind), spark, tmp_path)
    assert tuples(tmp_path) == FOUND
    found = execution.progress["sink_result"].functions["correlate_w"]
    failures = 5 if kind == "async-table" else 0
    expected = {"calls": 5 + failures, "retries": failures, "failures": failures, "rowsOut": 5}
    assert {name: found[name] for name in expected} == expected
    assert 1 <= found["inFlightMax"] <= 3


def test_a_left_join_keeps_rows_whose_function_returned_nothing_over_several_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts(tmp_path, *TEXTS[:2])
    texts(tmp_path, *TEXTS[2:])
    run(job(tmp_path, "AsyncWords", join_type="left"), spark, tmp_path)
    assert tuples(tmp_path) == [(None, None, None), ("", None, None), *FOUND]


def test_calls_of_several_arrow_batches_are_in_flight_together_and_come_in_order(spark: SparkSession) -> None:
    own = spark.newSession()
    ship_code(own, MODULES)
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    numbers = (Column(name="id", type="BIGINT"),)
    function = Function(class_name=f"{MODULES[0]}.Together", kind="async-table", arguments=("BIGINT",), output=numbers)
    call = Correlate(
        id="correlate_n",
        inputs=("scan_t",),
        function="together",
        join_type="inner",
        arguments=(Argument(column="id"),),
        output=(JoinColumn(name="n", type="BIGINT", side="right", column="id"),),
        settings=call_settings(buffer_capacity=20, timeout="2 min", retry_strategy="no_retry"),
    )
    edges = Edges(
        backend=SparkBackend(session=own),
        plan=Plan(name="p", functions={"together": function}, operators=(call,)),
        columns={"scan_t": numbers},
        changelog={call.id: False},
        lookups=RequestRun(token="together", allowed_modules=MODULES),
    )
    frame = call_function(call, [own.range(0, 40, 1, 1).toDF("id")], edges)
    assert [row.n for row in frame.collect()] == [sign * number for number in range(40) for sign in (1, -1)]


def test_changes_pass_through_and_retractions_find_the_rows_of_their_inserts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """``SELECT text, COUNT(*), length(text) ... GROUP BY text``, with texts that come again."""
    texts(tmp_path, "a", "bb", None)
    texts(tmp_path, "bb", "bb", None)
    function = Function(
        class_name=f"{MODULES[0]}.AsyncLength",
        kind="async-scalar",
        arguments=("STRING",),
        output=(Column(name="value", type="INT"),),
    )
    counted = Aggregate(
        id="aggregate_t",
        inputs=("scan_t",),
        keys=("text",),
        aggregates=(AggregateCall(name="n", function="COUNT", type="BIGINT"),),
        state=(StateEntry(index=0, name="groupAggregateState", input="t", settings=ttl_settings()),),
        changelog=("+I", "-U", "+U"),
    )
    call = Correlate(
        id="correlate_l",
        inputs=("aggregate_t",),
        function="length",
        join_type="inner",
        arguments=(Argument(column="text"),),
        output=(
            JoinColumn(name="text", type="STRING", side="left", column="text"),
            JoinColumn(name="n", type="BIGINT", side="left", column="n"),
            JoinColumn(name="length", type="INT", side="right", column="value"),
        ),
        **settings("async-scalar"),
    )
    operators = (Scan(id="scan_t", table="texts", columns=("text",)), counted, call)
    result = {"text": "STRING", "n": "BIGINT", "length": "INT"}
    plan = whole_plan(tmp_path, {"length": function}, operators, result, **{"sink.changelog": "true"})
    run(plan, spark, tmp_path)
    folded: Counter[tuple[Any, ...]] = Counter()
    for row in changes(tmp_path):
        folded[row.get("text"), row["n"], row.get("length")] += 1 if row["op"] in ("+I", "+U") else -1
    assert +folded == {("a", 1, 1): 1, ("bb", 3, 2): 1, (None, 2, None): 1}
    assert min(folded.values()) == 0
    assert "-U" in [row["op"] for row in changes(tmp_path)]


def test_a_function_that_keeps_failing_fails_the_query_with_the_call_and_the_cause(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts(tmp_path, "a")
    with pytest.raises(
        RunError, match=r"operator correlate_w: words\('a', ' '\) failed 3 times: ConnectionError: nobody answers"
    ):
        run(job(tmp_path, "Broken"), spark, tmp_path)


def test_a_call_that_takes_too_long_fails_the_query_with_its_arguments_and_the_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts(tmp_path, "a")
    message = r"operator correlate_w: words\('a', ' '\) timed out after \d+ ms, 40 ms are allowed"
    with pytest.raises(RunError, match=message):
        run(job(tmp_path, "Never", timeout="40 ms"), spark, tmp_path)


def test_a_call_that_never_returns_fails_the_query_with_the_line_at_which_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts(tmp_path, "a")
    message = r"words\('a', ' '\) has blocked the event loop for \d+ ms, 300 ms .*, at .*samples\.py:\d+ in eval"
    with pytest.raises(RunError, match=message):
        run(job(tmp_path, "Hangs", timeout="300 ms"), spark, tmp_path)


def test_a_class_that_is_not_allowed_or_has_changed_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = job(tmp_path, "Words", "table")
    with pytest.raises(RunError, match=r"(?s)functions\.words\.class.*Words may not be loaded.*Policy\(modules="):
        execute(plan, spark, once=True)
    with pytest.raises(RunError, match=r"AsyncWords in module tests\.runtime\.functions\.samples is no TableFunction"):
        execute(job(tmp_path, "AsyncWords", "table"), spark, once=True, policy=Policy(modules=MODULES))
    function = replace(plan.functions["words"], output=(WORDS[0], replace(WORDS[1], type="BIGINT")))
    operators = tuple(
        replace(each, output=(*each.output[:2], replace(each.output[2], type="BIGINT")))
        if isinstance(each, Correlate)
        else each
        for each in plan.operators
    )
    result = table({"text": "STRING", "word": "STRING", "length": "BIGINT"}, dict(plan.tables["result"].options))
    older = replace(plan, functions={"words": function}, operators=operators, tables={**plan.tables, "result": result})
    message = "declares result STRING, INT, but the plan was compiled with STRING, BIGINT"
    with pytest.raises(RunError, match=message):
        execute(older, spark, once=True, policy=Policy(modules=MODULES))
