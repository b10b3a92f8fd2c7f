"""`hintplan why`: every layer of a setting, the line that set it, what wins, and how to change it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hintplan import compile_sql, dump, load
from hintplan.plans.commands.why import why_command
from hintplan.plans.edit.edit import set_value

ROOT = Path(__file__).parents[3]
SQL = """SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE orders (id BIGINT, c BIGINT, cur STRING, pt AS PROCTIME()) WITH ('connector' = 'datagen');
CREATE TABLE customers (id BIGINT, n STRING) WITH ('connector' = 'datagen');
CREATE TABLE rates (cur STRING, r DOUBLE) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'rates',
  'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '100'
);
CREATE TABLE out1 (n STRING, r DOUBLE) WITH ('connector' = 'print');
INSERT INTO out1
SELECT /*+ STATE_TTL('o' = '1 d'), LOOKUP('table' = 'x', 'capacity' = '50') */ c.n, x.r
FROM orders AS o
JOIN customers AS c ON o.c = c.id
JOIN rates FOR SYSTEM_TIME AS OF o.pt AS x ON o.cur = x.cur;
"""
LEFT, RIGHT = "join_o_c.state.leftState.ttl", "join_o_c.state.rightState.ttl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script, its plan, and an edited plan, in the working directory."""
    (tmp_path / "job.sql").write_text(SQL)
    plan = compile_sql(SQL, file="job.sql")
    dump(plan, tmp_path / "plan.json")
    edited, _ = set_value(plan, LEFT, "3 d", reason="late payments")
    dump(set_value(edited, "config.parallelism.default", "8")[0], tmp_path / "edited.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(why_command, arguments)


def answer(*arguments: str) -> dict[str, object]:
    found = json.loads(ask(*arguments, "--json").stdout)
    assert isinstance(found, dict)
    return found


def place(of: str) -> tuple[int, int]:
    """Line and column of a text that occurs once in the script."""
    before = SQL[: SQL.index(of)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def test_an_edit_shows_all_layers_with_their_lines_and_how_to_take_it_back(folder: Path) -> None:
    line, column = place("'o' = '1 d'")
    edit = next(n for n, text in enumerate((folder / "edited.json").read_text().split("\n"), 1) if '"3 d"' in text)
    where = (folder / "edited.json").read_text().split("\n")[edit - 1].index('"3 d"') + 1
    assert re.sub(r" {3,}", "   ", ask("edited.json", LEFT).stdout).splitlines() == [
        f"{LEFT} is 3 d",
        "",
        "  config   1 h   job.sql:1:5   SET 'table.exec.state.ttl' = '1 h';",
        f"  hint   1 d   job.sql:{line}:{column}   " + SQL.splitlines()[line - 1],
        f"> edit   3 d   edited.json:{edit}:{where}",
        "",
        "edit wins: an edit of the plan overrides the script",
        "reason: late payments",
        "another value: a longer TTL holds from the next start, also for rows that are kept. A shorter one hides older "
        "rows from the next start, and soon deletes them.",
        f"take the edit back: hintplan set edited.json {LEFT}='1 d'",
    ]


def test_the_command_that_takes_an_edit_back_does(folder: Path) -> None:
    command = ask("edited.json", LEFT).stdout.splitlines()[-1].partition(": hintplan set ")[2]
    file, assignment = shlex.split(command)
    path, _, value = assignment.partition("=")
    edited, _ = set_value(load(file), path, value)
    assert edited.reasons == {}
    assert answer("plan.json", LEFT)["set-by"] == "hint"


@pytest.mark.parametrize(
    ("path", "by", "at"),
    [
        (LEFT, "hint", "'o' = '1 d'"),
        (RIGHT, "config", "'table.exec.state.ttl'"),
        ("lookup_x.async.capacity", "hint", "'capacity' = '50'"),
        ("lookup_x.cache.lookup.cache", "table", "'lookup.cache'"),
        ("lookup_x.cache.lookup.partial-cache.max-rows", "table", "'lookup.partial-cache.max-rows'"),
        ("lookup_x.async.timeout", "default", None),
        ("config.table.exec.state.ttl", "script", "'table.exec.state.ttl'"),
        ("tables.rates.options.url", "script", "'url'"),
        ("operators.join_o_c.leftState.ttl", "hint", "'o' = '1 d'"),
    ],
)
def test_what_wins_is_shown_with_the_place_that_set_it(folder: Path, path: str, by: str, at: str | None) -> None:
    found = answer("plan.json", path)
    assert found["set-by"] == by
    (winner,) = [layer for layer in found["layers"] if layer["wins"]]  # type: ignore[attr-defined]
    assert winner["layer"] == by
    assert (winner["line"], winner["column"]) == ((None, None) if at is None else place(at))
    assert winner["script-says-now"] is None
    assert found["undo"] is None


def test_config_that_was_edited_is_told_from_what_the_script_set(folder: Path) -> None:
    edited = answer("edited.json", "config.parallelism.default")
    assert edited["set-by"] == "edit"
    assert answer("edited.json", "config.table.exec.state.ttl")["set-by"] == "script"


def test_a_script_that_says_something_else_now_is_told(folder: Path) -> None:
    (folder / "job.sql").write_text(
        SQL.replace("'o' = '1 d'", "'o' = '2 d'").replace("'capacity' = '50'", "'async'='true'")
    )
    assert "    job.sql now has 2 d: the plan was compiled from other values" in ask("plan.json", LEFT).stdout
    (hint,) = [s for s in answer("plan.json", "lookup_x.async.capacity")["layers"] if s["layer"] == "hint"]  # type: ignore[attr-defined]
    assert hint["script-says-now"] == "nothing"
    (folder / "job.sql").write_text(SQL.replace("AS o\n", "AS oo\n").replace("o.", "oo.").replace("'o' =", "'oo' ="))
    notes = answer("plan.json", LEFT)["notes"]
    assert notes == ["job.sql no longer has an operator 'join_o_c'; did you mean 'join_oo_c'?"]
    (folder / "job.sql").write_text(SQL.replace("'o' = '1 d'", "'o' = '1 d', 'c' = '9 d'"))
    assert answer("plan.json", RIGHT)["notes"] == ["job.sql now has a hint with 9 d; compile it again"]


def test_without_a_script_it_says_how_to_give_one(folder: Path) -> None:
    (folder / "job.sql").rename(folder / "other.sql")
    found = ask("plan.json", LEFT)
    assert "job.sql" not in found.stdout
    assert found.stderr == "the script was not found, so no lines are shown; give it with --sql SCRIPT\n"
    line, _ = place("'o' = '1 d'")
    assert f"other.sql:{line}:" in ask("plan.json", LEFT, "--sql", "other.sql").stdout


def test_a_script_that_does_not_compile_is_told_and_the_layers_are_shown(folder: Path) -> None:
    (folder / "job.sql").write_text("SELECT")
    found = ask("plan.json", LEFT)
    assert found.stderr.startswith("job.sql does not compile, so no lines are shown: job.sql:1:1: ")
    assert "> hint     1 d" in found.stdout


def test_what_was_set_on_the_command_line_has_no_line(folder: Path) -> None:
    dump(compile_sql(SQL, {"table.exec.state.ttl": "2 h"}, file="job.sql"), folder / "plan.json")
    assert "job.sql now has 1 h" in ask("plan.json", RIGHT).stdout
    said = ask("plan.json", RIGHT, "-c", "table.exec.state.ttl=2 h").stdout
    assert "> config   2 h      not in the script: set with -c, or by default" in said


def test_a_plan_cannot_name_a_script_in_another_folder(folder: Path) -> None:
    document = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**document, "source": "../job.sql"}))
    assert "expected text that matches" in str(ask("plan.json", LEFT).exception)


