"""Init files: what several scripts declare and set, before each of them, in every command that compiles SQL.

A script with init files is what the files would be one below the other; what is expected of it is taken from there.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan as api
from hintplan import compile_sql
from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from tests.plans.in_process import Done, hintplan

TABLES = """-- what all jobs read
SET 'table.exec.state.ttl' = '2 d';
CREATE TABLE orders (id BIGINT, custkey BIGINT, total DOUBLE) WITH ('connector' = 'datagen');
CREATE TABLE customers (custkey BIGINT, country STRING) WITH ('connector' = 'datagen');
CREATE VIEW bills AS
SELECT /*+ STATE_TTL('o' = '1 d') */ o.total, c.country FROM orders o JOIN customers c ON o.custkey = c.custkey;
CREATE VIEW unread AS SELECT /*+ STATE_TTL('x' = '1 d') */ id FROM orders -- and no semicolon"""
SINKS = "CREATE TABLE result (country STRING, revenue DOUBLE) WITH ('connector' = 'print')\n"
JOB = """SET 'parallelism.default' = '3';
INSERT INTO result
SELECT country, SUM(total) FROM bills GROUP BY country;
"""
INIT = {"tables.sql": TABLES, "sinks.sql": SINKS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {**INIT, "job.sql": JOB}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def done(folder: Path, *words: str, code: int = 0, stdin: str = "") -> Done:
    found = hintplan(*words, folder=folder, stdin=stdin.encode())
    assert found.returncode == code, found.stdout + found.stderr
    return found


def test_a_script_with_init_files_is_all_of_them_in_one() -> None:
    whole = compile_sql(f"{TABLES}\n;{SINKS};{JOB}", name="job")
    parted = compile_sql(JOB, name="job", init=INIT)
    assert parted.init == ("tables.sql", "sinks.sql")
    assert api.dumps(replace(parted, init=())) == api.dumps(whole)
    assert api.loads(api.dumps(parted)) == parted


def test_compile_takes_init_files_from_anywhere_and_records_their_names(folder: Path) -> None:
    beside = done(folder, "compile", "job.sql", "-i", "tables.sql", "--init", "sinks.sql").stdout
    document = json.loads(beside)
    assert (document["source"], document["init"]) == ("job.sql", ["tables.sql", "sinks.sql"])
    (folder / "jobs").mkdir()
    (folder / "jobs" / "job.sql").write_text(JOB)
    elsewhere = done(folder / "jobs", "compile", "job.sql", "-i", "../tables.sql", "-i", str(folder / "sinks.sql"))
    assert elsewhere.stdout == beside


def test_the_script_sets_what_an_init_file_set_and_the_command_line_both(folder: Path) -> None:
    (folder / "job.sql").write_text(f"SET 'table.exec.state.ttl' = '3 d';{JOB}")
    words = ("compile", "job.sql", "-i", "tables.sql", "-i", "sinks.sql")
    assert json.loads(done(folder, *words).stdout)["config"]["table.exec.state.ttl"] == "3 d"
    said = done(folder, *words, "-c", "table.exec.state.ttl=4 d").stdout
    assert json.loads(said)["config"]["table.exec.state.ttl"] == "4 d"


def test_an_error_names_the_file_it_is_in_and_shows_its_line(folder: Path) -> None:
    (folder / "tables.sql").write_text(TABLES.replace("country STRING", "country STRNG"))
    words = ("compile", "job.sql", "-i", "tables.sql", "-i", "sinks.sql")
    told = done(folder, *words, code=1).stderr
    assert "tables.sql:4:49: error: " in told
    assert "  CREATE TABLE customers (custkey BIGINT, country STRNG)" in told
    (folder / "tables.sql").write_text(TABLES)
    (folder / "sinks.sql").write_text(SINKS.replace("CREATE", "CREAT"))
    assert "sinks.sql:1:1: error: " in done(folder, *words, code=1).stderr
    (folder / "sinks.sql").write_text(SINKS)
    (folder / "job.sql").write_text(JOB.replace("FROM bills", "FROM bill"))
    told = done(folder, *words, code=1).stderr
    assert "job.sql:3:33: error: " in told
    assert "did you mean 'bills'" in told
    assert "  SELECT country, SUM(total) FROM bill GROUP BY country;" in told


def test_a_statement_that_an_init_file_leaves_open_is_an_error_there() -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(JOB, init={"tables.sql": "CREATE TABLE orders (id BIGINT"})
    assert str(caught.value).startswith("tables.sql:1:21: '(' is never closed")


@pytest.mark.parametrize(
    ("statement", "called"),
    [
        ("INSERT INTO result SELECT 'a', 1.0", "INSERT"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO result SELECT 'a', 1.0; END", "STATEMENT SET"),
        ("CREATE TABLE filled WITH ('connector' = 'print') AS SELECT id FROM orders", "CREATE TABLE ... AS"),
        ("SELECT id FROM orders", "SELECT"),
        ("SHOW TABLES", "SHOW"),
        ("DESCRIBE orders", "DESCRIBE"),
        ("EXPLAIN SELECT id FROM orders", "EXPLAIN"),
        ("EXECUTE PLAN 'a.json'", "EXECUTE PLAN"),
        ("COMPILE PLAN 'a.json' FOR INSERT INTO result SELECT 'a', 1.0", "COMPILE PLAN"),
        ("STOP JOB 'a'", "STOP JOB"),
        ("SET", "SET without an option"),
    ],
)
def test_what_does_more_than_declare_has_no_place_in_an_init_file(statement: str, called: str) -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(JOB, init={**INIT, "more.sql": f"\n{statement};"})
    assert str(caught.value).startswith(f"more.sql:2:1: {called} has no place in an init file")


def test_what_no_script_uses_is_no_finding_but_what_this_one_says_is() -> None:
    idle = "CREATE VIEW mine AS SELECT /*+ STATE_TTL('x' = '1 d') */ id FROM orders;"
    lacking = "CREATE TABLE base (id BIGINT);"
    found = compile_script(f"{idle}\n{JOB}", file="job.sql", init={"base.sql": lacking, **INIT}).findings
    assert [(f.diagnostic.file, f.diagnostic.line) for f in found] == [("job.sql", 1)]


def test_a_note_of_an_init_file_comes_before_those_of_the_script() -> None:
    note = "SET 'table.exec.mini-batch.enabled' = 'true';"
    found = compile_script(f"{note}{JOB}", file="job.sql", init={**INIT, "z.sql": f"\n\n{note}"}).findings
    assert [(f.diagnostic.file, f.diagnostic.line) for f in found] == [("z.sql", 3), ("job.sql", 1)]


def test_commands_that_read_the_script_of_a_plan_find_its_init_files_beside_it(folder: Path) -> None:
    done(folder, "compile", "job.sql", "-i", "tables.sql", "-i", "sinks.sql", "-o", "job.json")
    ttl = "join_o_c.state.leftState.ttl"
    told = done(folder, "why", "job.json", ttl).stdout
    assert "tables.sql:6:22   SELECT /*+ STATE_TTL('o' = '1 d') */" in told
    assert "or for good: change tables.sql:6 and compile again" in told
    assert "tables.sql:2:5" in done(folder, "why", "job.json", "config.table.exec.state.ttl").stdout
    assert "job.sql:1:5" in done(folder, "why", "job.json", "config.parallelism.default").stdout
    shown = done(folder, "show", "job.json", "--format", "html")
    assert "does not compile" not in shown.stderr
    changed = (folder / "job.json").read_text().replace('"join-type": "inner"', '"join-type": "left"')
    (folder / "job.json").write_text(changed)
    told = done(folder, "validate", "job.json", code=1).stderr
    assert "join_o_c.join-type: inner → left" in told
    assert "hintplan compile job.sql --init tables.sql --init sinks.sql -o job.json --keep-edits" in told


def test_init_files_elsewhere_are_named_and_else_the_command_says_so(folder: Path) -> None:
    words = ("--init", "../tables.sql", "--init", "../sinks.sql")
    jobs = folder / "jobs"
    jobs.mkdir()
    (jobs / "job.sql").write_text(JOB)
    done(jobs, "compile", "job.sql", *words, "-o", "job.json")
    told = done(jobs, "why", "job.json", "config.table.exec.state.ttl")
    assert "its init file 'tables.sql' is not in its directory" in told.stderr
    assert "../tables.sql:2:5" in done(jobs, "why", "job.json", "config.table.exec.state.ttl", *words).stdout
    assert "no differences" in done(jobs, "diff", "job.json", "job.sql", *words).stdout
    assert "unknown sink table" in done(jobs, "diff", "job.json", "job.sql", code=1).stderr
    (folder / "empty.sql").write_text("")
    told = done(jobs, "show", "job.sql", *words, "--format", "tree")
    assert "join_o_c" in told.stdout
    told = done(jobs, "compile", "job.sql", "-i", "../tables.sql", "-i", "../tables.sql", code=1)
    assert "../tables.sql: is given twice with --init" in told.stderr


def test_diff_and_ci_read_init_files_at_the_revision_of_the_script(folder: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.email=a@example.org", "-c", "user.name=A")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    words = ("-i", "tables.sql", "-i", "sinks.sql")
    done(folder, "compile", "job.sql", *words, "-o", "job.json")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert "does not" not in done(folder, "ci", "--base", "git:main").stdout
    (folder / "tables.sql").write_text(TABLES.replace("'2 d'", "'5 d'"))
    told = done(folder, "diff", "git:main:job.sql", "job.sql", *words).stdout
    assert "table.exec.state.ttl" in told
    assert "2 d" in told
    assert "5 d" in told
    (folder / "tables.sql").write_text(TABLES.replace("orders o JOIN", "orders o LEFT JOIN"))
    told = done(folder, "ci", "job.json", "--base", "git:main", code=1).stdout
    assert "error: join_o_c.join-type: the script says otherwise" in told


def test_the_sql_client_reads_init_files_first(folder: Path) -> None:
    (folder / "look.sql").write_text("SHOW VIEWS;\nDESCRIBE result;\nSELECT x FROM orders;")
    told = done(folder, "sql", "look.sql", "-i", "tables.sql", "-i", "sinks.sql", code=1)
    assert "bills" in told.stdout
    assert "country" in told.stdout
    assert "look.sql:3:8: error: " in told.stderr
    assert "  SELECT x FROM orders;" in told.stderr
    told = done(folder, "sql", "look.sql", "-i", "sinks.sql", "-i", "job.sql", code=1)
    assert "job.sql:2:1: error: INSERT has no place in an init file" in told.stderr
    assert told.stdout == ""
