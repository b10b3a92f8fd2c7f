"""Small scripts that ask for much: nothing is compiled again and again below the limits, and beyond them it ends.

Work is counted, not timed: how many blocks of queries are compiled, which must grow with the script and not faster.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from hintplan.planner.compile import compile_sql
from hintplan.planner.context import Context
from hintplan.planner.session import CompileSession
from hintplan.planner.syntax.budget import LIMITS, Budget, limits
from hintplan.planner.syntax.units import units
from hintplan.plans.commands.root import root
from hintplan.plans.errors import SqlError

TABLES = (
    "CREATE TABLE t (a INT, b INT) WITH ('connector' = 'datagen');\n"
    "CREATE TABLE s (a INT) WITH ('connector' = 'print');\n"
)
READ = "INSERT INTO s SELECT a FROM v{};"


def chained(number: int) -> str:
    views = (f"CREATE VIEW v{i} AS SELECT MAX(a) AS a FROM v{i - 1} GROUP BY a;\n" for i in range(1, number + 1))
    return f"{TABLES}CREATE VIEW v0 AS SELECT a FROM t;\n{''.join(views)}{READ.format(number)}"


def joined(number: int) -> str:
    views = (
        f"CREATE VIEW v{i} AS SELECT x.a FROM v{i - 1} x JOIN v{i - 1} y ON x.a = y.a;\n" for i in range(1, number + 1)
    )
    return f"{TABLES}CREATE VIEW v0 AS SELECT a FROM t;\n{''.join(views)}{READ.format(number)}"


def doubled(number: int) -> str:
    """Views with twice as many columns each."""
    text = f"{TABLES}CREATE VIEW v0 AS SELECT a, a AS c0 FROM t;\n"
    for i in range(1, number + 1):
        old = [f"c{n}" for n in range(2 ** (i - 1))]
        new = [f"{name} + 1 AS c{n}" for n, name in enumerate(old, len(old))]
        text += f"CREATE VIEW v{i} AS SELECT {', '.join(['a', *old, *new])} FROM v{i - 1};\n"
    return text + READ.format(number)


def spent(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """What compiling ``text`` spends of a limit."""
    budgets: list[Budget] = []
    exceeded = Budget.exceeded

    def noted(self: Budget, name: str, number: int) -> tuple[str, str] | None:
        budgets[:] = [self]
        return exceeded(self, name, number)

    with monkeypatch.context() as patch:
        patch.setattr(Budget, "exceeded", noted)
        compile_sql(text)
    return budgets[0].spent[name]


@pytest.mark.parametrize("what", ["operators", "columns", "expressions", "tokens"])
def test_a_chain_of_views_costs_what_it_is_long(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = (spent(chained(number), what, monkeypatch) for number in (20, 80))
    # Four times as many views: sixteen times as much, if each compiled all those below it.
    assert long < 5 * short


def test_each_view_of_a_chain_is_compiled_when_declared_and_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # The block of the INSERT, and 31 views with the scan at the bottom: once each, and the lot again for the INSERT.
    assert spent(chained(30), "operators", monkeypatch) == 1 + 2 * (31 + 1)


OTHERS = {
    "a table is dropped": "DROP TABLE t; CREATE TABLE t (a STRING, b INT) WITH ('connector' = 'datagen');",
    "a column is renamed": "ALTER TABLE t RENAME a TO c;",
    "a view is replaced": "CREATE OR REPLACE VIEW v0 AS SELECT CAST(a AS STRING) AS a FROM t;",
    "a view is altered": "ALTER VIEW v0 AS SELECT CAST(a AS STRING) AS a FROM t;",
}


@pytest.mark.parametrize("change", OTHERS)
def test_a_view_is_tried_on_what_its_names_mean_now(change: str) -> None:
    views = "CREATE VIEW v0 AS SELECT a FROM t; CREATE VIEW v1 AS SELECT a FROM v0;"
    last = "CREATE VIEW v2 AS SELECT a * 2 AS b FROM v1;"
    assert compile_sql(f"{TABLES}{views}{last}INSERT INTO s SELECT b FROM v2;")
    with pytest.raises(SqlError):
        compile_sql(f"{TABLES}{views}{OTHERS[change]}{last}INSERT INTO s SELECT a FROM t;")


def test_a_view_that_is_read_twice_by_others_still_compiles() -> None:
    text = (
        f"{TABLES}CREATE VIEW v0 AS SELECT a FROM t; CREATE VIEW v1 AS SELECT x.a FROM v0 x JOIN v0 y ON x.a = y.a;"
        "CREATE VIEW v2 AS SELECT v1.a, v0.a AS b FROM v1 JOIN v0 USING (a); INSERT INTO s SELECT a + b FROM v2;"
    )
    flat = (
        f"{TABLES}INSERT INTO s SELECT a + b FROM (SELECT v1.a, v0.a AS b FROM "
        "(SELECT x.a FROM (SELECT a FROM t) x JOIN (SELECT a FROM t) y ON x.a = y.a) v1 "
        "JOIN (SELECT a FROM t) v0 USING (a)) v2;"
    )
    assert [type(o) for o in compile_sql(text).operators] == [type(o) for o in compile_sql(flat).operators]


SMALLER = {"statements": 500, "tokens": 20_000, "operators": 1_000, "columns": 2_000, "characters": 300_000}
"""A tenth of the limits and less, so that the tests are quick."""
TOO_MUCH: dict[str, tuple[Callable[[], str], str, int]] = {
    "joins": (lambda: joined(12), "operators", 12),
    "columns": (lambda: doubled(11), "tokens", 14),
    "inserts": (lambda: TABLES + "INSERT INTO s SELECT a FROM t;\n" * 900, "statements", 501),
    "settings": (lambda: "SET 'parallelism.default' = '2';\n" * 2_000, "statements", 501),
    "a sum": (lambda: f"{TABLES}INSERT INTO s SELECT a{' + 1' * 8_000} FROM t;", "tokens", 3),
    "a list": (lambda: f"{TABLES}INSERT INTO s SELECT a FROM t WHERE a IN ({'1,' * 20_000}1);", "tokens", 3),
    "a long text": (lambda: f"SELECT '{'x' * 300_000}'", "characters", 1),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_is_too_much_is_told_by_name_and_place(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, name, line = TOO_MUCH[what]
    monkeypatch.setenv("HINTPLAN_LIMITS", ",".join(f"{limit}={number}" for limit, number in SMALLER.items()))
    with pytest.raises(SqlError, match=f"more than {SMALLER[name]:,} {name} are to be compiled") as caught:
        compile_sql(make(), file="job.sql")
    (found,) = caught.value.diagnostics
    assert (found.file, found.column is not None) == ("job.sql", True)
    assert found.line == line
    assert f"HINTPLAN_LIMITS={name}=" in (found.hint or "")


SMALL: dict[str, Callable[[], str]] = {
    "statements": lambda: TABLES + "INSERT INTO s SELECT a FROM t;" * 10,
    "characters": lambda: TABLES + "INSERT INTO s SELECT a FROM t;",
    "tokens": lambda: f"{TABLES}INSERT INTO s SELECT a FROM t WHERE a IN ({'1,' * 100}1);",
    "operators": lambda: joined(4),
    "columns": lambda: (
        f"{TABLES}INSERT INTO s SELECT c0 FROM (SELECT {', '.join(f'a c{n}' for n in range(30))} FROM t);"
    ),
    "expressions": lambda: f"{TABLES}INSERT INTO s SELECT a{' + 1' * 30} FROM t;",
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_is_heeded_and_raised_by_whoever_compiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SMALL[name]()
    monkeypatch.setenv("HINTPLAN_LIMITS", f"{name}=10")
    with pytest.raises(SqlError, match=f"more than 10 {name} are to be compiled"):
        compile_sql(text)
    # The script has no say in it.
    with pytest.raises(SqlError):
        compile_sql(f"SET 'HINTPLAN_LIMITS' = '{name}=1000000'; {text}")
    monkeypatch.setenv("HINTPLAN_LIMITS", f" {name} = {LIMITS[name] * 2},")
    assert compile_sql(text).operators


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("statement=5", "did you mean 'statements'"),
        ("statements", "needs a number, found ''"),
        ("statements=-1", "needs a number, found '-1'"),
        ("statements=1e9", "needs a number"),
        ("statements=²", "needs a number"),
    ],
)
def test_a_limit_that_cannot_be_read_is_refused(value: str, said: str) -> None:
    with pytest.raises(SqlError, match=f"HINTPLAN_LIMITS: (.|\n)*{said}"):
        limits({"HINTPLAN_LIMITS": value})


def test_every_command_that_compiles_heeds_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(SMALL["statements"]())
    for words in (["compile"], ["show", "--format", "svg"], ["diff", "job.sql"]):
        done = CliRunner().invoke(root, [*words, "job.sql"])
        assert done.exit_code == 0, done.output
        refused = CliRunner(env={"HINTPLAN_LIMITS": "statements=5"}).invoke(root, [*words, "job.sql"])
        assert "more than 5 statements" in f"{refused.output}{refused.exception}", words


def test_a_client_counts_each_statement_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from hintplan.planner.execute_statement import execute_statement

    monkeypatch.setenv("HINTPLAN_LIMITS", "tokens=30")
    session = CompileSession.open()
    for _ in range(20):
        for unit in session.feed("SET 'parallelism.default' = '2';"):
            execute_statement(session, unit)
    assert isinstance(session.context, Context)


def test_a_sum_that_is_too_deep_is_refused_where_it_stands() -> None:
    with pytest.raises(SqlError, match="nested too deeply") as caught:
        compile_sql(f"{TABLES}INSERT INTO s SELECT a{' + 1' * 5_000} FROM t;", file="job.sql")
    assert (caught.value.diagnostics[0].file, caught.value.diagnostics[0].line) == ("job.sql", 3)


def test_large_scripts_that_people_have_compile() -> None:
    columns = ", ".join(f"c{n} INT" for n in range(1_000))
    wide = f"CREATE TABLE w ({columns}) WITH ('connector' = '{{}}');"
    values = ", ".join(f"c{n} + 1" for n in range(1_000))
    text = f"{wide.format('datagen')}{wide.format('print').replace(' w ', ' v ')}INSERT INTO v SELECT {values} FROM w;"
    assert len(compile_sql(text).operators[0].columns) == 1_000
    assert len(compile_sql(TABLES + "INSERT INTO s SELECT a FROM t;\n" * 300).operators) == 301
    assert len(compile_sql(chained(100)).operators) > 100


def test_reading_statements_looks_at_each_piece_of_the_text_once() -> None:
    session = CompileSession.open()
    text = "SET 'parallelism.default' = '2'; -- blanked out\n" * 50
    read = [session.read(unit) for unit in session.feed(text)]
    assert len(read) == len(list(units(session.source))) == 50
    assert session.context.text[0:31] == "SET 'parallelism.default' = '2'"
    assert len(session.context.text) < len(text)


@pytest.mark.parametrize(
    "condition",
    [
        "REGEXP(x, '(a+)+$')",
        "REGEXP_EXTRACT(x, '(a+)+$') = 'a'",
        "REGEXP_REPLACE(x, '(a|a)*b', '') = 'a'",
        "REGEXP_COUNT(x, '(a+)+$') > 1",
        "REGEXP_INSTR(x, '(a+)+$') > 1",
        "REGEXP_SUBSTR(x, '(a+)+$') = 'a'",
        "x SIMILAR TO '(a+)+'",
        "PARSE_URL(x, 'QUERY', '(a+)+') = 'a'",
    ],
)
def test_slow_patterns_are_refused_where_they_stand(condition: str) -> None:
    tables = "CREATE TABLE t (x STRING) WITH ('connector' = 'datagen');\nCREATE TABLE s LIKE t;\n"
    tables = tables.replace("s LIKE t", "s (x STRING) WITH ('connector' = 'print')")
    query = f"INSERT INTO s SELECT x FROM t WHERE {condition};"
    with pytest.raises(SqlError, match="repeats a part that can match the same text in several ways") as caught:
        compile_sql(tables + query)
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (3, query.index("'") + 1) or (
        "PARSE_URL" in condition
    )
    for start in ("REGEXP_COUNT", "REGEXP_INSTR", "PARSE_URL"):
        if condition.startswith(start):
            with pytest.raises(SqlError, match="must be a literal that is not empty"):
                compile_sql(tables + query.replace("'(a+)+$'", "x").replace("'(a+)+'", "x"))
