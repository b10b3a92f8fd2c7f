"""A job continues with other sources than before: old ones where it stopped, new ones from the beginning.

SQLite says what must be left, of rows whose ``b`` is the batch they came in: two before the change and one after it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.checkpoint.continuation import continuation
from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.parts import refuse_damaged
from hintplan.runtime.inspect.snapshot import take_snapshot
from hintplan.runtime.run import starting
from hintplan.runtime.run.execute import execute
from tests.sample import each_once
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180

ROWS = {
    "o": [[(1, 5), (2, 7), (1, 1)], [(1, 2), (2, 4), (3, 8)], [(1, 3), (2, 1), (3, 9), (4, 4)]],
    "c": [[(1, 50), (2, 60)], [(3, 70)], [(4, 80), (1, 90)]],
    "d": [[(7, 10)], [(8, 20)], [(9, 30)]],
}
"""Of each table the rows of each batch."""

SUMS = "SELECT k, SUM(w) AS n FROM o GROUP BY k"
OTHERS = "SELECT k + 100 AS k, w AS n FROM {}"
GIVEN = "SELECT k, SUM(w) AS n FROM (SELECT k, w FROM o UNION ALL VALUES (1, 1000), (9, 4), (9, 4)) AS t GROUP BY k"
JOINED = "SELECT o.k * 100 + o.w AS k, c.w AS n FROM o JOIN c ON o.k = c.k"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Queries ``before`` and ``after``; ``left`` are those of SQLite whose rows the sink then has, a later one's in the
    place of an earlier one's with the same key."""

    before: str
    after: str
    left: Sequence[str]
    sources: dict[str, str]
    drops: bool = False


CASES = {
    "a source more": Case(
        before=SUMS,
        after=f"{SUMS} UNION ALL {OTHERS.format('c')}",
        left=[SUMS, f"{OTHERS.format('c')} ORDER BY b"],
        sources={"scan_c": "new"},
    ),
    "a source more, before the one there was": Case(
        before=SUMS,
        after=f"{OTHERS.format('c')} UNION ALL {SUMS}",
        left=[SUMS, f"{OTHERS.format('c')} ORDER BY b"],
        sources={"scan_c": "new"},
    ),
    "a source less": Case(
        before=f"{OTHERS.format('c')} UNION ALL {SUMS}",
        after=SUMS,
        left=[SUMS, f"{OTHERS.format('c')} WHERE b < 3 ORDER BY b"],
        sources={"scan_c": "left behind"},
        drops=True,
    ),
    "another source": Case(
        before=f"{OTHERS.format('c')} UNION ALL {SUMS}",
        after=f"{OTHERS.format('d')} UNION ALL {SUMS}",
        left=[SUMS, f"{OTHERS.format('c')} WHERE b < 3 ORDER BY b", OTHERS.format("d")],
        sources={"scan_d": "new", "scan_c": "left behind"},
        drops=True,
    ),
    "sources in another order": Case(
        before=f"{OTHERS.format('c')} UNION ALL {SUMS}",
        after=f"{SUMS} UNION ALL {OTHERS.format('c')}",
        left=[SUMS, f"{OTHERS.format('c')} ORDER BY b"],
        sources={},
    ),
    "a table that is read once more, for other columns": Case(
        before=SUMS,
        after=f"{SUMS} UNION ALL SELECT k + 100 AS k, COUNT(*) AS n FROM o GROUP BY k",
        left=[SUMS, "SELECT k + 100, COUNT(*) FROM o GROUP BY k"],
        sources={"scan_o_in_r": "new"},
    ),
    "a sub-query that is read once more": Case(
        before=SUMS,
        after=f"WITH s AS ({SUMS}) SELECT k, n FROM s UNION ALL SELECT k + 100, n FROM s",
        left=[SUMS, "SELECT k + 100, SUM(w) FROM o GROUP BY k"],
        sources={},
    ),
    "a sub-query that is read once less": Case(
        before=f"WITH s AS ({SUMS}) SELECT k, n FROM s UNION ALL SELECT k + 100, n FROM s",
        after=SUMS,
        left=[SUMS, "SELECT k + 100, SUM(w) FROM o WHERE b < 3 GROUP BY k"],
        sources={},
    ),
    "a source more, before rows of the plan": Case(
        before=GIVEN,
        after=f"{OTHERS.format('d')} UNION ALL {GIVEN}",
        left=[GIVEN, OTHERS.format("d")],
        sources={"scan_d": "new"},
    ),
    "rows of the plan more": Case(
        before=SUMS,
        after=f"{SUMS} UNION ALL VALUES (901, 1), (902, 2)",
        left=[SUMS, "VALUES (901, 1), (902, 2)"],
        sources={"values_r": "new"},
    ),
    "a branch above a join, and its sides the other way round": Case(
        before=JOINED,
        after=f"{OTHERS.format('d')} UNION ALL {JOINED}",
        left=[f"{JOINED} ORDER BY c.b", OTHERS.format("d")],
        sources={"scan_d": "new"},
    ),
}  # fmt: skip


