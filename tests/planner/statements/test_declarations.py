"""CREATE TABLE, CREATE VIEW, SET and statement sets: what is read, and what is refused where."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.tables import Table, TableColumn, Watermark
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc

SINK = "CREATE TABLE s (x STRING) WITH ('connector' = 'print');"
OPTIONS = "WITH ('connector' = 'filesystem', 'path' = 'data', 'format' = 'json')"


def compiled(declarations: str, query: str = "INSERT INTO s SELECT 'x' FROM t") -> Plan:
    return compile_sql(f"{SINK}\n{declarations};\n{query};", file="job.sql")


def refusal(declarations: str, query: str = "INSERT INTO s SELECT 'x' FROM t") -> tuple[str, str]:
    """The place (line 2 is the declaration's) and the message; there must be advice, too."""
    with pytest.raises(SqlError) as caught:
        compiled(declarations, query)
    (found,) = caught.value.diagnostics
    assert found.hint
    return f"{found.line}:{found.column}", found.message


def test_everything_a_table_can_declare_stands_in_the_plan() -> None:
    plan = compiled("""CREATE TEMPORARY TABLE IF NOT EXISTS t (
      `the id` BIGINT NOT NULL COMMENT 'an id', -- a comment
      price NUMERIC(10,2), tags ARRAY<ARRAY<STRING>>, pos ROW<lat DOUBLE, lon DOUBLE NOT NULL>,
      ts TIMESTAMP(3) /* another */, ltz TIMESTAMP(3) WITH LOCAL TIME ZONE, name VARCHAR,
      pt AS PROCTIME(), doubled AS price * 2 COMMENT 'twice',
      WATERMARK FOR ts AS ts - INTERVAL   '5' SECOND,
      CONSTRAINT pk PRIMARY KEY (`the id`) NOT ENFORCED
    ) COMMENT 'all of it' WITH ('format' = 'json', 'path' = 'it''s', 'connector' = 'filesystem')""")
    assert plan.tables["t"] == Table(
        columns=(
            TableColumn(name="the id", type="BIGINT NOT NULL", comment="an id"),
            TableColumn(name="price", type="DECIMAL(10, 2)"),
            TableColumn(name="tags", type="ARRAY<ARRAY<STRING>>"),
            TableColumn(name="pos", type="ROW<lat DOUBLE, lon DOUBLE NOT NULL>"),
            TableColumn(name="ts", type="TIMESTAMP(3)"),
            TableColumn(name="ltz", type="TIMESTAMP_LTZ(3)"),
            TableColumn(name="name", type="STRING"),
            TableColumn(name="pt", type="TIMESTAMP_LTZ(3)", expression="PROCTIME()"),
            # DECIMAL(10, 2) * INT, an integer being DECIMAL(10, 0)
            TableColumn(name="doubled", type="DECIMAL(21, 2)", expression="price * 2", comment="twice"),
        ),
        primary_key=("the id",),
        watermark=Watermark(column="ts", expression="ts - INTERVAL '5' SECOND"),
        comment="all of it",
        options={"connector": "filesystem", "format": "json", "path": "it's"},
    )
    assert list(plan.tables["t"].options) == ["connector", "format", "path"]
    assert plan_problems(plan) == ()


def test_key_of_a_column_is_the_key_of_the_table() -> None:
    plan = compiled(f"CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b INT) {OPTIONS}")
    assert plan.tables["t"].primary_key == ("a",)


def test_computed_columns_are_computed_above_the_scan() -> None:
    plan = compiled(
        f"CREATE TABLE t (b AS UPPER(a), a STRING, c AS PROCTIME()) {OPTIONS}", "INSERT INTO s SELECT b FROM t"
    )
    (calc,) = [o for o in plan.operators if isinstance(o, Calc)]
    assert [(i.name, i.expression) for i in calc.select] == [("x", "upper(a)")]


def test_only_tables_that_are_used_stand_in_the_plan() -> None:
    plan = compiled(f"CREATE TABLE t (a INT) {OPTIONS}; CREATE TABLE u (a INT) {OPTIONS}")
    assert sorted(plan.tables) == ["s", "t"]


@pytest.mark.parametrize(
    ("declaration", "place", "message"),
    [
        ("CREATE TABLE t (a INT, a INT)", "2:24", "column 'a' is declared twice"),
        ("CREATE TABLE t (a INT, A INT)", "2:24",
         "column 'A' is declared next to 'a', which differs only in case"),
        ("CREATE TABLE t (a INT METADATA)", "2:14", "table 't' has no physical column"),
        ("CREATE TABLE t (b INT, a INT METADATA FROM x)", "2:44", "expected a metadata key, found 'x'"),
        ("CREATE TABLE t (b INT, a INT METADATA PRIMARY KEY NOT ENFORCED)", "2:39",
         "expected ',' or ')', found 'PRIMARY'"),
        ("CREATE TABLE t (b INT, a INT METADATA, PRIMARY KEY (a) NOT ENFORCED)", "2:40",
         "primary key column 'a' of table 't' is a METADATA column"),
        ("CREATE TABLE t (a INT, __b INT)", "2:24", "column names that start with '__' are reserved: '__b'"),
        ("CREATE TABLE t (a INTT)", "2:19", "type INTT is not supported"),
        ("CREATE TABLE t (a TIMESTAMP(9))", "2:19",
         "TIMESTAMP is supported with a precision of 0 to 6 (microseconds), in 'TIMESTAMP(9)'"),
        ("CREATE TABLE t (a INT b INT)", "2:19", "unexpected 'b' in type 'INT b INT'"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "2:39", "expected NOT ENFORCED, found ')'"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", "2:24",
         "primary key column 'b' of table 't' does not exist"),
        ("CREATE TABLE t (a INT, b AS a, PRIMARY KEY (b) NOT ENFORCED)", "2:32",
         "primary key column 'b' of table 't' is computed"),
        ("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED)", "2:49",
         "a table has at most one primary key"),
        ("CREATE TABLE t (a INT, WATERMARK FOR a AS a)", "2:24", "WATERMARK needs a TIMESTAMP column, 'a' is INT"),
        ("CREATE TABLE t (a INT, WATERMARK FOR b AS b)", "2:24", "WATERMARK FOR unknown column 'b'"),
        ("CREATE TABLE t (a INT, b AS c + 1)", "2:29", "unknown column 'c' in 't'"),
        ("CREATE TABLE t (b AS 1)", "2:14", "table 't' has no physical column"),
        ("CREATE TABLE t (a INT", "2:16", "'(' is never closed"),
        ("CREATE TABLE t LIKE s AS SELECT 1", "2:21", "CREATE TABLE takes LIKE or AS, not both"),
        ("CREATE TABLE t", "2:15", "expected '(', found the end of the statement"),
        ("CREATE TABLE other.t (a INT)", "2:14", "'other.t' lies in another catalog or database"),
        (f"CREATE TABLE t (a INT) {OPTIONS}; CREATE TABLE s (a INT)", "2:108", "'s' is declared twice"),
        ("CREATE OR REPLACE TABLE t (a INT)", "2:1", "CREATE OR REPLACE is supported for views only"),
        ("CREATE TABEL t (a INT)", "2:8", "expected TABLE, VIEW or FUNCTION, found 'TABEL'"),
    ],
)  # fmt: skip
def test_wrong_declaration_is_refused_where_it_is_wrong(declaration: str, place: str, message: str) -> None:
    assert refusal(declaration) == (place, message)


@pytest.mark.parametrize(
    ("options", "place", "message"),
    [
        ("", "2:14", "table 't': the table names no connector"),
        ("WITH ('connector' = 'files')", "2:30", "table 't': there is no connector 'files'"),
        (
            "WITH ('connector' = 'datagen', 'rows' = '1')",
            "2:55",
            "table 't': the datagen connector has no option 'rows'",
        ),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_where_they_stand(options: str, place: str, message: str) -> None:
    assert refusal(f"CREATE TABLE t (a INT) {options}") == (place, message)


def test_options_are_read_strictly() -> None:
    assert refusal("CREATE TABLE t (a INT) WITH ('a' = 'b', 'a' = 'c')") == ("2:41", "option 'a' is given twice")
    assert refusal("CREATE TABLE t (a INT) WITH (connector = 'x')") == (
        "2:30", "expected an option name, found 'connector'",
    )  # fmt: skip


def test_view_can_rename_its_columns_and_build_on_views() -> None:
    plan = compiled(
        f"CREATE TABLE t (a INT, b STRING) {OPTIONS}; CREATE VIEW v (k, w) AS SELECT a, b FROM t WHERE a > 1;"
        "CREATE TEMPORARY VIEW IF NOT EXISTS u AS SELECT w AS x FROM v",
        "INSERT INTO s SELECT x FROM u WHERE x <> 'y'",
    )
    assert [o.id for o in plan.operators] == ["scan_t", "calc_t", "sink_s"]


@pytest.mark.parametrize(
    ("view", "place", "message"),
    [
        ("CREATE VIEW v (k) AS SELECT a, a FROM t", "3:13", "1 column names for 2 columns"),
        ("CREATE VIEW v AS SELECT b FROM t", "3:25", "unknown column 'b' in 't'"),
        ("CREATE VIEW v AS SELECT a FROM v", "3:32", "unknown table 'v'"),
        ("CREATE VIEW v AS", "3:17", "expected a query, found the end of the statement"),
    ],
)
def test_view_is_checked_even_if_nobody_reads_it(view: str, place: str, message: str) -> None:
    assert refusal(f"CREATE TABLE t (a INT) WITH ('connector' = 'datagen');\n{view}") == (place, message)


def test_null_does_not_go_into_a_not_null_column() -> None:
    declaration = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen')"
    sink = "CREATE TABLE n (a INT, b INT NOT NULL) WITH ('connector' = 'print')"
    refused = "column 'b' of sink 'n' is NOT NULL"
    assert refusal(f"{declaration}; {sink}", "INSERT INTO n SELECT a, NULL FROM t") == ("3:25", refused)
    assert refusal(f"{declaration}; {sink}", "INSERT INTO n (a) SELECT a FROM t") == (
        "3:15", f"{refused} and gets no value",
    )  # fmt: skip


def test_cte_is_checked_even_if_nobody_reads_it() -> None:
    query = "INSERT INTO s WITH x AS (SELECT b FROM t) SELECT 'x' FROM t"
    assert refusal("CREATE TABLE t (a INT) WITH ('connector' = 'datagen')", query) == (
        "3:33", "unknown column 'b' in 't'",
    )  # fmt: skip


def test_views_that_multiply_are_stopped() -> None:
    views = []
    for i in range(40):
        joins = "".join(f" JOIN v{i} AS x{n} ON x0.a = x{n}.a" for n in range(1, 18))  # 18 times as many each
        views.append(f"CREATE VIEW v{i + 1} AS SELECT x0.a FROM v{i} AS x0{joins};".replace("v0 ", "t "))
    with pytest.raises(SqlError, match="more than 10,000 operators are to be compiled"):
        compiled(f"{TABLE}; {''.join(views)}")


TABLE = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen')"


@pytest.mark.parametrize(
    "statement",
    [
        "SET 'table.exec.state.ttl' = '1 h'", "SET table.exec.state.ttl = 1 h", "SET table.exec.state.ttl=3600s",
        "set 'table.exec.state.ttl'='60 min'",
    ],
)  # fmt: skip
def test_setting_is_read_quoted_and_unquoted(statement: str) -> None:
    assert dict(compiled(f"{TABLE}; {statement}").config) == {"table.exec.state.ttl": "1 h"}


def test_last_setting_wins_and_the_command_line_wins_over_it() -> None:
    text = f"SET 'table.exec.state.ttl' = '1 h'; SET 'table.exec.state.ttl' = '2 h'; {SINK} {TABLE};"
    query = "INSERT INTO s SELECT 'x' FROM t"
    assert dict(compile_sql(text + query).config) == {"table.exec.state.ttl": "2 h"}
    assert dict(compile_sql(text + query, {"table.exec.state.ttl": "3 h"}).config) == {"table.exec.state.ttl": "3 h"}


@pytest.mark.parametrize(
    ("settings", "file", "name", "expected"),
    [
        ("SET 'pipeline.name' = 'from script';", "dir/job.sql", "given", "from script"),
        ("", "dir/job.sql", "given", "given"),
        ("", "dir/job.sql", None, "job"),
        ("", None, None, "s"),
        ("", "<stdin>", None, "s"),
    ],
)
def test_name_comes_from_the_script_then_the_caller_then_the_file_then_the_sinks(
    settings: str, file: str | None, name: str | None, expected: str
) -> None:
    text = f"{settings}{SINK}{TABLE}; INSERT INTO s SELECT 'x' FROM t"
    plan = compile_sql(text, file=file, name=name)
    assert plan.name == expected
    assert "pipeline.name" not in plan.config


@pytest.mark.parametrize(
    ("setting", "place", "message"),
    [
        ("SET 'table.exec.state.tl' = '1 h'", "3:5", "unknown configuration key 'table.exec.state.tl'"),
        ("SET 'parallelism.default' = '0'", "3:29",
         "'parallelism.default': expected a whole number from 1 to 32768, found '0'"),
        ("SET 'execution.runtime-mode' = 'bach'", "3:32",
         "'execution.runtime-mode': execution mode 'bach' is not supported; write 'streaming' or 'batch'"),
        ("SET", "3:4", "SET without an option is not supported"),
        ("SET 'a' 'b'", "3:5", "expected SET 'key' = 'value'"),
    ],
)  # fmt: skip
def test_wrong_setting_is_refused_where_it_stands(setting: str, place: str, message: str) -> None:
    assert refusal(f"{TABLE};\n{setting}") == (place, message)


@pytest.mark.parametrize(
    "script",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT 'x' FROM t; INSERT INTO s SELECT 'y' FROM t; END",
        "BEGIN STATEMENT SET; INSERT INTO s SELECT 'x' FROM t; INSERT INTO s SELECT 'y' FROM t; END",
        "INSERT INTO s SELECT 'x' FROM t; INSERT INTO s SELECT 'y' FROM t",
    ],
)
def test_statement_set_is_one_plan_with_all_its_sinks(script: str) -> None:
    plan = compiled(TABLE, script)
    assert [o.id for o in plan.operators] == ["scan_t", "calc_t", "sink_s", "calc_t_in_s", "sink_s_in_s"]


@pytest.mark.parametrize("text", ["", "  \n", "-- nothing\n", "/* nothing */", ";;"])
def test_empty_script_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="the script is empty"):
        compile_sql(text)


def test_deep_nesting_is_refused_not_fatal() -> None:
    for deep in ("(" * 3000 + "1" + ")" * 3000, " + ".join(["1"] * 20000), "NOT " * 5000 + "TRUE"):
        with pytest.raises(SqlError):
            compiled(TABLE, f"INSERT INTO s SELECT CAST({deep} AS STRING) FROM t")


def test_warnings_reach_the_caller() -> None:
    found: list[Diagnostic] = []
    text = f"{SINK}{TABLE};\nINSERT INTO s SELECT /*+ STATE_TTL('t'='1d') */ 'x' FROM t"
    compile_sql(text, file="job.sql", on_warning=found.append)
    assert [(d.file, d.line, d.column) for d in found] == [("job.sql", 2, 36)]
