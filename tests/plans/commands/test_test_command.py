"""``hintplan test``: its report, exit codes, JSON, JUnit and updates; ``ci`` and ``init --test``. Without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import Failure, JUnitXml

from tests.plans.commands.test_diff_command import git
from tests.plans.in_process import Done, hintplan

FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = "
SQL = f"""\
SET 'table.exec.state.ttl' = '3 h';
CREATE TABLE orders (id BIGINT, total DECIMAL(10, 2)) WITH ({FILES}'orders');
CREATE TABLE payments (order_id BIGINT, `method` STRING) WITH ({FILES}'payments');
CREATE TABLE paid (id BIGINT, total DECIMAL(10, 2), `method` STRING) WITH ('connector' = 'print');
INSERT INTO paid SELECT o.id, o.total, p.`method` FROM orders AS o JOIN payments AS p ON o.id = p.order_id;
"""
TESTS = """\
plan: paid.json
tests:
  in time:
    - at: 2026-03-01 10:00
      orders: [{id: 1, total: 20.50}]
    - after: 2 h 59 min
      payments: [{order_id: 1, method: card}]
      expect: {paid: [{id: 1, total: 20.50, method: card}]}  # a comment
  too late:
    - at: 2026-03-01 10:00
      orders: [{id: 1, total: 20.50}]
    - after: 3 h 1 min
      payments: [{order_id: 1, method: card}]
      expect: {paid: []}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "paid.sql").write_text(SQL)
    (tmp_path / "paid.test.yaml").write_text(TESTS)
    assert hintplan("compile", "paid.sql", "-o", "paid.json", folder=tmp_path).returncode == 0
    return tmp_path


def run(folder: Path, *words: str) -> Done:
    return hintplan("test", *words, folder=folder)


def lengthened(folder: Path) -> None:
    assert hintplan("set", "paid.json", "join_o_p.leftState.ttl=4 h", "--reason", "a", folder=folder).returncode == 0


def test_tests_beneath_this_folder_run(folder: Path) -> None:
    done = run(folder, "--slices", "2")
    assert done.returncode == 0, done.stdout
    assert re.sub(r"\d+ ms|\d+\.\d s", "T", done.stdout) == (
        "paid.test.yaml\n  ok      in time  (T)\n  ok      too late  (T)\n2 tests · none failed · T\n"
    )
    assert done.stderr == ""


def test_an_edited_ttl_fails_the_test_of_its_rule(folder: Path) -> None:
    lengthened(folder)
    done = run(folder)
    assert done.returncode == 1
    assert "ok      in time" in done.stdout
    assert "failed  too late" in done.stdout
    assert "paid.test.yaml:14:16: 'paid' has other rows than expected" in done.stdout
    assert run(folder, "-k", "IN TIME").returncode == 0


def test_a_name_without_tests_and_a_folder_without_files_are_reported(folder: Path) -> None:
    done = run(folder, "-k", "nothing")
    assert (done.returncode, done.stderr) == (
        1, "no test has 'nothing' in its name\n  hint: leave out -k to run all tests\n"
    )  # fmt: skip
    (folder / "empty").mkdir()
    assert "has no file of tests" in run(folder, "empty").stderr
    assert run(folder, "--slices", "0").returncode == 64


def test_a_script_is_compiled_with_its_configuration(folder: Path) -> None:
    (folder / "paid.json").unlink()
    text = TESTS.replace("plan: paid.json", "sql: paid.sql\nconfig: {table.exec.state.ttl: 4 h}")
    (folder / "paid.test.yaml").write_text(text)
    done = run(folder)
    assert "failed  too late" in done.stdout
    assert "ok      in time" in done.stdout


def test_a_broken_file_does_not_stop_the_others(folder: Path) -> None:
    (folder / "a.test.yaml").write_text("plan: none.json\ntests: {a: [{at: 10:00}]}\n")
    done = run(folder)
    assert done.returncode == 1
    assert "a.test.yaml:1:7: there is no file 'none.json' in this folder" in done.stdout
    assert "2 tests · none failed · 1 file could not be run" in done.stdout


