"""Changed plans on one checkpoint, on Spark: what `hintplan check` says of each state is what the restart does.

One job is restarted with one change after the other; tests/runtime/test_restart_matrix.py has many more, without Spark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.checkpoint.continuation import continuation
from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.record import read_record
from hintplan.runtime.run.execute import execute
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

    return hintplan.compile_sql(
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


def folders(directory: Path) -> set[str]:
    """The states that there are."""
    return {path.relative_to(directory / "checkpoint").as_posix() for path in directory.glob("checkpoint/*/state/*")}


def test_states_carry_over_start_empty_or_are_refused_as_predicted(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "c", [{"k": 1, "name": "p"}, {"k": 2, "name": "q"}])
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}, {"k": 2, "v": 40}])
    run(compiled(tmp_path, TOTALS), spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 5, "q": 40}
    assert folders(tmp_path) == {"sink_totals/state/aggregate_totals.1", "sink_totals/state/join_o_c.1"}

    # Other names, a filter above, an edited TTL and another INSERT: nothing is lost, and the new query reads all.
    plan = set_value(compiled(tmp_path, RENAMED + COUNTS), "join_x_y.leftState.ttl", "3 d")[0]
    assert predicted(plan, tmp_path) == {
        "sink_totals": "continues", "aggregate_z": "carries over", "join_x_y": "carries over",
        "sink_counts": "new", "aggregate_o": "new",
    }  # fmt: skip
    add_rows(tmp_path, "o", [{"k": 1, "v": 7}])
    add_rows(tmp_path, "c", [{"k": 2, "name": "r"}])
    run(plan, spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 5 + 7, "q": 40, "r": 40}
    assert stored(tmp_path, "counts") == {1: 2, 2: 1}
    assert {path for path in folders(tmp_path) if "totals" in path} == {
        "sink_totals/state/aggregate_totals.1", "sink_totals/state/join_o_c.1",
    }  # fmt: skip

    # Another function, and one INSERT less: not without being told to, and then before anything is written.
    changed = compiled(tmp_path, LARGEST)
    assert predicted(changed, tmp_path) == {
        "sink_totals": "continues", "aggregate_totals": "starts empty", "join_o_c": "carries over",
        "aggregate_z": "left behind", "sink_counts": "left behind", "aggregate_o": "left behind",
    }  # fmt: skip
    refused = compiled(tmp_path, "INSERT INTO counts SELECT k, COUNT(*) AS n FROM c GROUP BY k;" + TOTALS)
    before = list(files_below(tmp_path / "checkpoint"))
    with pytest.raises(
        RunError,
        match=r"aggregate_z is left behind \(.*; sink_counts is left behind, because the "
        "plan",
    ):
        run(changed, spark, tmp_path)
    with pytest.raises(RunError, match=r"scan_o_in_counts is left behind, because sink_counts no longer reads o"):
        run(refused, spark, tmp_path)
    assert list(files_below(tmp_path / "checkpoint")) == before
    add_rows(tmp_path, "o", [{"k": 1, "v": 3}])
    run(changed, spark, tmp_path, allow_state_drop=True)
    assert stored(tmp_path, "totals") == {"p": 3, "q": 40, "r": 40}, "the join knew p, the aggregate nothing"
    assert stored(tmp_path, "counts") == {1: 2, 2: 1}

    # What was agreed to is not asked again; what was left behind is taken up where it stopped.
    both = compiled(tmp_path, LARGEST + COUNTS)
    assert set(predicted(both, tmp_path).values()) == {"continues", "carries over"}
    add_rows(tmp_path, "o", [{"k": 1, "v": 2}, {"k": 2, "v": 41}])
    run(both, spark, tmp_path)
    assert stored(tmp_path, "totals") == {"p": 3, "q": 41, "r": 41}
    assert stored(tmp_path, "counts") == {1: 4, 2: 2}
    assert read_record(spark, str(tmp_path / "checkpoint")) == local_record(str(tmp_path / "checkpoint"))


def test_a_sub_query_that_is_read_twice_keeps_its_state_once(spark: SparkSession, tmp_path: Path) -> None:
    counted = "(SELECT k, COUNT(*) AS n FROM o GROUP BY k)"
    plan = compiled(
        tmp_path,
        f"INSERT INTO counts SELECT a.k, a.n + b.n AS n FROM {counted} AS a JOIN {counted} AS b ON a.k = b.k;",
    )
    checkpoint = str(tmp_path / "checkpoint")
    for rows, expected in (([1, 1, 2], {1: 4, 2: 2}), ([2, 3], {1: 4, 2: 4, 3: 2})):
        add_rows(tmp_path, "o", [{"k": k, "v": 0} for k in rows])
        execution = execute(plan, spark, checkpoint=checkpoint, once=True)
        assert execution.await_termination(DEADLINE_SECONDS)
        assert stored(tmp_path, "counts") == expected
        (batch,) = [
            progress.observedMetrics["aggregate_o"]
            for progress in execution.queries["sink_counts"].recentProgress
            if progress.numInputRows
        ]
        assert (batch.reports, batch.rows_in) == (2, len(rows)), "once in each of the two partitions"
        assert len(execution.queries["sink_counts"].lastProgress.sources) == 1, "both read the same rows of each batch"