def test_a_script_alone_says_where_its_settings_are(folder: Path) -> None:
    assert answer("job.sql", LEFT)["script"] == "job.sql"


def test_a_retry_that_an_edit_took_away_is_told(folder: Path) -> None:
    retry = "'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='1 s', 'max-attempts'='2'"
    plan = compile_sql(SQL.replace("'capacity' = '50'", retry), file="job.sql")
    dump(set_value(plan, "lookup_x.retry", "off")[0], folder / "off.json")
    assert ask("off.json", "lookup_x.retry").stdout.splitlines()[:3] == [
        "lookup_x.retry is off",
        "",
        "an edit removed the retry that a hint requests",
    ]
    assert "no hint requests a retry" in ask("plan.json", "lookup_x.retry.max-attempts").stdout


def test_an_operator_alone_lists_its_settings(folder: Path) -> None:
    listed = ask("edited.json", "join_o_c").stdout.splitlines()
    assert [re.split(r" {3,}", line) for line in listed] == [
        [LEFT, "3 d", "edit · hint 1 d · config 1 h"],
        ["  reason: late payments"],
        [RIGHT, "1 h", "config"],
        ["join_o_c.max-rows-per-key.left", "0", "default"],
        ["join_o_c.max-rows-per-key.right", "0", "default"],
    ]
    assert len(ask("edited.json", "config").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("join_o_c.state.lefState.ttl", f"did you mean '{LEFT}'?"),
        ("join_o_d", "did you mean 'join_o_c'?"),
        ("join_o_c.keys", "'keys' of an operator is a fact of the query"),
        ("config.table.exec.stat.ttl", "did you mean 'config.table.exec.state.ttl'?"),
    ],
)
def test_what_is_no_setting_is_refused_with_the_nearest(folder: Path, path: str, said: str) -> None:
    assert said in str(ask("plan.json", path).exception)


def test_a_key_that_nobody_set_says_what_it_is(folder: Path) -> None:
    assert "nobody set it. The session time zone" in ask("plan.json", "config.table.local-time-zone").stdout


def test_what_the_page_on_review_shows_is_what_why_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "examples" / "flights" / "flights.sql").read_text()
    (tmp_path / "flights.sql").write_text(text)
    plan, _ = set_value(
        compile_sql(text, file="flights.sql"), "join_f_p.leftState.ttl", "3 d", reason="planes come late"
    )
    dump(plan, "edited.json")
    page = (ROOT / "docs" / "review.md").read_text()
    shown = re.search(r"\$ hintplan why (.*)\n((?:.*\n)*?)```", page)
    assert shown is not None
    assert ask(*shown[1].split()).stdout == shown[2]
