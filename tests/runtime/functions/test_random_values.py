"""RAND, RAND_INTEGER and UUID: Flink's sequences for a seed, a value for each row, one for all readers.

A batch that runs again has the same values.
"""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan import compile_sql
from hintplan.planner.compile import compile_script
from hintplan.planner.user_functions import read_declaration
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.built_in import DRAWN, FUNCTIONS_BUILT_IN
from hintplan.plans.declarations.classes import FUNCTIONS, LOOKUPS, is_allowed
from hintplan.plans.declarations.tables import Function
from hintplan.plans.errors import RunError, SqlError
from hintplan.plans.operators import Correlate
from hintplan.runtime.functions import random as drawn
from hintplan.runtime.functions.api import FunctionContext
from hintplan.runtime.run.execute import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLINK: dict[str, Any] = json.loads((Path(__file__).parents[2] / "flink" / "random.json").read_text(encoding="utf-8"))
NUMBERS = FLINK["i"]
OPENED = FunctionContext(function="f", operator="o")
DEADLINE_SECONDS = 180


def opened(function: Any) -> Any:
    function.open(OPENED)
    return function


@pytest.mark.parametrize(
    ("call", "function", "arguments"),
    [
        ("RAND(1)", drawn.RandSeeded(), [(1,) for _ in NUMBERS]),
        ("RAND(2)", drawn.RandSeeded(), [(2,) for _ in NUMBERS]),
        ("RAND(i)", drawn.RandOfSeed(), [(i,) for i in NUMBERS]),
        ("RAND_INTEGER(1, 10)", drawn.RandIntegerSeeded(), [(1, 10) for _ in NUMBERS]),
        ("RAND_INTEGER(5, 16)", drawn.RandIntegerSeeded(), [(5, 16) for _ in NUMBERS]),
        ("RAND_INTEGER(3, i)", drawn.RandIntegerSeeded(), [(3, i) for i in NUMBERS]),
        ("RAND_INTEGER(i, 100)", drawn.RandIntegerOfSeed(), [(i, 100) for i in NUMBERS]),
    ],
)
def test_a_seed_gives_what_flink_recorded(call: str, function: Any, arguments: list[tuple[int, ...]]) -> None:
    assert [opened(function).eval(*each) if i == 0 else function.eval(*each) for i, each in enumerate(arguments)] == (
        FLINK[call]
    )


def test_values_are_in_their_range() -> None:
    assert all(0 <= drawn.Rand().eval() < 1 for _ in range(1000))
    assert {drawn.RandInteger().eval(3) for _ in range(1000)} == {0, 1, 2}
    assert drawn.RandInteger().eval(None) is drawn.RandOfSeed().eval(None) is None
    assert drawn.RandIntegerOfSeed().eval(1, None) is opened(drawn.RandSeeded()).eval(None) is None
    found = {drawn.Uuid().eval() for _ in range(1000)}
    assert len(found) == 1000
    assert all(len(each) == 36 and uuid.UUID(each).version == 4 and each == each.lower() for each in found)


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_that_leaves_no_value_fails(bound: int) -> None:
    with pytest.raises(RunError, match="RAND_INTEGER takes a bound above 0"):
        drawn.RandInteger().eval(bound)


TABLES = """
CREATE TABLE t (id BIGINT, i INT, r AS RAND())
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/t', 'source.max-files-per-trigger' = '1');
CREATE TABLE a (x STRING, id BIGINT, v DOUBLE, w DOUBLE, PRIMARY KEY (x) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/r.db', 'table-name' = 'a');
CREATE TABLE b (x STRING, id BIGINT, r DOUBLE, PRIMARY KEY (x) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/r.db', 'table-name' = 'b');
CREATE TABLE c (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/r.db', 'table-name' = 'c');
CREATE VIEW named AS SELECT UUID() AS x, id, r, r AS again FROM t;
"""
ROWS = 40


def calls(query: str, batch: bool = False) -> list[str]:
    """The functions that the operators of a plan call, in their order."""
    mode = "SET 'execution.runtime-mode' = 'batch';" if batch else ""
    plan = compile_sql(f"{mode}{TABLES.format(directory='x')}INSERT INTO {query};")
    return [operator.function for operator in plan.operators if isinstance(operator, Correlate)]


