"""Statements one at a time against a growing catalog and configuration: what each changes, asks for, and refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.planner.execute_statement import execute_statement
from hintplan.planner.session import CompileSession
from hintplan.planner.syntax.units import is_complete
from hintplan.plans.analysis.fingerprints import meanings
from hintplan.plans.client import actions
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Aggregate, Join

TABLES = """
CREATE TABLE orders (id BIGINT, customer BIGINT, total DOUBLE, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE sums (customer BIGINT, total DOUBLE) WITH ('connector' = 'print');
"""
SUMS = "INSERT INTO sums SELECT customer, SUM(total) FROM orders GROUP BY customer"


def actions_of(text: str, session: CompileSession | None = None) -> Iterator[actions.Action]:
    session = session or CompileSession.open(file="job.sql")
    for unit in session.feed(text):
        yield execute_statement(session, unit).action


def told(text: str) -> list[str]:
    return [action.text for action in actions_of(text) if isinstance(action, actions.Told)]


def last(text: str) -> actions.Action:
    return list(actions_of(f"{TABLES}{text}"))[-1]


def ttl(action: actions.Action) -> str:
    assert isinstance(action, actions.RunInsert)
    (aggregate,) = (o for o in action.plan.operators if isinstance(o, Aggregate))
    return aggregate.state[0].ttl


def refusal(text: str) -> tuple[str, str]:
    """Place and message of what is wrong with ``text``, which follows the tables from line 5 on."""
    with pytest.raises(SqlError) as caught:
        list(actions_of(f"{TABLES}{text}"))
    (problem,) = caught.value.diagnostics
    assert problem.hint, "says what to do instead"
    return f"{problem.line}:{problem.column}", problem.message


def test_an_insert_sees_the_configuration_as_of_its_statement() -> None:
    script = f"{TABLES}{SUMS}; SET 'table.exec.state.ttl' = '1 h'; {SUMS}; RESET 'table.exec.state.ttl'; {SUMS};"
    found = [ttl(action) for action in actions_of(script) if isinstance(action, actions.RunInsert)]
    assert found == ["0 ms", "1 h", "0 ms"]


def test_what_the_command_line_sets_wins_over_set_and_reset() -> None:
    session = CompileSession.open({"table.exec.state.ttl": "3 d"})
    script = f"{TABLES}SET 'table.exec.state.ttl' = '1 h'; RESET; {SUMS};"
    assert ttl(list(actions_of(script, session))[-1]) == "3 d"
    assert told("SET 'table.exec.state.ttl' = '60 min';") == ["table.exec.state.ttl = 1 h"]
    (said, *_) = actions_of("SET 'table.exec.state.ttl' = '1 h';", CompileSession.open({"table.exec.state.ttl": "3 d"}))
    assert said == actions.Told(text="table.exec.state.ttl = 3 d, as -c on the command line has it")


def test_an_insert_compiles_to_the_plan_that_a_script_with_nothing_else_compiles_to() -> None:
    action = last(f"{SUMS};")
    assert isinstance(action, actions.RunInsert)
    assert action.plan == compile_sql(f"{TABLES}{SUMS};")


def test_a_statement_set_is_one_plan_and_two_inserts_are_two() -> None:
    both = f"EXECUTE STATEMENT SET BEGIN {SUMS}; INSERT INTO sums SELECT id, total FROM orders; END;"
    action = last(both)
    assert isinstance(action, actions.RunInsert)
    assert [o.id for o in action.plan.operators if o.id.startswith("sink")] == ["sink_sums", "sink_sums_in_sums"]
    assert last(both.replace("EXECUTE STATEMENT SET BEGIN", "BEGIN STATEMENT SET;")) == action
    apart = [a for a in actions_of(f"{TABLES}{SUMS}; {SUMS};") if isinstance(a, actions.RunInsert)]
    assert [len(a.plan.operators) for a in apart] == [len(compile_sql(f"{TABLES}{SUMS};").operators)] * 2


def test_declarations_say_what_they_did() -> None:
    script = f"""{TABLES}
        CREATE TABLE IF NOT EXISTS sums (a INT) WITH ('connector' = 'print');
        CREATE TEMPORARY VIEW v AS SELECT id FROM orders;
        DROP TEMPORARY VIEW v; DROP VIEW IF EXISTS v; DROP TABLE sums; SET 'pipeline.name' = 'x'; RESET;"""
    assert told(script) == [
        "table orders created",
        "table sums created",
        "table sums already exists, and is kept",
        "view v created",
        "view v dropped",
        "there is no view v",
        "table sums dropped",
        "pipeline.name = x",
        "configuration reset",
    ]


def test_a_dropped_table_can_be_declared_anew() -> None:
    script = f"{TABLES}DROP TABLE sums; CREATE TABLE sums (n BIGINT) WITH ('connector' = 'print');"
    action = list(actions_of(f"{script} INSERT INTO sums SELECT COUNT(*) FROM orders;"))[-1]
    assert isinstance(action, actions.RunInsert)
    assert [c.name for c in action.plan.tables["sums"].columns] == ["n"]


def test_a_view_whose_table_is_dropped_fails_when_it_is_used() -> None:
    script = "CREATE VIEW v AS SELECT id FROM orders; DROP TABLE orders; SHOW VIEWS; SELECT * FROM v;"
    assert refusal(script) == ("5:33", "unknown table 'orders'")


def test_one_plan_does_not_take_two_tables_for_one() -> None:
    again = "DROP TABLE orders; CREATE TABLE orders (customer BIGINT, total DOUBLE) WITH ('connector' = 'datagen');"
    with pytest.raises(SqlError, match="table 'orders' was declared again after another INSERT of this plan used it"):
        compile_sql(f"{TABLES}{SUMS}; {again} INSERT INTO sums SELECT customer, total FROM orders;")


def test_a_statement_that_fails_changes_nothing() -> None:
    session = CompileSession.open()
    bad = "CREATE VIEW v AS SELECT id /*+ OPTIONS('lookup.cache'='NONE') */ FROM orders;"
    found = []
    for unit in session.feed(f"{TABLES}{bad} CREATE TABLE t (a INT) WITH ('connector' = 'prnt'); SHOW TABLES;"):
        try:
            found.append(execute_statement(session, unit).action)
        except SqlError as error:
            found.append(str(error.diagnostics[0].message))
    assert found[-1] == actions.ShowRows(columns=("table name",), rows=(("orders",), ("sums",)))
    assert [text for text in found if isinstance(text, str)] == [
        "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO",
        "table 't': there is no connector 'prnt'",
    ]


def test_a_broken_statement_does_not_hide_the_next_one() -> None:
    session = CompileSession.open()
    done = []
    for unit in session.feed("SELECT (1; SELEC 2; SET 'pipeline.name' = 'x';"):
        try:
            done.append(execute_statement(session, unit).action)
        except SqlError as error:
            done.append(error.diagnostics[0].message)
    assert done == ["'(' is never closed", "SELEC is not a supported statement", actions.Told(text="pipeline.name = x")]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- SELECT", True),
        ("SELECT 1 /* ;", False),
        ("SET 'a' = 'it''s;", False),
        ("BEGIN STATEMENT SET; INSERT INTO s SELECT 1;", False),
        ("BEGIN STATEMENT SET; INSERT INTO s SELECT 1; END;", True),
        ("COMPILE PLAN 'p;' FOR STATEMENT SET BEGIN INSERT INTO s SELECT 1;", False),
        ("COMPILE PLAN 'p' FOR INSERT INTO s SELECT 'STATEMENT SET';", True),
        ("explain statement set begin insert into s select 1; end;", True),
        ("", True),
    ],
)
def test_a_statement_is_complete_at_its_last_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


def test_show_create_table_declares_the_same_table() -> None:
    declared = """CREATE TEMPORARY TABLE `odd name` (
  `a` BIGINT NOT NULL COMMENT 'it''s a',
  `b``c` DECIMAL(10, 2),
  `ts` TIMESTAMP(3),
  `late` AS UPPER(CAST(a AS STRING)),
  WATERMARK FOR `ts` AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (`a`) NOT ENFORCED
) COMMENT 'odd' WITH (
  'connector' = 'filesystem',
  'path' = 'it''s/here',
  'format' = 'json'
);"""
    shown = list(actions_of(f"{declared} SHOW CREATE TABLE `odd name`;"))[-1]
    assert shown == actions.ShowText(text=declared)


def test_show_create_view_gives_the_query_as_written() -> None:
    query = "SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, -- why\n  COUNT(*) FROM orders AS o GROUP BY `id`"
    shown = last(f"CREATE VIEW v (a, n) AS {query}; SHOW CREATE VIEW v;")
    assert shown == actions.ShowText(text=f"CREATE VIEW `v` (`a`, `n`) AS\n{query};")


def test_show_lists_names_that_match() -> None:
    views = "CREATE VIEW big AS SELECT id FROM orders; CREATE VIEW bag AS SELECT id FROM orders;"
    assert last(f"{views} SHOW TABLES;") == actions.ShowRows(
        columns=("table name",), rows=(("bag",), ("big",), ("orders",), ("sums",))
    )
    assert last(f"{views} SHOW VIEWS LIKE 'b_g';").rows == (("bag",), ("big",))  # type: ignore[union-attr]
    assert last(f"{views} SHOW TABLES NOT LIKE 'b%';").rows == (("orders",), ("sums",))  # type: ignore[union-attr]
    assert ("COALESCE",) in last("SHOW FUNCTIONS LIKE 'co%';").rows  # type: ignore[union-attr]


def test_describe_shows_columns_of_tables_and_views() -> None:
    assert last("DESCRIBE orders;") == actions.ShowRows(
        columns=("name", "type", "null", "key", "extras", "watermark"),
        rows=(
            ("id", "BIGINT", "FALSE", "PRI(id)", None, None),
            ("customer", "BIGINT", "TRUE", None, None, None),
            ("total", "DOUBLE", "TRUE", None, None, None),
        ),
    )
    found = last("CREATE VIEW v AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id; DESC v;")
    assert [row[:2] for row in found.rows] == [("id", "BIGINT"), ("n", "BIGINT")]  # type: ignore[union-attr]


def test_a_query_of_its_own_gets_column_names_as_in_flink() -> None:
    action = last("SELECT a.id, b.id, COUNT(*) FROM orders a JOIN orders b ON a.id = b.customer GROUP BY a.id, b.id;")
    assert isinstance(action, actions.RunSelect)
    (name,) = (o.table for o in action.plan.operators if o.id.startswith("sink"))  # type: ignore[union-attr]
    assert name == "query_result"
    assert [(c.name, c.type) for c in action.plan.tables[name].columns] == [
        ("id", "BIGINT"), ("id0", "BIGINT"), ("EXPR$2", "BIGINT"),
    ]  # fmt: skip
    assert any(isinstance(o, Join) for o in action.plan.operators)


def test_a_query_leaves_nothing_in_the_catalog() -> None:
    script = "SELECT id FROM orders; SELECT id FROM orders; SHOW TABLES;"
    assert last(script).rows == (("orders",), ("sums",))  # type: ignore[union-attr]


def test_statements_about_plans_say_what_they_ask_for() -> None:
    plan = compile_sql(f"{TABLES}{SUMS};")
    assert last(f"COMPILE PLAN 'p.json' FOR {SUMS};") == actions.WritePlan(
        plan=plan, path="p.json", if_not_exists=False, force=False, execute=False, background=False
    )
    force = "SET 'table.plan.force-recompile' = 'true'; SET 'table.dml-sync' = 'false';"
    assert last(f"{force} COMPILE AND EXECUTE PLAN 'p.json' FOR STATEMENT SET BEGIN {SUMS}; END;") == actions.WritePlan(
        plan=plan, path="p.json", if_not_exists=False, force=True, execute=True, background=True
    )
    kept = last(f"COMPILE PLAN 'p.json' IF NOT EXISTS FOR {SUMS};")
    assert isinstance(kept, actions.WritePlan)
    assert kept.if_not_exists
    assert last("EXECUTE PLAN 'p.json';") == actions.RunPlan(path="p.json", background=False)
    assert last("EXPLAIN PLAN FOR 'p.json';") == actions.ShowFile(path="p.json")
    assert last(f"EXPLAIN {SUMS};") == actions.ShowPlan(plan=plan, as_json=False)
    assert last(f"EXPLAIN PLAN FOR {SUMS};") == actions.ShowPlan(plan=plan, as_json=False)
    for form in ("STATEMENT SET", "EXECUTE STATEMENT SET", "PLAN FOR STATEMENT SET"):
        explained = last(f"EXPLAIN {form} BEGIN {SUMS}; END;")
        assert explained == actions.ShowPlan(plan=plan, as_json=False)
    assert last(f"EXPLAIN JSON_EXECUTION_PLAN {SUMS};") == actions.ShowPlan(plan=plan, as_json=True)
    assert last(f"EXECUTE {SUMS};") == actions.RunInsert(plan=plan, background=False)
    assert isinstance(last("EXECUTE SELECT id FROM orders;"), actions.RunSelect)
    assert last("SHOW JOBS;") == actions.ListJobs()
    assert last("STOP JOB 'sums';") == actions.StopJob(name="sums")


def test_keys_of_the_client_stand_in_no_plan() -> None:
    action = last(f"SET 'table.dml-sync' = 'true'; SET 'table.plan.force-recompile' = 'true'; {SUMS};")
    assert isinstance(action, actions.RunInsert)
    assert dict(action.plan.config) == {}
    assert last("SET 'table.dml-sync' = 'TRUE'; SET;").rows == (("table.dml-sync", "true"),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("DROP TABLE nothing;", "5:12", "there is no table 'nothing'"),
        ("DROP VIEW orders;", "5:11", "'orders' is a table"),
        ("DROP TEMPORARY TABLE orders;", "5:22", "'orders' is not temporary"),
        ("CREATE TEMPORARY VIEW v AS SELECT id FROM orders;\nDROP VIEW v;", "6:11", "'v' is temporary"),
        ("DROP DATABASE x;", "5:1", "DROP DATABASE is not supported"),
        ("DROP TABLE orders CASCADE;", "5:19", "expected ';', found 'CASCADE'"),
        ("SHOW CATALOGS;", "5:6", "expected something to show, found 'CATALOGS'"),
        ("SHOW TABLES NOT 'x';", "5:17", "expected LIKE, found 'x'"),
        ("SHOW CREATE TABLE nothing;", "5:19", "there is no table 'nothing'"),
        ("SHOW CREATE VIEW orders;", "5:18", "'orders' is a table"),
        ("DESCRIBE nothing;", "5:10", "there is no table or view 'nothing'"),
        ("RESET 'table.exec.state.tl';", "5:1", "unknown configuration key 'table.exec.state.tl'"),
        ("SET 'table.dml-sync' = 'yes';", "5:24", "'table.dml-sync': expected true or false, found 'yes'"),
        ("EXPLAIN;", "5:8", "expected INSERT INTO, SELECT or STATEMENT SET, found the end of the statement"),
        ("EXPLAIN CHANGELOG_MODE SELECT id FROM orders;", "5:9", "CHANGELOG_MODE is not supported"),
        ("EXPLAIN EXECUTE PLAN 'x';", "5:17", "expected INSERT INTO, SELECT or STATEMENT SET, found 'PLAN'"),
        ("EXPLAIN CREATE TABLE c WITH ('connector' = 'print') AS SELECT id FROM orders;", "5:9",
         "EXPLAIN of CREATE TABLE ... AS is not supported"),
        ("EXECUTE STATEMENT SET BEGIN CREATE TABLE c (a INT); END;", "5:29",
         "a statement set holds INSERT statements, and no CREATE, as in Flink"),
        ("COMPILE PLAN p FOR " + SUMS, "5:14", "expected the path of a plan file, found 'p'"),
        ("COMPILE PLAN 'p' FOR SELECT 1;", "5:22", "a plan is compiled for INSERT INTO or a statement set"),
        ("COMPILE PLAN 'p' " + SUMS, "5:18", "expected FOR, found 'INSERT'"),
        ("COMPILE AND EXECUTE PLAN 'p' IF NOT EXISTS FOR " + SUMS, "5:30",
         "COMPILE AND EXECUTE PLAN takes no IF NOT EXISTS"),
        ("EXECUTE PLAN 'p' 'q';", "5:18", "expected ';', found 'q'"),
        ("EXECUTE STATEMENT SET BEGIN " + SUMS + ";", "5:1", "this statement set is never closed"),
        ("BEGIN STATEMENT SET; END;", "5:1", "a statement set holds INSERT statements"),
        ("BEGIN STATEMENT SET; SELECT 1; END;", "5:22", "expected INSERT INTO in the statement set, found 'SELECT'"),
        ("END;", "5:1", "END closes nothing"),
        ("USE CATALOG c;", "5:13", "there is no catalog 'c'"),
        ("SELECT nothing FROM orders;", "5:8", "unknown column 'nothing' in 'orders'"),
        ("SELECT id AS __x FROM orders;", "5:14", "column names that start with '__' are reserved: '__x'"),
        ("SELECT * FROM orders MATCH_RECOGNIZE (PATTERN (A));", "5:22", "MATCH_RECOGNIZE is not supported"),
        ("SELECT 'a;", "5:8", "this string is never closed"),
        ("CREATE TABLE orders (a INT) WITH ('connector' = 'print');", "5:14", "'orders' is declared twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_where_it_stands(text: str, place: str, message: str) -> None:
    assert refusal(text) == (place, message)


def test_a_hint_in_a_view_is_accounted_for_where_the_view_is_used() -> None:
    session = CompileSession.open()
    view = "CREATE VIEW v AS SELECT /*+ STATE_TTL('orders' = '1 d') */ id FROM orders;"
    script = f"{TABLES}{view} SELECT * FROM orders; SELECT * FROM v;"
    found = [execute_statement(session, unit).findings for unit in session.feed(script)]
    assert found[:-1] == [()] * 4
    (warning,) = found[-1]
    assert (warning.severity, warning.diagnostic.line) == ("warning", 5)
    assert "this query block has no join and no aggregation" in warning.diagnostic.message


def test_a_view_is_cached_from_one_statement_to_another() -> None:
    script = """SET 'execution.runtime-mode' = 'batch';
        CACHE LAZY TABLE v AS SELECT customer, SUM(total) AS total FROM orders GROUP BY customer;
        SELECT * FROM v; UNCACHE TABLE v; SELECT * FROM v; UNCACHE TABLE v;"""
    *_, cached, first, dropped, second, again = actions_of(f"{TABLES}{script}")
    assert cached == actions.Told(text="v is cached from here on")
    assert isinstance(first, actions.RunSelect)
    assert isinstance(second, actions.RunSelect)

    def kept(action: actions.RunSelect | actions.DropCached) -> set[str]:
        found = {o.id: o.cached for o in action.plan.operators if o.id.startswith(("aggregate", "calc"))}
        return {name for name, settings in found.items() if settings is not None and settings.enabled}

    assert kept(first)
    assert kept(second) == set()
    assert isinstance(dropped, actions.DropCached)
    read = meanings(first.plan)
    assert {read[name] for name in kept(first)} <= set(meanings(dropped.plan).values())
    assert again == actions.Told(text="v is not cached from here on")


def test_cache_table_without_lazy_computes_what_readers_will_find() -> None:
    script = """SET 'execution.runtime-mode' = 'batch';
        CACHE TABLE v AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;
        CACHE TABLE v; SELECT n FROM v;"""
    *_, filled, again, read = actions_of(f"{TABLES}{script}")
    assert isinstance(filled, actions.FillCached)
    assert isinstance(read, actions.RunSelect)
    assert filled.text == "v is cached from here on"
    (kept,) = (o.id for o in read.plan.operators if (known := o.cached) is not None and known.enabled)
    assert meanings(read.plan)[kept] in meanings(filled.plan).values()
    assert again == actions.Told(text="v is cached from here on"), "it already exists"
