"""Operators between a watermark and a window pass marks on: UNNEST, lookups, functions and grouping sets, on Spark.

All queries are branches of one job. The expected rows are counted by hand from the rows of the files.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan import compile_sql
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WindowAggregate
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.runtime.functions.samples import AsyncLength, AsyncWords, Words
from tests.sample import in_turn
from tests.spark.programs import add_rows

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
MODULES = ("tests.runtime.functions.samples", "tests.connectors.lookup.rates")
FILES: tuple[list[dict[str, Any]], ...] = (
    [
        {"k": "a", "words": "one two", "tags": ["x", "y"], "ts": "2024-01-01 00:00:01"},
        {"k": "b", "words": "three", "tags": [], "ts": "2024-01-01 00:00:04"},
        {"k": "c", "words": None, "tags": ["x", None], "ts": "2024-01-01 00:00:09"},
        {"k": "a", "words": "one", "tags": ["y"], "ts": "2024-01-01 00:00:12"},
        {"k": None, "words": "", "tags": None, "ts": "2024-01-01 00:00:20"},
    ],
    [{"k": "a", "words": "late", "tags": ["x"], "ts": "2024-01-01 00:00:08"}],
)
"""A file a batch. No query counts the last row of the first file, which moves the watermark from 00:02 to 00:10.

