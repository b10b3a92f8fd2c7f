"""A batch that is computed again goes by what it was answered first, whatever the table that is looked up has by then.

A table of rates in SQLite changes between the first computation of a batch and the second one. What a sink got of the
first one must be what state has, so that a later change takes back exactly what was written.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.spark.programs import add_rows, changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

SINKS = {
    "files": "'connector' = 'filesystem', 'path' = '{0}/result', 'format' = 'json', 'sink.changelog' = 'true'",
    "print": "'connector' = 'print'",
    "keyed": "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{0}/result.db', 'table-name' = 'r'",
}
CACHES = {
    "none": "",
    "partial": ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '100'",
    "full": ", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h'",
}
DEFERRED = (
    "/*+ LOOKUP('table' = 'r', 'output-mode' = 'allow_unordered', 'retry-predicate' = 'lookup_miss', "
    "'retry-strategy' = 'fixed_delay', 'fixed-delay' = '10 ms', 'max-attempts' = '2') */"
)


def totals(directory: Path, *sinks: str, cache: str = "none", hint: str = "") -> Plan:
    """How many orders there are in each currency, and the sum of the rates that they found."""
    (directory / "orders").mkdir(exist_ok=True)
    key = {"keyed": ", PRIMARY KEY (currency) NOT ENFORCED"}
    tables = "".join(
        f"CREATE TABLE {sink} (currency STRING, orders BIGINT, total DOUBLE{key.get(sink, '')}) "
        f"WITH ({SINKS[sink].format(directory)});\n"
        for sink in sinks
    )
    inserts = "".join(f"INSERT INTO {sink} SELECT * FROM totals;\n" for sink in sinks)
    return hintplan.compile_sql(
        f"""
        CREATE TABLE orders (id BIGINT, currency STRING, pt AS PROCTIME()) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/orders', 'format' = 'json',
          'source.max-files-per-trigger' = '1'
        );
        CREATE TABLE rates (code STRING, rate DOUBLE) WITH (
          'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/rates.db', 'table-name' = 'rates'{CACHES[cache]}
        );
        {tables}
        CREATE VIEW found AS SELECT {hint} o.currency, r.rate
        FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.code;
        CREATE VIEW totals AS SELECT currency, COUNT(*) AS orders, SUM(rate) AS total FROM found GROUP BY currency;
        {inserts}
        """
    )


def rate(directory: Path, code: str, value: float | None) -> None:
    """From now on the table has this rate, or none."""
    with sqlite3.connect(directory / "rates.db") as database:
        database.execute("CREATE TABLE IF NOT EXISTS rates (code TEXT, rate REAL)")
        database.execute("DELETE FROM rates WHERE code = ?", (code,))
        if value is not None:
            database.execute("INSERT INTO rates VALUES (?, ?)", (code, value))
    database.close()


def begun(directory: Path) -> None:
    """Orders of a batch, for a checkpoint without any is one of which nothing has run, and of the one that follows."""
    order(directory, 0, "USD")
    order(directory, 1, "EUR")


def order(directory: Path, number: int, currency: str) -> None:
    add_rows(directory, "orders", [{"id": number, "currency": currency}])


def run(plan: Plan, spark: SparkSession, directory: Path) -> None:
    assert execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True).await_termination(400)


def forget_last_commits(directory: Path) -> None:
    """What a run leaves that is killed when its sinks have a batch, and the commit is not written."""
    for commits in (directory / "checkpoint").glob("*/commits"):
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        for path in (commits / str(last), commits / f".{last}.crc"):
            path.unlink(missing_ok=True)


def table(directory: Path) -> list[tuple[str, int, float | None]]:
    with sqlite3.connect(directory / "result.db") as database:
        return database.execute("SELECT currency, orders, total FROM r ORDER BY currency").fetchall()


def written(directory: Path) -> list[tuple[str, str, int, float | None]]:
    rows = [(row["op"], row["currency"], row["orders"], row.get("total")) for row in changes(directory)]
    return sorted((row for row in rows if row[1] == "EUR"), key=lambda row: (row[2], row[0]))


@pytest.mark.parametrize("cache", CACHES)
def test_files_that_were_written_are_taken_back_as_they_are(spark: SparkSession, tmp_path: Path, cache: str) -> None:
    rate(tmp_path, "EUR", 1.0)
    begun(tmp_path)
    plan = totals(tmp_path, "files", cache=cache)
    run(plan, spark, tmp_path)
    forget_last_commits(tmp_path)
    rate(tmp_path, "EUR", 100.0)
    order(tmp_path, 2, "EUR")
    run(plan, spark, tmp_path)
    assert written(tmp_path) == [("+I", "EUR", 1, 1.0), ("-U", "EUR", 1, 1.0), ("+U", "EUR", 2, 101.0)]


def test_a_deferred_lookup_that_found_nothing_finds_nothing_again(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", None)
    order(tmp_path, 0, "USD")
    plan = totals(tmp_path, "files", hint=DEFERRED)
    run(plan, spark, tmp_path)
    order(tmp_path, 1, "EUR")
    run(plan, spark, tmp_path)
    forget_last_commits(tmp_path)
    rate(tmp_path, "EUR", 100.0)
    run(plan, spark, tmp_path)  # one batch, the one that was begun: where rows may wait, such a run has no more
    order(tmp_path, 2, "EUR")
    run(plan, spark, tmp_path)
    assert written(tmp_path) == [("+I", "EUR", 1, None), ("-U", "EUR", 1, None), ("+U", "EUR", 2, 100.0)]


def test_sinks_of_one_query_agree(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rate(tmp_path, "EUR", 1.0)
    begun(tmp_path)
    plan = totals(tmp_path, "print", "keyed")
    run(plan, spark, tmp_path)
    assert table(tmp_path) == [("EUR", 1, 1.0), ("USD", 1, None)]
    forget_last_commits(tmp_path)
    rate(tmp_path, "EUR", 100.0)
    order(tmp_path, 2, "EUR")
    run(plan, spark, tmp_path)
    assert table(tmp_path) == [("EUR", 2, 101.0), ("USD", 1, None)]
    lines = [line for line in capfd.readouterr().out.splitlines() if "EUR" in line]
    assert lines == ["+I[EUR, 1, 1.0]", "+I[EUR, 1, 1.0]", "-U[EUR, 1, 1.0]", "+U[EUR, 2, 101.0]"]


def test_a_row_that_was_written_without_state_above_is_printed_again_as_it_was(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rate(tmp_path, "EUR", 1.0)
    begun(tmp_path)
    plan = _rates_alone(tmp_path)
    run(plan, spark, tmp_path)
    forget_last_commits(tmp_path)
    rate(tmp_path, "EUR", 100.0)
    run(plan, spark, tmp_path)
    assert [line for line in capfd.readouterr().out.splitlines() if "EUR" in line] == ["+I[EUR, 1.0]"] * 2


def _rates_alone(directory: Path) -> Plan:
    return hintplan.compile_sql(
        f"""
        CREATE TABLE orders (id BIGINT, currency STRING, pt AS PROCTIME()) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/orders', 'format' = 'json'
        );
        CREATE TABLE rates (code STRING, rate DOUBLE) WITH (
          'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/rates.db', 'table-name' = 'rates'
        );
        CREATE TABLE result (currency STRING, rate DOUBLE) WITH ('connector' = 'print');
        INSERT INTO result SELECT o.currency, r.rate
        FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.code
        """
    )


FAILING = '''
import sqlite3
from pathlib import Path

from hintplan.runtime.functions import ScalarFunction

HERE = Path(__file__).parent


class Once(ScalarFunction):
    """Fails when it is first called, and by then the rates are others."""

    arguments = ("STRING",)
    result = "STRING"

    def eval(self, text):
        if not (HERE / "failed").exists():
            (HERE / "failed").touch()
            with sqlite3.connect(HERE / "rates.db") as database:
                database.execute("UPDATE rates SET rate = 100.0")
            raise ConnectionError("the first task fails")
        return text
'''


def test_a_task_that_fails_when_it_has_asked_does_not_ask_again(tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.0)
    order(tmp_path, 1, "EUR")
    (tmp_path / "failing.py").write_text(FAILING)
    sql = f"""
        CREATE TABLE orders (id BIGINT, currency STRING, pt AS PROCTIME()) WITH (
          'connector' = 'filesystem', 'path' = '{tmp_path}/orders', 'format' = 'json'
        );
        CREATE TABLE rates (code STRING, rate DOUBLE) WITH (
          'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/rates.db', 'table-name' = 'rates'
        );
        CREATE TABLE keyed (currency STRING, total DOUBLE, PRIMARY KEY (currency) NOT ENFORCED) WITH (
          {SINKS["keyed"].format(tmp_path)}
        );
        CREATE FUNCTION once AS 'failing.Once' LANGUAGE PYTHON;
        CREATE VIEW found AS SELECT o.currency, r.rate
        FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.code;
        INSERT INTO keyed SELECT currency, SUM(rate) FROM (SELECT once(currency) AS currency, rate FROM found)
        GROUP BY currency
    """
    (tmp_path / "job.sql").write_text(sql)
    program = (
        "import sys; from pathlib import Path; import hintplan;"
        "from hintplan.plans.connectors.policy import Policy; from hintplan.runtime.run.execute import execute;"
        "from hintplan.runtime.spark.session import start_session; here = Path(sys.argv[1]);"
        "policy = Policy(modules=('failing',));"
        "plan = hintplan.compile_sql((here / 'job.sql').read_text(), allow_modules=('failing',));"
        "spark = start_session('local[2, 3]', {'spark.sql.shuffle.partitions': '2'});"
        "run = execute(plan, spark, checkpoint=str(here / 'checkpoint'), once=True, policy=policy);"
        "assert run.await_termination(400)"
    )
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "failed").exists()
    with sqlite3.connect(tmp_path / "result.db") as database:
        assert database.execute("SELECT * FROM r").fetchall() == [("EUR", 1.0)]
