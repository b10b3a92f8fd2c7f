"""Cached results of a session: when they are made, who reads them, and when they are gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan import CachedResult, Session, execute
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink
from hintplan.plans.settings.cached import STORAGE_LEVELS
from hintplan.runtime.batch.cache import _storage_level
from tests.groups import cached_result
from tests.runtime.batch.programs import batch_plan, cached, read_rows, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
FILES = "'connector' = 'filesystem', 'format' = 'json'"


def orders_plan(directory: Path, sink: str, query: str, *, table: str = "orders", name: str = "job") -> Plan:
    """``query`` over the view ``joined`` of orders with customers, into files below ``directory``/``sink``."""
    return batch_plan(
        f"""
        CREATE TABLE {table} (id BIGINT, k BIGINT) WITH ({FILES}, 'path' = '{directory / "orders"}');
        CREATE TABLE customers (k BIGINT, country STRING) WITH ({FILES}, 'path' = '{directory / "customers"}');
        CREATE TABLE result (country STRING, n BIGINT) WITH ({FILES}, 'path' = '{directory / sink}');
        CREATE VIEW joined AS SELECT o.id, c.country FROM {table} AS o JOIN customers AS c ON o.k = c.k;
        INSERT INTO result {query};
        """,
        name=name,
    )


COUNTS = "SELECT country, COUNT(id) FROM joined GROUP BY country"
IDS = "SELECT country, MAX(id) FROM joined GROUP BY country"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_rows(tmp_path / "orders", [{"id": i, "k": i % 3} for i in range(5)])
    write_rows(tmp_path / "customers", [{"k": 0, "country": "DE"}, {"k": 1, "country": "FR"}])
    return tmp_path


@pytest.fixture
def session(spark: SparkSession) -> Iterator[Session]:
    with Session(spark) as opened:
        yield opened


def run(session: Session, plan: Plan) -> None:
    assert session.execute(plan).await_termination(DEADLINE_SECONDS)


def pairs(directory: Path) -> set[tuple[Any, ...]]:
    return {(row["country"], row["n"]) for row in read_rows(directory)}


def only(session: Session) -> CachedResult:
    (result,) = session.cached_results()
    return result


def persisted(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())  # type: ignore[union-attr]


def test_a_second_job_reads_what_the_first_has_computed(session: Session, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
    assert pairs(data / "first") == {("DE", 2), ("FR", 2)}
    result = only(session)
    assert (result.operator, result.plan, result.rows, result.hits) == ("join_o_c", "job", 4, 0)
    assert result.storage_level == "MEMORY_AND_DISK"
    assert result.bytes is not None
    assert result.bytes > 0
    write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
    run(session, cached(orders_plan(data, "second", IDS, name="other"), "join_o_c"))
    # A snapshot: order 99 came after the result was made.
    assert pairs(data / "second") == {("DE", 3), ("FR", 4)}
    assert (only(session).hits, only(session).plan) == (1, "job")


def test_a_plan_with_other_names_reads_it_if_its_operator_means_the_same(session: Session, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
    write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
    run(session, orders_plan(data, "second", IDS, table="bestellungen"))
    assert ("FR", 99) not in pairs(data / "second")
    assert only(session).hits == 1


def test_a_plan_that_wants_no_cached_result_computes_its_own(session: Session, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
    write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
    run(session, cached(orders_plan(data, "second", IDS), "join_o_c", enabled=False))
    assert ("FR", 99) in pairs(data / "second")
    assert only(session).hits == 0


def test_an_invalidated_result_is_made_anew_by_the_next_job(session: Session, spark: SparkSession, data: Path) -> None:
    plan = cached(orders_plan(data, "first", IDS), "join_o_c")
    run(session, plan)
    result = only(session)
    result.invalidate()
    result.invalidate()
    assert session.cached_results() == ()
    assert persisted(spark) == 0
    write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
    run(session, plan)
    assert ("FR", 99) in pairs(data / "first")
    assert (only(session).rows, only(session).hits) == (5, 0)


def test_uncache_drops_by_the_operators_name(session: Session, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
    with pytest.raises(RunError, match=r"no cached result of an operator 'join_o_x'.*\n.*join_o_c"):
        session.uncache("join_o_x")
    assert session.uncache("join_o_c") == 1
    assert session.cached_results() == ()


def test_a_plan_compiled_after_uncache_table_drops_the_result(session: Session, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
    write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
    plan = orders_plan(data, "second", IDS)
    uncached = cached_result({"statement": {"enabled": False}})
    operators = tuple(
        replace(o, settings={**o.settings, **uncached}) if o.id == "join_o_c" else o for o in plan.operators
    )
    run(session, replace(plan, operators=operators))
    assert ("FR", 99) in pairs(data / "second")
    assert session.cached_results() == ()


def test_the_sinks_of_one_plan_share_a_result(session: Session, spark: SparkSession, data: Path) -> None:
    plan = orders_plan(data, "first", COUNTS)
    (sink,) = (o for o in plan.operators if o.id == "sink_result")
    tables = {**plan.tables, "again": replace(plan.tables["result"], options={"connector": "blackhole"})}
    plan = replace(plan, tables=tables, operators=(*plan.operators, replace(sink, id="sink_again", table="again")))
    execution = execute(cached(plan, "join_o_c", "DISK_ONLY"), spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    first, again = (execution.progress[name].cached["join_o_c"] for name in ("sink_result", "sink_again"))
    assert (first.hit, again.hit, again.hits, again.rows, again.storage_level) == (False, True, 1, 4, "DISK_ONLY")
    assert persisted(spark) == 0, "a run of one plan drops its results at the end"


def test_a_run_says_what_several_sinks_compute_each_for_itself(spark: SparkSession, data: Path) -> None:
    plan = orders_plan(data, "first", COUNTS)
    (sink,) = (o for o in plan.operators if o.id == "sink_result")
    plan = replace(plan, operators=(*plan.operators, replace(sink, id="sink_again")))
    execution = execute(plan, spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    (note,) = (note for note in execution.notes if "is computed once for each of 2 sinks" in note)
    assert f"{sink.inputs[0]}.cached.enabled=true" in note


def test_closing_drops_all_results_also_when_a_job_has_failed(spark: SparkSession, data: Path) -> None:
    session = Session(spark)
    plan = cached(orders_plan(data, "first", COUNTS), "join_o_c")
    with session:
        run(session, plan)
        assert persisted(spark) > 0
        session.uncache("join_o_c")
        run(session, cached(orders_plan(data, "second", COUNTS), "scan_customers"))
        (data / "orders" / "bad.json").write_text("{no json\n", encoding="utf-8")
        with pytest.raises(RunError, match="the job of sink_result failed"):
            run(session, plan)
        assert persisted(spark) > 0
    assert persisted(spark) == 0
    with pytest.raises(RunError, match="the session is closed"):
        session.execute(plan)


def test_a_session_closes_when_its_block_is_left_by_an_error(spark: SparkSession, data: Path) -> None:
    def job_then_error() -> None:
        with Session(spark) as session:
            run(session, cached(orders_plan(data, "first", COUNTS), "join_o_c"))
            raise KeyError("of the caller")

    with pytest.raises(KeyError):
        job_then_error()
    assert persisted(spark) == 0


def test_a_cached_result_may_be_computed_from_another(session: Session, data: Path) -> None:
    plan = cached(cached(orders_plan(data, "first", IDS), "join_o_c"), "scan_orders")
    run(session, plan)
    rows = {result.operator: (result.rows, result.hits) for result in session.cached_results()}
    assert rows == {"scan_orders": (5, 0), "join_o_c": (4, 0)}
    run(session, cached(orders_plan(data, "second", IDS), "join_o_c"))
    assert {result.operator: result.hits for result in session.cached_results()} == {"scan_orders": 0, "join_o_c": 1}


def test_nobody_outside_the_session_reads_its_results(session: Session, spark: SparkSession, data: Path) -> None:
    run(session, cached(orders_plan(data, "first", COUNTS), "scan_orders"))
    with Session(spark) as other:
        write_rows(data / "orders", [{"id": 99, "k": 1}], "late.json")
        run(other, orders_plan(data, "second", COUNTS))
    assert pairs(data / "second") == {("DE", 2), ("FR", 3)}


def test_storage_levels_are_sparks(spark: SparkSession) -> None:
    levels = spark.sparkContext._jvm.org.apache.spark.storage.StorageLevel  # type: ignore[union-attr]
    for name in STORAGE_LEVELS:
        ours, theirs = _storage_level(name), levels.fromString(name)
        assert (ours.useDisk, ours.useMemory, ours.useOffHeap, ours.deserialized, ours.replication) == (
            theirs.useDisk(), theirs.useMemory(), theirs.useOffHeap(), theirs.deserialized(), theirs.replication()
        ), name  # fmt: skip


def test_only_batch_plans_have_cached_results(session: Session, spark: SparkSession, data: Path) -> None:
    scan = Scan(id="scan_t", table="t", columns=("a",))
    table = Table(
        columns=(TableColumn(name="a", type="INT"),),
        options={"connector": "filesystem", "format": "json", "path": str(data / "orders")},
    )
    sink = Sink(id="sink_r", inputs=("scan_t",), table="r")
    tables = {"t": table, "r": replace(table, options={"connector": "blackhole"})}
    plan = Plan(name="stream", tables=tables, operators=(scan, sink))
    with pytest.raises(RunError, match="plan stream is a streaming plan; a Session runs batch plans"):
        session.execute(plan)
    with pytest.raises((RunError, PlanError), match="batch"):
        execute(cached(plan, "scan_t"), spark, once=True)
