"""`hintplan diff` at the command line: where plans come from, exit codes, and the forms that other tools read."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic import BaseModel
from sarif_pydantic import Sarif

import hintplan as api
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.annotations import DIFF_RULES, Remark
from hintplan.plans.review.diff_html import report_html
from hintplan.plans.review.github import github
from hintplan.plans.review.junit import junit
from hintplan.plans.review.sarif import sarif
from tests.plans.in_process import Done
from tests.plans.in_process import hintplan as command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
Run = Callable[..., Done]
TTL = "join_o_c.state.leftState.ttl"

SQL = """CREATE TABLE orders (id BIGINT, c BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE customers (id BIGINT, n STRING) WITH ('connector' = 'datagen');
CREATE TABLE out1 (n STRING) WITH ('connector' = 'print');
INSERT INTO out1 SELECT /*+ STATE_TTL('o' = '1 d') */ c.n FROM orders AS o JOIN customers AS c ON o.c = c.id;
"""


def git(folder: Path, *arguments: str) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *names, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def repository(tmp_path: Path, plan_text: str) -> Path:
    """A repository whose main has a plan and its script, and a work tree with an edited plan."""
    (tmp_path / "plans").mkdir()
    file = tmp_path / "plans" / "orders.json"
    file.write_text(plan_text)
    (tmp_path / "job.sql").write_text(SQL)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    api.dump(set_value(api.loads(plan_text), TTL, "5 d", reason="late payments")[0], file)
    return tmp_path


@pytest.fixture
def hintplan(repository: Path) -> Run:
    def run(*arguments: str, stdin: str | None = None, folder: Path = repository) -> Done:
        return command(*arguments, folder=folder, stdin=stdin)

    return run


def test_a_plan_is_compared_with_one_at_a_revision_and_in_the_index(hintplan: Run, repository: Path) -> None:
    expected = (
        "~ join_o_c.leftState.ttl               3 d → 5 d     edit over hint 1 d     "
        "from the next start, for existing rows too\n"
        "    reason: late payments\n"
        "1 setting changed · no operator changed · running state stays readable\n"
    )
    assert hintplan("diff", "git:main:plans/orders.json", "plans/orders.json").stdout == expected
    assert hintplan("diff", "git:HEAD:./orders.json", "orders.json", folder=repository / "plans").stdout == expected
    assert hintplan("diff", "git::plans/orders.json", "plans/orders.json").stdout == expected
    git(repository, "add", ".")
    assert hintplan("diff", "git::plans/orders.json", "plans/orders.json").stdout == "no differences\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("git:mian:plans/orders.json", "there is no revision 'mian'"),
        ("git:main:plans/order.json", "did you mean 'plans/orders.json'?"),
        ("git::plans/nothing.json", "the index has no file 'plans/nothing.json'"),
        ("git:main:plans", "revision 'main' has no file 'plans'"),
        ("git:main", "names no file in git"),
        ("git:--output=x:plans/orders.json", "names no file in git"),
        ("git:main:/etc/passwd", "names no file in git"),
        ("git:main:job.txt", "has no file"),
    ],
)
def test_what_git_does_not_have_is_named(hintplan: Run, repository: Path, name: str, said: str) -> None:
    done = hintplan("diff", name, "plans/orders.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (repository / "x").exists()


def test_outside_a_repository_git_paths_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    outside = {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = command("diff", "git:main:a.json", "b.json", folder=folder, environment=outside)
    assert done.returncode == 1
    assert "this is no git repository" in done.stderr


def test_a_script_is_compiled_and_compared_with_its_edited_plan(hintplan: Run, repository: Path) -> None:
    assert hintplan("compile", "job.sql", "-o", "job.json").returncode == 0
    assert hintplan("diff", "job.sql", "job.json", "--exit-code").returncode == 0
    hintplan("set", "job.json", f"{TTL}=3 d")
    done = hintplan("diff", "git:main:job.sql", "job.json")
    assert done.stdout.startswith("~ join_o_c.leftState.ttl               1 d → 3 d     edit over hint 1 d")
    other = hintplan("diff", "job.sql", "job.json", "-c", "table.exec.state.ttl=2 h", "--concise")
    assert "config.table.exec.state.ttl" in other.stdout
    assert hintplan("diff", "a.json", "b.json", "-c", "x=y").returncode == 64


def test_what_is_wrong_with_a_script_is_said_with_its_place(hintplan: Run, repository: Path) -> None:
    (repository / "job.sql").write_text(SQL.replace("AS o JOIN", "AS o JION"))
    done = hintplan("diff", "job.sql", "plans/orders.json")
    assert done.returncode == 1
    assert done.stderr.startswith("job.sql:4:")


def test_the_exit_code_tells_differences_and_effects_apart(hintplan: Run) -> None:
    sides = ("git:main:plans/orders.json", "plans/orders.json")
    assert hintplan("diff", *sides).returncode == 0
    assert hintplan("diff", *sides, "--exit-code").returncode == 2
    assert hintplan("diff", *sides, "--fail-on", "incompatible").returncode == 0
    assert hintplan("diff", *sides, "--fail-on", "rebuild").returncode == 0
    for level in ("ttl", "restart", "any"):
        assert hintplan("diff", *sides, "--fail-on", level).returncode == 1
    assert hintplan("diff", sides[1], sides[1], "--fail-on", "any", "--exit-code").returncode == 0


def test_annotations_point_at_the_line_of_the_newer_file(hintplan: Run, repository: Path) -> None:
    done = hintplan("diff", "git:main:plans/orders.json", "plans/orders.json", "--format", "github")
    (command,) = done.stdout.splitlines()
    found = re.fullmatch(
        r"::notice file=plans/orders.json,line=(\d+),col=(\d+),title=hintplan%3A diff-ttl::(.*)", command
    )
    assert found is not None
    line = (repository / "plans" / "orders.json").read_text().splitlines()[int(found[1]) - 1]
    assert line[int(found[2]) - 1 :].startswith('"5 d"')
    assert found[3] == (
        "join_o_c.leftState.ttl: 3 d → 5 d · edit over hint 1 d · "
        "from the next start, for existing rows too · reason: late payments"
    )


def test_annotations_of_a_script_point_at_its_hint(hintplan: Run, repository: Path) -> None:
    (repository / "job.sql").write_text(SQL.replace("'1 d'", "'2 d'"))
    done = hintplan("diff", "git:main:job.sql", "job.sql", "--format", "github")
    column = SQL.splitlines()[3].index("'o' =") + 1
    assert done.stdout.startswith(
        f"::notice file=job.sql,line=4,col={column},title=hintplan%3A diff-ttl::join_o_c.leftState.ttl: 1 d → 2 d"
    )


@pytest.mark.parametrize("layout", ["sarif", "junit", "html", "json", "markdown"])
def test_every_form_is_whole_also_without_differences(hintplan: Run, layout: str) -> None:
    for sides in (("git:main:plans/orders.json", "plans/orders.json"), ("plans/orders.json", "plans/orders.json")):
        done = hintplan("diff", *sides, "--format", layout, "--fail-on", "incompatible")
        assert done.returncode == 0
        if layout == "sarif":
            results = modelled(done.stdout).runs[0].results or []
            assert [result.rule_id for result in results] == (["diff-ttl"] if sides[0] != sides[1] else [])
        elif layout == "junit":
            root = ElementTree.fromstring(done.stdout.encode())
            assert root.find("testsuite/testcase") is not None
            assert root.find("testsuite/testcase/failure") is None
        elif layout == "html":
            assert text_of(done.stdout)
        elif layout == "json":
            assert json.loads(done.stdout)["different"] == (sides[0] != sides[1])
        else:
            assert done.stdout.strip()


def modelled(text: str) -> Sarif:
    """The log as a model generated from the standard's schema has it; every key must be one of the standard's."""
    log = Sarif.model_validate_json(text)

    def check(value: object) -> None:
        if isinstance(value, BaseModel):
            # The model has not all: columnKind is a property of a run (SARIF 2.1.0, 3.14.17).
            assert not (value.model_extra or {}).keys() - {"$schema", "columnKind"}
            for name in type(value).model_fields:
                check(getattr(value, name))
        elif isinstance(value, list):
            for child in value:
                check(child)

    check(log)
    return log


EVIL = "a\x1b[2K\u202e\n::error::x%0A<script>alert(1)</script>&lt; ]]> [link](http://e) {0} \"'"


def test_a_remark_cannot_break_out_of_a_workflow_command() -> None:
    text = github([Remark(rule="diff-ttl", level="note", message=EVIL, file=EVIL, line=1)])
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    head, _, message = text.removeprefix("::").partition("::")
    assert "%250A" in message
    assert message.count("%0A") == 1
    assert "\n" not in message
    properties = head.partition(" ")[2].split(",")
    assert [p.partition("=")[0] for p in properties] == ["file", "line", "title"]
    assert ":" not in head


def test_sarif_is_what_its_model_takes_and_says_messages_as_text() -> None:
    remarks = [
        Remark(rule="diff-ttl", level="error", message=EVIL, subject="a", file="pl ans/ä#?.json", line=3, column=5),
        Remark(rule="diff-none", level="note", message="b", file="/abs/p.json"),
        Remark(rule="diff-ttl", level="warning", message="c"),
    ]
    document = sarif(remarks, DIFF_RULES)
    run = modelled(json.dumps(document)).runs[0]
    assert run.results is not None
    places = [result.locations for result in run.results]
    assert places[0] is not None
    assert places[0][0].physical_location.artifact_location.uri == "pl%20ans/%C3%A4%23%3F.json"
    assert places[0][0].physical_location.region.start_line == 3
    assert document["runs"][0]["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "file:///abs/p.json"
    )
    assert [result.rule_index for result in run.results] == [0, 1, 0]
    said = document["runs"][0]["results"][0]["message"]["text"]
    # SARIF 3.11.6: brackets are links, 3.11.5: braces are placeholders.
    assert re.search(r"(?<!\\)\[|(?<!\{)\{(?!\{)", said) is None
    prints = [result["partialFingerprints"]["hintplan/v1"] for result in document["runs"][0]["results"]]
    assert len(set(prints)) == 3


def test_junit_is_xml_whatever_is_in_a_plan() -> None:
    remarks = [
        Remark(
            rule="diff-incompatible", level="error", message=EVIL + "\x00\ufffe", subject=EVIL, file="p.json", line=3
        ),
        Remark(rule="diff-ttl", level="note", message="b", subject="x"),
    ]
    root = ElementTree.fromstring(junit(remarks, suite="diff").encode())
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = suite.findall("testcase")
    assert [case.get("classname") for case in cases] == ["hintplan.diff-incompatible", "hintplan.diff-ttl"]
    failure = cases[0].find("failure")
    assert failure is not None
    assert "<script>alert(1)</script>" in str(failure.get("message"))


def text_of(page: str) -> list[tuple[str, str]]:
    """The tags of a page that were opened, with the text that follows each; every tag must be closed again."""
    found: list[tuple[str, str]] = []
    stack: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
            found.append((tag, ""))
            if tag != "meta":
                stack.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert stack.pop() == tag

        def handle_data(self, data: str) -> None:
            if found:
                found.append((found.pop()[0], data))

    Reader().feed(page)
    assert stack == []
    return found


def test_the_page_shows_what_is_in_a_plan_as_text(plan: Plan) -> None:
    edited, _ = set_value(plan, TTL, "5 d", reason=EVIL.replace("\n", " "))
    changes = compare_plans(plan, edited)
    page = report_html(changes, title=EVIL)
    tags = {tag for tag, _ in text_of(page)}
    assert "script" not in tags
    assert "img" not in tags
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;lt;" in page
    assert "default-src 'none'" in page
    assert "3 d" in page