def compiled(directory: Path, query: str) -> Plan:
    tables = "".join(
        f"CREATE TABLE {name} (k BIGINT, w BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / name}');"
        for name in ROWS
    )
    url = f"jdbc:sqlite:{directory / 'result.db'}"
    return hintplan.compile_sql(
        f"SET 'parallelism.default' = '2'; SET 'table.exec.sink.upsert-materialize' = 'NONE'; {tables}"
        "CREATE TABLE r (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) "
        f"WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'r'); INSERT INTO r {query};",
        name="job",
    )


def write_batch(directory: Path, batch: int) -> None:
    for name, batches in ROWS.items():
        add_rows(directory, name, [{"k": k, "w": w} for k, w in batches[batch]])


def run(
    plan: Plan, spark: SparkSession, directory: Path, *, drops: bool = False, checkpoint: str = "checkpoint"
) -> None:
    execution = execute(plan, spark, checkpoint=str(directory / checkpoint), once=True, allow_state_drop=drops)
    assert execution.await_termination(DEADLINE_SECONDS)


def stored(directory: Path) -> dict[int, int]:
    with sqlite3.connect(directory / "result.db") as database:
        return dict(database.execute("SELECT k, n FROM r"))


def expected(queries: Sequence[str]) -> dict[int, int]:
    database = sqlite3.connect(":memory:")
    for name, batches in ROWS.items():
        database.execute(f"CREATE TABLE {name} (k, w, b)")
        for number, rows in enumerate(batches, start=1):
            database.executemany(f"INSERT INTO {name} VALUES (?, ?, {number})", rows)
    return {k: n for query in queries for k, n in database.execute(query)}