@pytest.mark.parametrize(
    ("query", "functions"),
    [
        ("a SELECT UUID(), id, RAND(), RAND() FROM t", ["UUID", "RAND"]),
        ("a SELECT UUID(), id, v, RAND() FROM (SELECT id, RAND() AS v FROM t)", ["UUID", "RAND", "RAND"]),
        ("a SELECT x, id, r, again FROM named", ["RAND", "UUID"]),
        ("a SELECT x, id, r + r, NULLIF(r, 0.5) FROM named WHERE r BETWEEN 0.1 AND 0.9", ["RAND", "UUID"]),
        ("a SELECT n.x, n.id, n.r, m.r FROM named AS n JOIN named AS m ON n.id = m.id", ["RAND", "UUID"]),
        ("a SELECT UUID(), id, NULLIF(RAND(), 0.5), 1.0E0 FROM t", ["UUID", "RAND"]),
        ("c SELECT RAND_INTEGER(3), COUNT(*) FROM t GROUP BY RAND_INTEGER(3)", ["RAND_INTEGER"]),
        ("c SELECT i, COUNT(*) FROM t WHERE RAND() < 0.5 GROUP BY i", ["RAND"]),
        ("a SELECT UUID(), id, RAND(-7), RAND(i) FROM t", ["UUID", "RAND_SEEDED", "RAND_OF_SEED"]),
    ],
)
def test_a_value_that_is_read_twice_is_drawn_once(query: str, functions: list[str]) -> None:
    assert sorted(calls(query)) == sorted(functions)
    assert sorted(calls(query, batch=True)) == sorted(functions)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("a SELECT UUID(), MAX(id), 1.0E0, 1.0E0 FROM t", "UUID over a query whose rows can change"),
        ("b SELECT CAST(k AS STRING), n, RAND(1) FROM (SELECT i AS k, COUNT(*) AS n FROM t GROUP BY i)", "RAND over a"),
        ("c SELECT RAND_INTEGER(0), id FROM t", "RAND_INTEGER takes a bound above 0, found 0"),
        ("c SELECT RAND_INTEGER(id), id FROM t", "argument 1 of RAND_INTEGER must be INT, found BIGINT"),
        ("b SELECT 'x', id, RAND(1, 2) FROM t", "RAND takes 0 to 1 arguments, found 2"),
        ("b SELECT UUID(1), id, 1.0E0 FROM t", "UUID takes no arguments, found 1"),
        (
            "b SELECT 'x', o.id, 1.0E0 FROM t AS o FULL JOIN t AS p ON o.id = p.id AND RAND() < 0.5",
            "RAND, which each row",
        ),
    ],
)
def test_what_is_refused_is_named(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        calls(query)
    assert message in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("query", "functions"),
    [
        ("b SELECT UUID(), 1, 0.5E0 UNION ALL SELECT UUID(), 2, 0.5E0", ["UUID", "UUID_2"]),
        ("b VALUES (UUID(), 1, 0.5E0), (UUID(), 2, RAND())", ["RAND", "UUID", "UUID_2"]),
        ("b VALUES (UPPER(UUID()), 1, RAND(3))", ["RAND_SEEDED", "UUID"]),
        ("b SELECT UUID(), id, r FROM t UNION ALL SELECT UUID(), id, r FROM t", ["RAND", "UUID", "UUID_2"]),
        ("b SELECT x, id, r FROM named UNION ALL SELECT x, id, r FROM named", ["RAND", "UUID"]),
        ("b SELECT 'x', i, RAND(1) FROM t UNION ALL SELECT 'y', i, RAND(1) FROM t", ["RAND_SEEDED", "RAND_SEEDED_2"]),
    ],
)
def test_calls_in_branches_are_apart_and_readers_of_a_view_are_not(query: str, functions: list[str]) -> None:
    assert sorted(calls(query)) == functions
    assert sorted(calls(query, batch=True)) == functions


def repeated(script: str) -> list[str]:
    said = (found.diagnostic.message for found in compile_script(script).findings)
    return [message.partition(" at ")[0] for message in said if "is read again" in message]


def test_readers_of_a_view_that_draw_for_themselves_are_warned_of() -> None:
    script = TABLES.format(directory="x") + BOTH.replace("SELECT x, id, r FROM named", "SELECT x, id, 1.0E0 FROM named")
    for mode in ("", "SET 'execution.runtime-mode' = 'batch';"):
        assert repeated(mode + script) == ["'named' is read again here, and each reader draws UUID"]
        assert repeated(mode + TABLES.format(directory="x") + BOTH) == []


def test_a_seed_of_the_row_may_stand_over_rows_that_change() -> None:
    query = "b SELECT CAST(k AS STRING), n, RAND(k) FROM (SELECT i AS k, COUNT(*) AS n FROM t GROUP BY i)"
    assert calls(query) == ["RAND_OF_SEED"]


def test_a_hand_edit_cannot_put_a_random_value_above_rows_that_change() -> None:
    query = "b SELECT CAST(k AS STRING), n, RAND(k) FROM (SELECT i AS k, COUNT(*) AS n FROM t GROUP BY i)"
    plan = compile_sql(f"{TABLES.format(directory='x')}INSERT INTO {query};")
    assert plan_problems(plan) == ()
    edited = replace(plan, functions={"RAND_OF_SEED": FUNCTIONS_BUILT_IN["RAND_SEEDED"]})
    (problem,) = plan_problems(edited)
    assert "is called for rows that can change" in problem.message


