"""One run of the compiler reports all errors of a script, and nothing that only follows from one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hintplan.planner.cli import compile_command
from hintplan.planner.compile import compile_sql
from hintplan.planner.describe import completion_names
from hintplan.planner.execute_statement import execute_statement
from hintplan.planner.session import CompileSession
from hintplan.planner.syntax.problems import MOST
from hintplan.plans.errors import SqlError

GOOD = """
CREATE TABLE orders (id BIGINT, customer STRING, total DOUBLE, at TIMESTAMP(3))
  WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE sink (id BIGINT, customer STRING) WITH ('connector' = 'print');
"""
"""The lines 1 to 4 of each script."""


def errors(script: str, **more: str) -> list[str]:
    """The place and the message of each error of a script, in the order in which they are reported."""
    with pytest.raises(SqlError) as caught:
        compile_sql(GOOD + script, **more)
    assert all(found.hint for found in caught.value.diagnostics)
    return [f"{found.line}:{found.column} {found.message}" for found in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        # All references of a query, wherever they stand.
        (
            "INSERT INTO sink SELECT idd, CUONT(a) FROM orders WHERE totl > 3 AND FOO(1) = 1;",
            [
                "5:25 unknown column 'idd' in 'orders'",
                "5:30 function CUONT is not supported",
                "5:36 unknown column 'a' in 'orders'",
                "5:57 unknown column 'totl' in 'orders'",
                "5:70 function FOO is not supported",
            ],
        ),
        (
            "INSERT INTO sink SELECT MAX(idd), customr FROM orders GROUP BY custmer HAVING SUM(x) > 1;",
            [
                "5:29 unknown column 'idd' in 'orders'",
                "5:35 unknown column 'customr' in 'orders'",
                "5:64 unknown column 'custmer' in 'orders'",
                "5:83 unknown column 'x' in 'orders'",
            ],
        ),
        (
            "INSERT INTO sink SELECT o.idd, b.c, x.y FROM orders AS o JOIN nope AS b ON o.i = b.j JOIN nah ON TRUE;",
            [
                "5:25 unknown column 'idd' in 'o'",
                "5:63 unknown table 'nope'",
                "5:76 unknown column 'i' in 'o'",
                "5:91 unknown table 'nah'",
            ],
        ),
        (
            "INSERT INTO sink SELECT a, 'x' FROM orders UNION ALL SELECT id, b FROM orders;",
            ["5:25 unknown column 'a' in 'orders'", "5:65 unknown column 'b' in 'orders'"],
        ),
        (
            "INSERT INTO sink SELECT (SELECT MAX(a) FROM orders), b FROM orders WHERE id IN (SELECT c FROM orders);",
            [
                "5:37 unknown column 'a' in 'orders'",
                "5:54 unknown column 'b' in 'orders'",
                "5:88 unknown column 'c' in 'orders'",
            ],
        ),
        (
            "INSERT INTO sink SELECT x, 'a' FROM (SELECT idd AS x, id AS y FROM orders) AS t WHERE z = 1 AND t.w = 2;",
            ["5:45 unknown column 'idd' in 'orders'"],
        ),
        # All columns that do not fit their sink.
        (
            "INSERT INTO sink SELECT customer, id FROM orders;",
            [
                "5:25 column 'id' of sink 'sink' is BIGINT, but 'customer' is STRING",
                "5:35 column 'customer' of sink 'sink' is STRING, but 'id' is BIGINT",
            ],
        ),
        ("INSERT INTO sinc SELECT a, b FROM orders;",
         ["5:13 unknown sink table 'sinc'", "5:25 unknown column 'a' in 'orders'",
          "5:28 unknown column 'b' in 'orders'"]),
        # All columns and options of a declaration.
        (
            "CREATE TABLE t (a STRNG, b INT, c NUMBER, d AS e + f, PRIMARY KEY (g) NOT ENFORCED)\n"
            "WITH ('connector' = 'print', 'x' = '1', 'y' = '2');\nINSERT INTO t SELECT q FROM orders;",
            [
                "5:19 type STRNG is not supported",
                "5:35 type NUMBER is not supported",
                "6:30 table 't': the print connector has no option 'x'",
                "6:41 table 't': the print connector has no option 'y'",
                "7:22 unknown column 'q' in 'orders'",
            ],
        ),
        (
            "CREATE TABLE t (a INT, d AS e + f, PRIMARY KEY (g) NOT ENFORCED, WATERMARK FOR w AS w)\n"
            "WITH ('connector' = 'print');",
            [
                "5:29 unknown column 'e' in 't'",
                "5:33 unknown column 'f' in 't'",
                "5:36 primary key column 'g' of table 't' does not exist",
                "5:66 WATERMARK FOR unknown column 'w'",
            ],
        ),
        (
            "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'jsn', 'jsn.x' = '1',\n"
            "'scan.startup.mode' = 'earliest', 'properties.linger.ms' = 'x');\nINSERT INTO sink SELECT a, b FROM t;",
            [
                "5:14 table 't': the kafka connector needs the option 'properties.bootstrap.servers'",
                "5:68 table 't': 'format' is 'jsn', expected one of",
                "6:1 table 't': 'scan.startup.mode' is 'earliest', expected one of",
                "6:35 table 't': 'properties.linger.ms' is 'x', expected a whole number of at least 0",
                "7:28 unknown column 'b' in 't'",
            ],
        ),
        # All statements, also behind one that cannot be read.
        (
            "SET 'pipline.name' = 'x';\nCREATE TABEL t (a INT);\nSELEC 1;\nINSERT INTO sink SELECT id FROM FROM;\n"
            "CREATE VIEW v AS SELECT 'a\n;",
            [
                "5:5 unknown configuration key 'pipline.name'",
                "6:8 expected TABLE, VIEW or FUNCTION, found 'TABEL'",
                "7:1 SELEC is not a supported statement",
                "8:33 syntax error at 'FROM;': expected table name",
                "9:25 this string is never closed",
            ],
        ),
        # Nothing that follows from what failed.
        (
            "CREATE VIEW v AS SELECT a FROM orders;\nCREATE VIEW w AS SELECT b FROM v;\n"
            "INSERT INTO sink SELECT c, d FROM w;",
            ["5:25 unknown column 'a' in 'orders'"],
        ),
        (
            "ALTER TABLE orders ADD (x STRNG);\nINSERT INTO sink SELECT x, y FROM orders;",
            ["5:27 type STRNG is not supported"],
        ),
        (
            "CREATE FUNCTION f AS 'com.shop.F';\n"
            "INSERT INTO sink SELECT id, f(customer) FROM orders, LATERAL TABLE(f(id)) AS T(x);",
            ["5:34 a function without LANGUAGE is one in JAVA"],
        ),
        (
            "CREATE TABLE t (a INT) WITH ('connector' = 'kafkaa');\nINSERT INTO sink SELECT a, x FROM t;\n"
            "INSERT INTO t SELECT y FROM nope;\nCREATE TABLE u WITH ('x' = '1') LIKE t;\nINSERT INTO u SELECT 1;",
            [
                "5:30 table 't': there is no connector 'kafkaa'",
                "6:28 unknown column 'x' in 't'",
                "7:29 unknown table 'nope'",
            ],
        ),
        (
            "SET 'execution.runtime-mode' = 'bach';\n"
            "INSERT INTO sink SELECT id, LAG(customer) OVER (ORDER BY at) FROM orders;",
            ["5:32 'execution.runtime-mode': execution mode 'bach' is not supported; write 'streaming' or 'batch'"],
        ),
        (
            "EXECUTE STATMENT SET BEGIN\nINSERT INTO sink SELECT id, customer FROM orders;\nEND;",
            ["5:9 expected INSERT INTO, SELECT or STATEMENT SET, found 'STATMENT'"],
        ),
        (
            "INSERT INTO sink SELECT customer, total FROM orders GROUP BY customer, x;",
            ["5:72 unknown column 'x' in 'orders'"],
        ),
    ],
)  # fmt: skip
def test_all_errors_are_found(script: str, found: list[str]) -> None:
    reported = errors(script)
    assert len(reported) == len(found), reported
    for one, start in zip(reported, found, strict=True):
        assert one.startswith(start)


def test_an_error_of_an_init_file_hides_none_of_the_script() -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(
            "INSERT INTO s SELECT b FROM t;",
            init={
                "tables.sql": "CREATE TABLE t (a INT) WITH ('connector' = 'prnt');\nCREATE TABLE s (a INT)\nWITH (1);"
            },
            file="job.sql",
        )
    places = [f"{found.file}:{found.line}:{found.column}" for found in caught.value.diagnostics]
    assert places == ["tables.sql:1:30", "tables.sql:3:7", "job.sql:1:22"]


def test_hints_that_are_not_heeded_are_among_the_errors() -> None:
    script = "INSERT INTO sink SELECT /*+ STATE_TTL('x' = '1 d') */ id, customer FROM orders;\n"
    script += "INSERT INTO sink SELECT a FROM orders;"
    with pytest.raises(SqlError) as caught:
        compile_sql(GOOD + script, strict_hints=True)
    assert [found.line for found in caught.value.diagnostics] == [5, 6]


def test_the_same_error_is_reported_once() -> None:
    views = "CREATE VIEW v AS WITH c AS (SELECT x FROM orders) SELECT * FROM c UNION ALL SELECT * FROM c;"
    assert errors(views) == ["5:36 unknown column 'x' in 'orders'"]


@pytest.mark.parametrize(
    "script",
    [
        "SELEC 1;" * 3 * MOST,
        "".join(f"CREATE VIEW v{i} AS SELECT x{i} FROM orders;" for i in range(3 * MOST)),
        "CREATE TABLE t (a INT) WITH ('connector' = 'print'" + "".join(f", 'x{i}' = '1'" for i in range(300)) + ");",
        f"INSERT INTO sink SELECT id, CONCAT({', '.join(f'x{i}' for i in range(3 * MOST))}) FROM orders;",
    ],
)
def test_compiling_ends_after_so_many_errors(script: str) -> None:
    assert len(errors(script)) == MOST + 1


def test_an_error_in_a_session_leaves_nothing_behind() -> None:
    session = CompileSession.open()
    wrong = "CREATE TABLE t (a STRNG, b NUMBER) WITH ('connector' = 'print');"
    with pytest.raises(SqlError) as caught:
        execute_statement(session, next(session.feed(wrong)))
    assert len(caught.value.diagnostics) == 2
    right = "CREATE TABLE t (a STRING) WITH ('connector' = 'print');"
    execute_statement(session, next(session.feed(right)))
    with pytest.raises(SqlError, match="unknown table 'u'") as caught:
        execute_statement(session, next(session.feed("SELECT * FROM u;")))
    assert len(caught.value.diagnostics) == 1


def test_what_completion_finds_wrong_is_no_error_of_the_next_statement() -> None:
    session = CompileSession.open()
    for statement in (GOOD, "CREATE VIEW v AS SELECT id FROM orders;", "DROP TABLE orders;"):
        for unit in session.feed(statement):
            execute_statement(session, unit)
    columns, _ = completion_names(session)
    assert columns["v"] == ()
    execute_statement(session, next(session.feed("CREATE TABLE t (a STRING) WITH ('connector' = 'print');")))


def test_the_command_shows_each_with_its_line_and_counts_them(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text(GOOD.lstrip() + "INSERT INTO sink SELECT a, b FROM orders;\n", encoding="utf-8")
    done = CliRunner().invoke(compile_command, [str(script)])
    assert done.exit_code == 1
    assert done.output.count("^") == 2
    assert done.output.rstrip().endswith("2 errors")
    script.write_text(GOOD.lstrip() + "INSERT INTO sink SELECT id, b FROM orders;\n", encoding="utf-8")
    assert "errors" not in CliRunner().invoke(compile_command, [str(script)]).output
    script.write_text("SELEC 1;\n" * 3 * MOST, encoding="utf-8")
    done = CliRunner().invoke(compile_command, [str(script)])
    assert done.output.count("^") == 50
    assert done.output.rstrip().endswith(f"... and {MOST + 1 - 50} more\n{MOST + 1} errors")