def uncommit(directory: Path) -> None:
    """The last batch has begun, and not ended."""
    last = max((directory / "checkpoint").glob("sink_r/commits/[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()


@pytest.mark.parametrize(
    ("name", "begun"),
    each_once(CASES, [pytest.param(False, id=""), pytest.param(True, id="in the middle of a batch")]),
)
def test_what_is_still_read_goes_on_and_what_is_new_begins(
    spark: SparkSession, tmp_path: Path, name: str, begun: bool
) -> None:
    case = CASES[name]
    before, after = compiled(tmp_path, case.before), compiled(tmp_path, case.after)
    for batch in (0, 1):
        write_batch(tmp_path, batch)
        run(before, spark, tmp_path)
    if begun:
        uncommit(tmp_path)
    found = continuation(local_record(str(tmp_path / "checkpoint")), after)
    (verdict,) = found.verdicts
    assert {source.operator: source.outcome for source in verdict.sources} == case.sources
    assert (verdict.outcome, found.loses) == ("continues", case.drops)
    if case.drops:
        with pytest.raises(RunError, match="left behind"):
            run(after, spark, tmp_path)
    write_batch(tmp_path, 2)
    run(after, spark, tmp_path, drops=case.drops)
    assert stored(tmp_path) == expected(case.left)
    record = local_record(str(tmp_path / "checkpoint"))
    assert record is not None
    refuse_damaged(local_files(tmp_path / "checkpoint"), record, "checkpoint")
    logs = {path.parent.relative_to(tmp_path / "checkpoint").as_posix() for path in tmp_path.rglob("metadata")}
    assert logs == {record.queries[0].logs} == {"sink_r/logs.1"}, "the logs of the one before it are gone"

    run(after, spark, tmp_path)  # with the same sources there is no other generation
    assert local_record(str(tmp_path / "checkpoint")) == record
    assert stored(tmp_path) == expected(case.left)


class Killed(BaseException):
    """What a process would not have noticed."""


@pytest.mark.parametrize("step", ["begin_generation", "write_record", "start_query"])
def test_a_run_that_dies_on_the_way_to_other_sources_is_followed_by_either_plan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    case = CASES["a source more, before the one there was"]
    before, after = compiled(tmp_path, case.before), compiled(tmp_path, case.after)
    for batch in (0, 1):
        write_batch(tmp_path, batch)
        run(before, spark, tmp_path)
    files = len(list((tmp_path / "checkpoint").rglob("logs.*/offsets/*")))
    original = getattr(starting, step)

    def dies(*given: object) -> None:
        if step == "begin_generation":
            original(*given)  # its last file is lost
            (tmp_path / "checkpoint/sink_r/logs.1/metadata").unlink()
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(starting, step, dies)
        with pytest.raises(Killed):
            run(after, spark, tmp_path)
    assert files == 0
    assert len(list((tmp_path / "checkpoint").rglob("logs.*/offsets/*"))) > 0
    write_batch(tmp_path, 2)
    if step != "start_query":
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "checkpoint", copy)
        run(before, spark, tmp_path, checkpoint="copy")
        assert stored(tmp_path) == expected([SUMS])
    run(after, spark, tmp_path)
    assert stored(tmp_path) == expected(case.left)


def test_a_snapshot_and_damage_are_of_the_generation_in_force(spark: SparkSession, tmp_path: Path) -> None:
    case = CASES["a source more, before the one there was"]
    write_batch(tmp_path, 0)
    run(compiled(tmp_path, case.before), spark, tmp_path)
    write_batch(tmp_path, 1)
    after = compiled(tmp_path, case.after)
    run(after, spark, tmp_path)
    taken = take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "snapshot"))
    assert taken.batches == {"sink_r": 1}
    write_batch(tmp_path, 2)
    run(after, spark, tmp_path, checkpoint="snapshot")
    assert stored(tmp_path) == expected(case.left)

    record = local_record(str(tmp_path / "checkpoint"))
    logs = tmp_path / "checkpoint/sink_r/logs.1"
    needed = ["metadata", "offsets/0", "offsets/1", "commits/0", "sources/0/0", "sources/1/0", "sources/1/1"]
    for name in needed:
        text = (logs / name).read_bytes()
        (logs / name).unlink()
        with pytest.raises(RunError, match=f"sink_r/logs.1/{name} |sink_r/logs.1/commits"):
            refuse_damaged(local_files(tmp_path / "checkpoint"), record, "checkpoint")
        (logs / name).write_bytes(text)
    refuse_damaged(local_files(tmp_path / "checkpoint"), record, "checkpoint")


DEFERRED = (
    "/*+ LOOKUP('table'='names', 'output-mode'='allow_unordered', 'retry-predicate'='lookup_miss', "
    "'retry-strategy'='fixed_delay', 'fixed-delay'='1h', 'max-attempts'='3') */"
)


def looked_up(tmp_path: Path, hint: str) -> Plan:
    return hintplan.compile_sql(
        f"""
        SET 'parallelism.default' = '2';
        CREATE TABLE o (k BIGINT, w BIGINT, at AS PROCTIME())
          WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / "o"}');
        CREATE TABLE names (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
          WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "names.db"}', 'table-name' = 'names');
        CREATE TABLE r (k BIGINT, n BIGINT)
          WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / "r"}');
        INSERT INTO r SELECT {hint} o.w, names.n
          FROM o JOIN names FOR SYSTEM_TIME AS OF o.at ON o.k = names.k;
        """,
        name="job",
    )


def test_rows_that_wait_for_a_lookup_come_and_go_as_a_source(spark: SparkSession, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "names.db") as names:
        names.execute("CREATE TABLE names (k BIGINT PRIMARY KEY, n BIGINT)")
        names.execute("INSERT INTO names VALUES (1, 10), (2, 20)")
    (tmp_path / "o").mkdir()
    plan, deferred = looked_up(tmp_path, ""), looked_up(tmp_path, DEFERRED)
    for number, (chosen, drops) in enumerate([(plan, False), (deferred, False), (plan, True)]):
        add_rows(tmp_path, "o", [{"k": k, "w": number * 10 + k} for k in (1, 2)])
        run(chosen, spark, tmp_path, drops=drops)
    found = [json.loads(line) for path in tmp_path.glob("r/*.json") for line in path.read_text().splitlines()]
    wanted = [{"k": number * 10 + k, "n": k * 10} for number in range(3) for k in (1, 2)]
    assert sorted(found, key=lambda row: row["k"]) == wanted
