"""`hintplan show` as a command: formats, files, scripts, and what it refuses."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import hintplan
from hintplan.plans.commands.show import show_command
from hintplan.plans.errors import HintplanError
from hintplan.plans.show.explain import plan_tree

SQL = """\
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE orders (id BIGINT, customer BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE customers (id BIGINT, country STRING) WITH ('connector' = 'datagen');
CREATE TABLE report (id BIGINT, country STRING) WITH ('connector' = 'print');
INSERT INTO report SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, c.country
FROM orders AS o JOIN customers AS c ON o.customer = c.id;
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(show_command, [str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def plan_file(plan_text: str, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_text, encoding="utf-8")
    return path


def test_without_a_file_and_a_format_a_tree_is_shown(plan_file: Path, plan: hintplan.Plan) -> None:
    assert run(plan_file).output == plan_tree(plan) + "\n"


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("plan.html", "<!doctype html>"),
        ("plan.svg", "<svg xmlns="),
        ("plan.mmd", "flowchart LR"),
        ("plan.gv", 'digraph "revenue_by_country" {'),
        ("plan.txt", "revenue_by_country · streaming"),
    ],
)
def test_the_ending_of_the_file_chooses_the_format(plan_file: Path, tmp_path: Path, name: str, start: str) -> None:
    result = run(plan_file, "-o", tmp_path / name)
    assert (result.exception, result.output) == (None, "")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_formats_go_to_standard_output_without_a_file(plan_file: Path) -> None:
    assert run(plan_file, "--format", "mermaid").output.startswith("flowchart LR\n  n0[")
    assert ET.fromstring(run(plan_file, "--format", "svg").output).tag.endswith("svg")
    assert run(plan_file, "--format", "html").output.rstrip().endswith("</html>")


def test_a_plan_against_an_older_one_says_what_changed(plan_file: Path, patched: object, tmp_path: Path) -> None:
    assert callable(patched)
    older = tmp_path / "older.json"
    older.write_text(patched(('"ttl": "3 d"', '"ttl": "2 d"')), encoding="utf-8")
    assert "2 d → 3 d" in run(plan_file, "--diff", older, "--format", "dot").output


def test_around_shows_neighbours_and_refuses_unknown_operators(plan_file: Path) -> None:
    text = run(plan_file, "--format", "mermaid", "--around", "scan_customers", "--hops", "1").output
    assert ("join_o_c" in text, "calc_o" in text) == (True, False)
    wrong = run(plan_file, "--format", "svg", "--around", "join_c_o").exception
    assert isinstance(wrong, HintplanError)
    assert "there is no operator 'join_c_o'\n  hint: did you mean 'join_o_c'?" in str(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "plan.pdf"], "'plan.pdf' has no known suffix"),
        (["--diff", "other.json"], "a tree shows one whole plan"),
        (["--format", "svg", "--sql", "job.sql"], "only a page shows the script"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(plan_file: Path, arguments: list[str], message: str) -> None:
    error = run(plan_file, *arguments).exception
    assert isinstance(error, click.UsageError)
    assert message in error.format_message()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A script with its plan beside it; the path of the plan."""
    from hintplan import compile_sql

    (tmp_path / "job.sql").write_text(SQL)
    hintplan.dump(compile_sql(SQL, file="job.sql"), tmp_path / "job.json")
    return tmp_path / "job.json"


def lines_linked(page: str) -> list[int]:
    import json
    import re

    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert data is not None
    return sorted({line for line, *_ in json.loads(data[1])["lines"]})


def test_the_script_beside_the_plan_is_shown_with_its_lines_linked(job: Path) -> None:
    page = run(job, "--format", "html").output
    assert "job.sql" in page
    assert lines_linked(page) == [1, 5]


def test_lines_that_ask_for_something_else_by_now_are_not_linked(job: Path) -> None:
    job.with_suffix(".sql").write_text(SQL.replace("'1 d'", "'2 d'"))
    assert lines_linked(run(job, "--format", "html").output) == [1]


def test_a_script_that_does_not_compile_is_shown_and_said(job: Path) -> None:
    job.with_suffix(".sql").write_text(SQL.replace("country\nFROM", "land\nFROM"))
    result = CliRunner().invoke(show_command, [str(job), "-o", str(job.with_suffix(".html"))], standalone_mode=False)
    assert result.exception is None
    assert "does not compile, so its lines are not linked" in result.output
    assert lines_linked(job.with_suffix(".html").read_text()) == []


def test_a_script_that_was_asked_for_must_be_there(job: Path, tmp_path: Path) -> None:
    error = run(job, "--format", "html", "--sql", tmp_path / "none.sql").exception
    assert isinstance(error, HintplanError)
    assert "none.sql: cannot be read" in str(error)


def test_a_plan_whose_meaning_is_wrong_is_shown_all_the_same(plan_file: Path, patched: object) -> None:
    assert callable(patched)
    plan_file.write_text(patched(('"inputs": ["join_o_c"]', '"inputs": ["join_o_x"]')), encoding="utf-8")
    for layout in ("html", "svg", "mermaid", "dot", "tree"):
        result = run(plan_file, "--format", layout, "--allow-fact-edits")
        assert (layout, result.exception) == (layout, None)


def test_secrets_that_a_plan_should_not_hold_are_not_shown(plan_file: Path, patched: object) -> None:
    assert callable(patched)
    secret = '"connector": "jdbc", "password": "hunter2"'
    plan_file.write_text(patched(('"connector": "print"', secret)), encoding="utf-8")
    for layout in ("html", "svg", "mermaid", "dot"):
        result = run(plan_file, "--format", layout, "--allow-fact-edits")
        assert (layout, result.exception, "hunter2" in result.output) == (layout, None, False)


def test_a_script_is_compiled_and_shown_with_its_lines(job: Path) -> None:
    page = run(job.with_suffix(".sql"), "--format", "html").output
    assert lines_linked(page) == [1, 5]
    assert '"file":"plan.json"' in page  # a script is not what commands on the page can edit


def test_a_plan_is_shown_against_a_script(job: Path) -> None:
    job.with_suffix(".sql").write_text(SQL.replace("'1 d'", "'2 d'"))
    assert "2 d → 1 d" in run(job, "--diff", job.with_suffix(".sql"), "--format", "dot").output
