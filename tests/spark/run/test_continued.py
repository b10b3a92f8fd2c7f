"""Changed plans on one checkpoint, on Spark: what `hintplan check` says of each state is what the restart does.

One job is restarted with one change after the other; tests/runtime/test_restart_matrix.py has many more, without Spark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import planner
from plans.checkpoint.continuation import continuation
from plans.checkpoint.record import local_record
from plans.edit.edit import set_value
from plans.errors import RunError
from plans.model.plan import Plan
from runtime.checkpoint.record import read_record
from runtime.inspect.batches import committed_batches, saved_states
from runtime.run.execution import execute
from runtime.spark.session import prepare_session
from tests.spark.programs import add_rows

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180

TOTALS = "INSERT INTO totals SELECT c.name, SUM(o.v) AS t FROM o JOIN c ON o.k = c.k GROUP BY c.name;"
# The same states under other names, with something stateless above them.
RENAMED = (
    "INSERT INTO totals SELECT name, t FROM "
    "(SELECT y.name, SUM(x.v) AS t FROM o AS x JOIN c AS y ON x.k = y.k GROUP BY y.name) AS z WHERE t <> 0;"
)
LARGEST = TOTALS.replace("SUM", "MAX")
COUNTS = "INSERT INTO counts SELECT k, COUNT(*) AS n FROM o GROUP BY k;"


def compiled(directory: Path, inserts: str) -> Plan:
    def files(name: str, columns: str) -> str:
        (directory / name).mkdir(exist_ok=True)
        options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / name}'"
        return f"CREATE TABLE {name} ({columns}) WITH ({options});"

    def jdbc(name: str, columns: str) -> str:
        url = f"jdbc:sqlite:{directory / 'result.db'}"
        return f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = '{name}');"

    return planner.compile_sql(
        "SET 'parallelism.default' = '2';"
        + files("o", "k BIGINT, v BIGINT")
        + files("c", "k BIGINT, name STRING")
        + jdbc("totals", "name STRING, t BIGINT, PRIMARY KEY (name) NOT ENFORCED")
        + jdbc("counts", "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED")
        + inserts,
        name="job",
    )


def stored(directory: Path, table: str) -> dict:
    connection = sqlite3.connect(directory / "result.db")
    try:
        return dict(connection.execute(f"SELECT * FROM {table}").fetchall())
    finally:
        connection.close()


def files_below(directory: Path) -> Iterator[tuple[str, int]]:
    return ((str(path), path.stat().st_mtime_ns) for path in sorted(directory.rglob("*")) if path.is_file())


def predicted(plan: Plan, directory: Path) -> dict[str, str]:
    """What `hintplan check` says of each query and each state."""
    found = continuation(local_record(str(directory / "checkpoint")), plan)
    states = {state.operator: state.outcome for verdict in found.verdicts for state in verdict.states}
    return states | {verdict.query: verdict.outcome for verdict in found.verdicts}


def run(plan: Plan, spark: SparkSession, directory: Path, *, allow_state_drop: bool = False) -> None:
    checkpoint = str(directory / "checkpoint")
    execution = execute(plan, spark, checkpoint=checkpoint, once=True, allow_state_drop=allow_state_drop)
    assert execution.await_termination(DEADLINE_SECONDS)


def numbers(spark: SparkSession, directory: Path) -> dict[tuple[str, int], str | None]:
    """Whose state Spark keeps under which number of which query."""
    own = prepare_session(spark, time_zone="UTC", once=True)
    checkpoint = str(directory / "checkpoint")
    committed = {query: batch for query, batch in committed_batches(own, checkpoint).items() if batch is not None}
    found = saved_states(own, checkpoint, committed)
    return {number: next(iter(saved.values())).operator for number, saved in found.items()}


def test_states_carry_over_start_empty_or_are_refused_as_predicted(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "c", [{"k": 1, "name": "p"}, {"k": 2, "name": "q"}])
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}, {"k": 2, "v": 40}])
    run(compiled(tmp_path, TOTALS), spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 5, "q": 40}
    # Spark numbers stateful operators from the sink down; that a state carries over is said of its number.
    assert numbers(spark, tmp_path) == {("sink_totals", 0): "aggregate_totals", ("sink_totals", 1): "join_o_c"}

    # Other names, a filter above, an edited TTL and another INSERT: nothing is lost, and the new query reads all.
    plan = set_value(compiled(tmp_path, RENAMED + COUNTS), "join_x_y.leftState.ttl", "3 d")[0]
    assert predicted(plan, tmp_path) == {
        "sink_totals": "goes on", "aggregate_z": "carries over", "join_x_y": "carries over",
        "sink_counts": "new", "aggregate_o": "new",
    }  # fmt: skip
    add_rows(tmp_path, "o", [{"k": 1, "v": 7}])
    add_rows(tmp_path, "c", [{"k": 2, "name": "r"}])
    run(plan, spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 5 + 7, "q": 40, "r": 40}
    assert stored(tmp_path, "counts") == {1: 2, 2: 1}

    # Another function, and one INSERT less: not without being told to, and then before anything is written.
    changed = compiled(tmp_path, LARGEST)
    assert predicted(changed, tmp_path) == {
        "sink_totals": "goes on", "aggregate_totals": "starts empty", "join_o_c": "carries over",
        "sink_counts": "left behind", "aggregate_o": "left behind",
    }  # fmt: skip
    refused = compiled(tmp_path, "INSERT INTO counts SELECT k, COUNT(*) AS n FROM c GROUP BY k;" + TOTALS)
    before = list(files_below(tmp_path / "checkpoint"))
    causes = r"sink_counts is left behind.*aggregate_totals starts empty|starts empty.*left be"
    with pytest.raises(RunError, match=causes):
        run(changed, spark, tmp_path)
    with pytest.raises(RunError, match=r"sink_counts: it also reads c \(filesystem\) and it no longer reads o"):
        run(refused, spark, tmp_path, allow_state_drop=True)
    assert list(files_below(tmp_path / "checkpoint")) == before
    add_rows(tmp_path, "o", [{"k": 1, "v": 3}])
    run(changed, spark, tmp_path, allow_state_drop=True)
    assert stored(tmp_path, "totals") == {"p": 3, "q": 40, "r": 40}, "the join knew p, the aggregate nothing"
    assert stored(tmp_path, "counts") == {1: 2, 2: 1}

    # What was agreed to is not asked again; what was left behind is taken up where it stopped.
    both = compiled(tmp_path, LARGEST + COUNTS)
    assert set(predicted(both, tmp_path).values()) == {"goes on", "carries over"}
    add_rows(tmp_path, "o", [{"k": 1, "v": 2}, {"k": 2, "v": 41}])
    run(both, spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 3, "q": 41, "r": 41}
    assert stored(tmp_path, "counts") == {1: 4, 2: 2}
    assert read_record(spark, str(tmp_path / "checkpoint")) == local_record(str(tmp_path / "checkpoint"))