def test_a_function_of_the_users_hides_a_built_in_one() -> None:
    class Rand(drawn.RandOfSeed):
        pass

    Rand.__module__, Rand.__qualname__ = drawn.__name__, "RandOfSeed"
    script = TABLES.format(directory="x").replace(", r AS RAND()", "").partition("CREATE VIEW")[0]
    plan = compile_sql(f"{script}INSERT INTO b SELECT 'x', id, RAND(i) FROM t;", functions={"rand": Rand})
    assert list(plan.functions) == ["rand"]


def test_hintplans_own_classes_need_no_leave_and_no_others_of_its_modules_are_loaded() -> None:
    own = {function.class_name for function in FUNCTIONS_BUILT_IN.values()}
    assert all(is_allowed(name, (), group=FUNCTIONS) and not is_allowed(name, (), group=LOOKUPS) for name in own)
    assert not is_allowed("hintplan.runtime.functions.random.JavaRandom", (), group=FUNCTIONS)


@pytest.mark.parametrize(("name", "function"), FUNCTIONS_BUILT_IN.items())
def test_a_class_is_what_plans_declare_of_it(name: str, function: Function) -> None:
    found: Any = getattr(drawn, function.class_name.rpartition(".")[2])
    assert read_declaration(found, function.class_name) == function
    assert found.deterministic == (name not in DRAWN)


def stored(directory: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(directory / "r.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def run(spark: SparkSession, directory: Path, script: str, **how: Any) -> None:
    execution = execute(compile_sql(TABLES.format(directory=directory) + script), spark, **how)
    try:
        assert execution.await_termination(DEADLINE_SECONDS), "it does not end"
    finally:
        execution.stop()


def rows(directory: Path) -> None:
    (directory / "t").mkdir()
    for part in range(2):
        lines = (json.dumps({"id": i, "i": i % 3}) for i in range(part, ROWS, 2))
        (directory / "t" / f"{part}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


BOTH = """
INSERT INTO a SELECT n.x, n.id, n.r, m.r FROM named AS n JOIN named AS m ON n.id = m.id AND n.x = m.x;
INSERT INTO b SELECT x, id, r FROM named;
INSERT INTO c SELECT k, COUNT(*) FROM (SELECT RAND_INTEGER(3) AS k FROM t) GROUP BY k;
"""


def check(directory: Path) -> None:
    """All readers of a value have the same one, and each row its own."""
    first = stored(directory, "SELECT x, id, v, w FROM a")
    assert sorted(row[1] for row in first) == list(range(ROWS))
    assert len({row[0] for row in first}) == ROWS
    assert all(re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", row[0]) for row in first)
    assert len({row[2] for row in first}) == ROWS
    assert all(row[2] == row[3] for row in first)
    assert sorted(stored(directory, "SELECT x, id, r FROM b")) == sorted(row[:3] for row in first)
    groups = stored(directory, "SELECT k, n FROM c")
    assert sum(n for _, n in groups) == ROWS
    assert {k for k, _ in groups} <= {0, 1, 2}


@pytest.mark.spark
def test_a_batch_job_draws_a_value_once_for_all_its_readers(spark: SparkSession, tmp_path: Path) -> None:
    rows(tmp_path)
    run(spark, tmp_path, "SET 'execution.runtime-mode' = 'batch';" + BOTH)
    check(tmp_path)


@pytest.mark.spark
def test_a_batch_that_runs_again_has_the_same_values(spark: SparkSession, tmp_path: Path) -> None:
    rows(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    run(spark, tmp_path, BOTH, checkpoint=str(checkpoint), once=True)
    check(tmp_path)
    before = [stored(tmp_path, f"SELECT * FROM {table}") for table in ("a", "b", "c")]
    commits = [max(each.iterdir(), key=lambda file: int(file.name) if file.name.isdigit() else -1)
               for each in checkpoint.glob("*/commits")]  # fmt: skip
    assert commits
    for file in commits:
        file.unlink()
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    run(spark, tmp_path, BOTH, checkpoint=str(checkpoint), once=True)
    check(tmp_path)
    assert [stored(tmp_path, f"SELECT * FROM {table}") for table in ("a", "b", "c")] == before


@pytest.mark.spark
def test_rows_of_values_and_branches_have_values_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    rows(tmp_path)
    batch = "SET 'execution.runtime-mode' = 'batch';"
    run(spark, tmp_path, f"{batch}INSERT INTO b VALUES (UUID(), -1, RAND()), (UUID(), -2, 2.5E0);")
    script = "INSERT INTO b SELECT UUID(), id, r FROM t UNION ALL SELECT UUID(), id, r FROM t;"
    run(spark, tmp_path, script, checkpoint=str(tmp_path / "checkpoint"), once=True)
    found = stored(tmp_path, "SELECT x, id, r FROM b")
    assert len({x for x, _, _ in found}) == len(found) == 2 + 2 * ROWS
    assert {(i, r) for _, i, r in found if i == -2} == {(-2, 2.5)}
    assert all(0 <= r < 1 for _, i, r in found if i != -2)