The row has no tags, no words and no rate, and all other queries filter it. The row of the second file is late. The end
closes the second window.
"""
DELAY = "INTERVAL '10' SECOND"
RATES = [{"code": "A", "name": "One"}, {"code": "A", "name": "Two"}, {"code": "C", "name": "Two"}]
LOOKUP = "t LEFT JOIN rates FOR SYSTEM_TIME AS OF t.pt AS r ON r.code = UPPER(t.k)"
UNNEST = "UNNEST(t.tags) AS e (tag)"
WORDS = "LATERAL TABLE({}(t.words, ' ')) AS w"


class Case(NamedTuple):
    """A query with the columns ``s`` and ``ts``, the number of each ``s`` in the windows, and of its late rows."""

    query: str
    first: dict[str | None, int]
    second: dict[str | None, int]
    late: int = 1


CASES: dict[str, Case] = {
    "unnest": Case(
        f"SELECT e.tag AS s, t.ts FROM t CROSS JOIN {UNNEST} WHERE k IS NOT NULL", {"x": 2, "y": 1, None: 1}, {"y": 1}
    ),
    "left unnest": Case(
        f"SELECT e.tag AS s, t.ts FROM t LEFT JOIN {UNNEST} ON TRUE WHERE k <> 'c'", {"x": 1, "y": 1, None: 1}, {"y": 1}
    ),
    "lookup": Case(
        f"SELECT r.name AS s, t.ts FROM {LOOKUP.replace('LEFT ', '')} AND r.name <> t.words",
        {"One": 1, "Two": 1},
        {"One": 1, "Two": 1},
        late=2,
    ),
    "left lookup": Case(
        f"SELECT r.name AS s, t.ts FROM {LOOKUP} WHERE k IS NOT NULL",
        {"One": 1, "Two": 2, None: 1},
        {"One": 1, "Two": 1},
        late=2,
    ),
    "left lookup with a condition": Case(
        f"SELECT r.name AS s, t.ts FROM {LOOKUP} AND r.name = 'Two' WHERE k IS NOT NULL",
        {"Two": 2, None: 1},
        {"Two": 1},
    ),
    "left lookup with a condition of Spark": Case(
        f"SELECT r.name AS s, t.ts FROM {LOOKUP} AND UPPER(r.name) = 'ONE' WHERE k IS NOT NULL",
        {"One": 1, None: 2},
        {"One": 1},
    ),
    "left lookup of some rows": Case(
        f"SELECT r.name AS s, t.ts FROM {LOOKUP} AND 8 / (CHAR_LENGTH(t.words) - 5) > 0 "
        "WHERE CHAR_LENGTH(t.words) <> 5 AND k IS NOT NULL",
        {"One": 1, "Two": 1},
        {None: 1},
        late=1,
    ),
    "function": Case(
        f"SELECT w.word AS s, t.ts FROM t CROSS JOIN {WORDS.format('words_of')}",
        {"one": 1, "two": 1, "three": 1},
        {"one": 1},
    ),
    "left function": Case(
        f"SELECT w.word AS s, t.ts FROM t LEFT JOIN {WORDS.format('words_of')} ON TRUE WHERE k <> 'b'",
        {"one": 1, "two": 1, None: 1},
        {"one": 1},
    ),
    "async function": Case(
        f"SELECT w.word AS s, t.ts FROM t CROSS JOIN {WORDS.format('async_words')}",
        {"one": 1, "two": 1, "three": 1},
        {"one": 1},
    ),
    "async scalar function": Case(
        "SELECT CAST(async_length(words) AS STRING) AS s, ts FROM t WHERE k IS NOT NULL",
        {"7": 1, "5": 1, None: 1},
        {"3": 1},
    ),
    "all": Case(
        f"SELECT CONCAT(w.word, e.tag, r.name) AS s, t.ts FROM t CROSS JOIN {UNNEST} "
        "JOIN rates FOR SYSTEM_TIME AS OF t.pt AS r ON r.code = UPPER(t.k) "
        f"CROSS JOIN {WORDS.format('async_words')} WHERE CHAR_LENGTH(UPPER(e.tag)) = 1 AND r.name <> 'One'",
        {"onexTwo": 1, "twoxTwo": 1, "oneyTwo": 1, "twoyTwo": 1},
        {"oneyTwo": 1},
    ),
}
SETS = Case(
    "SELECT k, CAST(CARDINALITY(tags) AS STRING) AS size, ts FROM t WHERE k IS NOT NULL",
    {"a-": 1, "b-": 1, "c-": 1, "-2": 2, "-0": 1},
    {"a-": 1, "-1": 1},
    late=2,
)
"""Grouping sets of a key and of the number of tags."""
BOUNDS = "window_start, window_end"


def compiled(directory: Path) -> Plan:
    (directory / "t").mkdir()
    (directory / "rates.json").write_text("".join(json.dumps(rate) + "\n" for rate in RATES))
    branches = [(name, case.query, "s", f"s, {BOUNDS}") for name, case in CASES.items()]
    text = "CONCAT(COALESCE(k, ''), '-', COALESCE(size, ''))"
    branches.append(("sets", SETS.query, text, f"GROUPING SETS ((k, {BOUNDS}), (size, {BOUNDS}))"))
    views = "".join(f"CREATE VIEW v{number} AS {query};\n" for number, (_, query, _, _) in enumerate(branches))
    queries = [
        f"SELECT '{name}', {value}, COUNT(*), window_end\n"
        f"FROM TABLE(TUMBLE(TABLE v{number}, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY {keys}"
        for number, (name, _, value, keys) in enumerate(branches)
    ]
    script = f"""
    CREATE TABLE t (
      k STRING, words STRING, tags ARRAY<STRING>, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - {DELAY}
    ) WITH (
      'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/t', 'source.max-files-per-trigger' = '1'
    );
    CREATE TABLE rates (code STRING, name STRING) WITH (
      'connector' = 'python', 'class' = 'tests.connectors.lookup.rates.Rates',
      'properties.path' = '{directory}/rates.json'
    );
    CREATE TABLE counted (name STRING, s STRING, n BIGINT, ending TIMESTAMP(3)) WITH ('connector' = 'dataframe');
    {views}
    INSERT INTO counted {" UNION ALL ".join(queries)};"""
    config = {"parallelism.default": "1", "table.exec.async-table.fixed-delay": "10 ms"}
    functions = {"words_of": Words, "async_words": AsyncWords, "async_length": AsyncLength}
    return compile_sql(script, config, functions=functions)


def run(plan: Plan, spark: SparkSession, directory: Path) -> tuple[Execution, dict[int, dict]]:
    """Run to the end, and return the rows of each batch."""
    batches: dict[int, dict] = {}

    def write(rows: DataFrame, batch: int) -> None:
        found = [tuple(row.values()) for row in rows.toArrow().to_pylist()]
        batches[batch] = {(name, s, ending.second): n for name, s, n, ending in found}
        assert len(batches[batch]) == len(found)

    execution = execute(
        plan,
        spark,
        checkpoint=str(directory / "checkpoint"),
        drain=True,
        policy=Policy(modules=MODULES),
        sinks={"counted": write},
    )
    assert isinstance(execution, Execution)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution, batches


@in_turn(0, of=3)
def test_marks_pass_what_stands_between_a_watermark_and_a_window(spark: SparkSession, tmp_path: Path) -> None:
    plan = compiled(tmp_path)
    kinds = {operator.op for operator in plan.operators}
    assert kinds >= {"unnest", "lookup-join", "correlate", "expand", "calc"}
    for rows in FILES:
        add_rows(tmp_path, "t", rows)
    execution, batches = run(plan, spark, tmp_path)
    cases = {**CASES, "sets": SETS}
    first = {(name, s, 10): n for name, case in cases.items() for s, n in case.first.items()}
    second = {(name, s, 20): n for name, case in cases.items() for s, n in case.second.items()}
    assert [rows for _, rows in sorted(batches.items())] == [first, {}, second]
    progress = [batch.operators for batch in execution.new_batches()]
    views = [f"v{number}" for number in range(len(cases))]
    by_view = {
        operator.state[0].input: operator.id for operator in plan.operators if isinstance(operator, WindowAggregate)
    }
    for view, case in zip(views, cases.values(), strict=True):
        times = [operators[by_view[view]].event_time for operators in progress]
        assert [time.late_rows for time in times if time] == [0, case.late, 0], view
        moved = [time.watermark for time in times if time]
        begin = int(datetime.fromisoformat("2024-01-01T00:00:00+00:00").timestamp()) * 1000
        assert moved == [begin + 10_000, begin + 10_000, FOREVER], view