def test_json_has_every_test_and_the_rows_that_differ(folder: Path) -> None:
    lengthened(folder)
    report = json.loads(run(folder, "--json").stdout)
    assert report["failed"]
    first, second = report["files"][0]["tests"]
    assert (first["name"], first["passed"], first["failures"]) == ("in time", True, [])
    (failure,) = second["failures"]
    assert (failure["file"], failure["line"], failure["missing"]) == ("paid.test.yaml", 14, [])
    assert failure["extra"] == [{"id": 1, "total": "20.50", "method": "card"}]


def test_junit_has_what_the_schema_of_build_servers_allows(folder: Path) -> None:
    lengthened(folder)
    (folder / "broken.test.yaml").write_text("plan: \x07\n")
    assert run(folder, "--junit", "tests.xml").returncode == 1
    read = JUnitXml.fromfile(str(folder / "tests.xml"))
    assert [(suite.name, suite.tests, suite.failures, suite.errors) for suite in read] == [
        ("broken.test.yaml", 1, 0, 1),
        ("paid.test.yaml", 2, 1, 0),
    ]
    results = {case.name: case.result for suite in read for case in suite}
    assert results["in time"] == []
    assert isinstance(results["too late"][0], Failure)
    # The attributes of Jenkins' junit-10.xsd.
    root = ElementTree.parse(folder / "tests.xml").getroot()
    for suite in root:
        assert {"name", "tests", "failures", "errors"} <= suite.attrib.keys() <= {*suite.attrib, "file", "time"}
        assert re.fullmatch(r"\d{1,3}\.\d*", suite.attrib["time"])
        for case in suite:
            assert case.attrib.keys() == {"name", "classname", "time"}
            assert all(part.tag in ("failure", "error") and part.attrib.keys() == {"type", "message"} for part in case)


def test_an_update_writes_what_came_and_nothing_else(folder: Path) -> None:
    lengthened(folder)
    done = run(folder, "--update")
    assert (done.returncode, done.stderr) == (0, "paid.test.yaml: updated; review it with git diff\n")
    after = (folder / "paid.test.yaml").read_text()
    assert after == TESTS.replace("{paid: []}", "{paid: [{id: 1, total: 20.50, method: card}]}")
    assert run(folder).returncode == 0


def test_a_first_test_has_a_row_for_each_source(folder: Path) -> None:
    (folder / "paid.test.yaml").unlink()
    done = hintplan("init", "--test", "paid.json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "paid.test.yaml").read_text() == (
        "plan: paid.json\n"
        "tests:\n"
        "  a row of each source:\n"
        "    - at: 2026-03-01 10:00\n"
        "      orders: [{id: 1, total: 1}]\n"
        "      payments: [{order_id: 1, method: a}]\n"
        "      expect:\n"
        "        paid: []\n"
    )
    assert run(folder, "--update").returncode == 0
    assert "paid: [{id: 1, total: 1.00, method: a}]" in (folder / "paid.test.yaml").read_text()
    assert "is there already" in hintplan("init", "--test", "paid.json", folder=folder).stderr


def test_ci_runs_the_tests_of_the_plans_that_it_checks(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a")
    done = hintplan("ci", "--base", "git:main", "--comment", "c.md", folder=folder)
    assert done.returncode == 0, done.stdout
    assert "| 2 tests |" in (folder / "c.md").read_text()
    lengthened(folder)
    done = hintplan("ci", "--base", "git:main", "--junit", "ci.xml", folder=folder)
    assert done.returncode == 1
    assert "error: 'paid' has other rows than expected" in done.stdout.replace("line 14: ", "")
    assert 'classname="hintplan.test"' in (folder / "ci.xml").read_text()
    assert hintplan("ci", "--base", "git:main", "--no-tests", folder=folder).returncode == 0
