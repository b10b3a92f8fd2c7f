"""`hintplan ci`: the checks of a pull request, its comment, and the example workflow that runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ruamel.yaml import YAML

import hintplan as api
from hintplan.plans.edit.edit import set_value
from tests.plans.commands.test_diff_command import SQL as SCRIPT
from tests.plans.commands.test_diff_command import git, modelled
from tests.plans.in_process import Done, hintplan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / "examples" / "review" / "plans.yml"
TTL = "join_o_c.state.leftState.ttl"
# As the rules of the linter like it: every state expires, and none before what is upstream.
SQL = SCRIPT.replace("'o' = '1 d'", "'o' = '1 d', 'c' = '20 d'")
Run = Callable[..., Done]


@pytest.fixture
def repository(tmp_path: Path, plan_text: str) -> Path:
    """A clone on a branch of its own, with a plan written by hand and one compiled from the script beside it."""
    (tmp_path / "plans").mkdir()
    plan, _ = set_value(api.loads(plan_text), "aggregate_t.groupAggregateState.ttl", "30 d")
    api.dump(plan, tmp_path / "plans" / "revenue.json")
    (tmp_path / "plans" / "job.sql").write_text(SQL)
    (tmp_path / "package.json").write_text('{"name": "no plan", "config": {}}')
    done = hintplan("compile", "job.sql", "-o", "job.json", folder=tmp_path / "plans")
    assert done.returncode == 0, done.stderr
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "change")
    return tmp_path


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "change")


@pytest.fixture
def ci(repository: Path) -> Run:
    def run(*arguments: str, folder: Path = repository) -> Done:
        return hintplan("ci", "--base", "git:main", *arguments, folder=folder)

    return run


def edit(file: Path, path: str, value: str, reason: str | None = None) -> None:
    api.dump(set_value(api.load(file), path, value, reason=reason)[0], file)


def test_plans_that_have_not_changed_pass(ci: Run) -> None:
    done = ci()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "plans/job.json: ok · no differences · compared with main\n\n"
        "plans/revenue.json: ok · no differences · compared with main\n\n"
        "2 plans checked · none failed\n"
    )


def test_an_edit_is_shown_with_its_effect_and_fails_only_if_asked_to(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "3 d", "late payments")
    done = ci("plans/job.json")
    assert done.returncode == 0
    assert "  ~ join_o_c.leftState.ttl               1 d → 3 d     edit over hint 1 d" in done.stdout
    assert "    reason: late payments" in done.stdout
    assert ci("--fail-on", "incompatible").returncode == 0
    assert ci("--fail-on", "ttl").returncode == 1


def test_a_change_that_drops_state_fails_until_it_is_accepted(ci: Run, repository: Path) -> None:
    (repository / "plans" / "job.sql").write_text(SQL.replace("orders AS o", "(SELECT * FROM orders WHERE c > 1) AS o"))
    done = hintplan("compile", "job.sql", "-o", "job.json", "--overwrite", folder=repository / "plans")
    assert done.returncode == 0, done.stderr
    failed = ci("--comment", "comment.md")
    assert failed.returncode == 1
    assert (
        "  error: fails by its effect on running jobs, drop: some state is no longer used, and a run needs a flag to "
        "continue without it; --fail-on incompatible accepts it\n" in failed.stdout
    )
    assert failed.stdout.endswith("2 plans checked · 1 failed\n")
    assert "--fail-on incompatible accepts it" in (repository / "comment.md").read_text()
    for accepted in ("incompatible", "never"):
        done = ci("--fail-on", accepted)
        assert (done.returncode, "error" in done.stdout) == (0, False)


def test_a_base_that_is_not_there_is_answered_with_the_branch_that_is(repository: Path) -> None:
    done = hintplan("ci", folder=repository)
    assert done.returncode == 1
    assert "there is no revision 'origin/main'" in done.stderr
    assert "hint: this clone has a branch main: --base git:main\n" in done.stderr
    git(repository, "branch", "-q", "release/2")
    assert "--base git:2" not in hintplan("ci", "--base", "git:origin/2", folder=repository).stderr


READERS = (
    ["validate", "{}"],
    ["explain", "{}"],
    ["flat", "{}"],
    ["lint", "{}", "--fail-on", "never"],
    ["show", "{}", "--format", "text"],
    ["diff", "{}", "{}"],
    ["check", "{}", "--checkpoint", "new"],
    ["run", "{}", "--expect", "0123456789abcdef"],
    ["state", "{}", "--checkpoint", "new"],
)


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_every_reader_of_a_plan_takes_a_file_in_git(repository: Path, words: list[str]) -> None:
    """A plan that git alone has gives what its file gives."""
    name = "plans/revenue.json"
    expected = hintplan(*(name if word == "{}" else word for word in words), folder=repository)
    (repository / name).unlink()
    committed = hintplan(*(f"git:main:{name}" if word == "{}" else word for word in words), folder=repository)
    assert committed.returncode == expected.returncode
    assert committed.stdout.replace("git:main:", "") == expected.stdout
    assert "cannot be read" not in committed.stderr
    assert committed.stderr.replace("git:main:", "") == expected.stderr


def test_what_git_has_is_not_mended_and_is_no_checkpoint(repository: Path) -> None:
    mended = hintplan("lint", "git:main:plans/revenue.json", "--fix", folder=repository)
    assert mended.returncode == 64
    assert "cannot change commits" in mended.stderr
    alone = hintplan("state", "git:main:plans/revenue.json", folder=repository)
    assert alone.returncode == 64
    assert "Missing option '--checkpoint'" in alone.stderr


def test_the_comment_has_a_table_of_all_plans_and_what_changed(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "3 d")
    ci("--comment", "comment.md")
    comment = (repository / "comment.md").read_text()
    assert comment.startswith("<!-- hintplan ci -->\n\n### hintplan: 2 plans, 1 changed, none failed\n")
    rows = [line for line in comment.splitlines() if line.startswith("| `plans/")]
    assert rows == [
        "| `plans/job.json` | ok | ok | ok | ok | "
        "1 setting changed · no operator changed · running state stays readable | ttl |",
        "| `plans/revenue.json` | ok | ok |  | ok | no differences |  |",
    ]
    assert "#### `plans/job.json`" in comment
    assert "#### `plans/revenue.json`" not in comment
    assert "```mermaid\nflowchart LR\n" in comment


def test_a_comment_stays_below_what_a_review_page_takes(ci: Run, repository: Path) -> None:
    document = json.loads((repository / "plans" / "revenue.json").read_text())
    for number in range(40):
        file = repository / "plans" / f"p{number:02}.json"
        api.dump(api.loads(json.dumps(document)), file)
    commit(repository)
    git(repository, "branch", "-f", "main")
    for number in range(40):
        edit(repository / "plans" / f"p{number:02}.json", "name", "x" * 900)
        edit(repository / "plans" / f"p{number:02}.json", TTL, f"{number + 5} d", "y" * 900)
    ci("--comment", "comment.md")
    comment = (repository / "comment.md").read_text()
    assert 30_000 < len(comment) < 65_536
    assert "More changes do not fit" in comment


def test_another_layout_fails_with_the_command_that_mends_it(ci: Run, repository: Path) -> None:
    file = repository / "plans" / "revenue.json"
    file.write_text(json.dumps(json.loads(file.read_text())))
    done = ci()
    assert done.returncode == 1
    assert "error: line 1: not in the canonical layout (hint: hintplan fmt plans/revenue.json)" in done.stdout


def test_the_line_that_is_laid_out_otherwise_is_named_with_what_it_should_be(ci: Run, repository: Path) -> None:
    file = repository / "plans" / "revenue.json"
    text = file.read_text()
    line = next(n for n, text in enumerate(text.splitlines(), 1) if '"ttl": "30 d"' in text)
    wanted = text.splitlines()[line - 1].strip()
    file.write_text(text.replace('"ttl": "30 d"', '"ttl": "30d"'))
    assert f"  error: line {line}: not in the canonical layout, which reads {wanted} here (hint: " in ci().stdout
    file.write_text(text.rstrip("\n"))
    assert f"error: line {len(text.splitlines())}: not in the canonical layout (hint" in ci().stdout


def test_a_wrong_plan_fails_with_its_place(ci: Run, repository: Path) -> None:
    file = repository / "plans" / "revenue.json"
    file.write_text(file.read_text().replace('"ttl": "3 d"', '"ttl": "3"'))
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if '"ttl": "3"' in text)
    done = ci("--github")
    assert done.returncode == 1
    assert done.stdout.startswith(f"::error file=plans/revenue.json,line={line},col=")
    assert "has no unit" in done.stdout
    assert "no valid plan" in done.stderr


def test_what_the_rules_find_is_told_and_an_error_fails(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "0 ms")
    done = ci("--comment", "comment.md")
    assert done.returncode == 0
    assert f": {TTL}: the state never expires" in done.stdout
    assert re.search(r"\| [12] remarks? \|", (repository / "comment.md").read_text())
    assert "- **warning** HP201: line " in (repository / "comment.md").read_text()
    (repository / "hintplan.toml").write_text(
        '[[lint.ignore]]\nrule = "HP201"\nplan = "plans/job.json"\nat = "join_o_c.*"\nreason = "few keys"\n'
    )
    assert "never expires" not in ci().stdout


def test_a_script_that_was_changed_without_its_plan_fails(ci: Run, repository: Path) -> None:
    script = repository / "plans" / "job.sql"
    script.write_text(SQL.replace("'o' = '1 d'", "'o' = '2 d'"))
    done = ci()
    assert done.returncode == 1
    assert (
        "join_o_c.state.leftState.ttl: the hint has 2 d, the plan recorded 1 d (hint: compile the script again"
        in done.stdout
    )
    script.write_text(SQL.replace("JOIN", "LEFT JOIN"))
    assert "join_o_c.join-type: the script says otherwise" in ci().stdout
    script.write_text("SELECT")
    broken = ci()
    assert broken.returncode == 1
    assert "error: the script cannot be compiled: plans/job.sql:1: " in broken.stdout


def test_a_script_that_is_not_found_fails_unless_the_project_says_where_it_is(ci: Run, repository: Path) -> None:
    (repository / "sql").mkdir()
    (repository / "plans" / "job.sql").rename(repository / "sql" / "job.sql")
    lost = ci()
    assert lost.returncode == 1
    assert "error: the script of the plan, 'job.sql', was not found in plans" in lost.stdout
    assert "--sql-dir DIR, or sql-dir under [ci] in hintplan.toml" in lost.stdout
    assert ci("--sql-dir", "sql").returncode == 0
    (repository / "hintplan.toml").write_text('[ci]\nsql-dir = "sql"\n')
    assert ci().returncode == 0
    (repository / "sql" / "job.sql").write_text(SQL.replace("'o' = '1 d'", "'o' = '2 d'"))
    assert ci().returncode == 1
    (repository / "hintplan.toml").write_text('[ci]\nsql-dirs = "sql"\n')
    assert "hintplan.toml: unknown key 'ci.sql-dirs'\n  hint: did you mean 'sql-dir'?" in ci().stderr


@pytest.mark.parametrize("command", ["ci", "show", "why"])
def test_a_script_that_is_a_link_is_not_read(repository: Path, tmp_path_factory: Any, command: str) -> None:
    outside = tmp_path_factory.mktemp("outside") / "environ"
    outside.write_text("CANARY=hunter2")
    script = repository / "plans" / "job.sql"
    script.unlink()
    script.symlink_to(outside)
    arguments = {
        "ci": ["--base", "git:main", "--comment", "comment.md"],
        "show": ["plans/job.json", "-o", "page.html"],
        "why": ["plans/job.json", TTL],
    }[command]
    done = hintplan(command, *arguments, folder=repository)
    assert done.returncode == 1
    assert "this is a symbolic link" in done.stdout + done.stderr
    written = [file.read_text() for file in (repository / "comment.md", repository / "page.html") if file.exists()]
    assert "hunter2" not in "".join((done.stdout, done.stderr, *written))


def test_a_plan_that_is_a_link_fails(ci: Run, repository: Path) -> None:
    plan = repository / "plans" / "revenue.json"
    plan.rename(repository / "elsewhere.txt")
    plan.symlink_to(repository / "elsewhere.txt")
    done = ci()
    assert done.returncode == 1
    assert "plans/revenue.json: is a symbolic link" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["ci", "--base", "git:main", "--comment", "{}"],
        ["ci", "--base", "git:main", "--sarif", "{}"],
        ["ci", "--base", "git:main", "--junit", "{}"],
        ["show", "plans/job.json", "-o", "{}"],
        ["show", "plans/job.json", "--format", "svg", "-o", "{}"],
        ["compile", "plans/job.sql", "-o", "{}"],
        ["rebase", "plans/job.json", "--onto", "plans/job.json", "-o", "{}"],
        ["merge", "plans/job.json", "plans/job.json", "plans/job.json", "-o", "{}"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-2:-1]),
)
@pytest.mark.parametrize("through", ["file", "folder"])
def test_nothing_is_written_through_a_link(
    repository: Path, tmp_path_factory: Any, arguments: list[str], through: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "precious.html").write_text("precious")
    name = "out.html" if through == "file" else "out/precious.html"
    (repository / name.partition("/")[0]).symlink_to(outside / "precious.html" if through == "file" else outside)
    words = [name if word == "{}" else word for word in arguments]
    done = hintplan(*words, folder=repository)
    assert done.returncode == 1, done.stdout
    assert f"{name}: is " in done.stderr
    assert (outside / "precious.html").read_text() == "precious"
    assert [file.name for file in outside.iterdir()] == ["precious.html"]


HIDDEN: dict[str, Callable[[bytes], bytes]] = {
    "blanks": lambda data: data.replace(b"{", b"{" + b" " * 5000, 1),
    "line breaks at the end of the head": lambda data: data.replace(b"{", b"{" + b"\n" * 100_000, 1),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "UTF-16-BE without a mark": lambda data: data.decode().encode("utf-16-be"),
    "UTF-32": lambda data: data.decode().encode("utf-32"),
    "a mark of UTF-8": lambda data: b"\xef\xbb\xbf" + data,
    "escapes in keys": lambda data: data.replace(b'"format"', b'"\\u0066ormat"', 1),
    "keys in another order": lambda data: json.dumps(dict(reversed(json.loads(data).items()))).encode(),
    "a schema": lambda data: data.replace(b"{", b'{"$schema": "x",', 1),
    "no JSON": lambda data: data[:-3],
    "depth": lambda data: data.replace(b'"config"', b'"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "config"', 1),
}


@pytest.mark.sampled
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_layout_hides_a_plan(ci: Run, repository: Path, hidden: str, is_new: bool) -> None:
    name = "new.json" if is_new else "revenue.json"
    data = (repository / "plans" / "revenue.json").read_bytes()
    (repository / "plans" / name).write_bytes(HIDDEN[hidden](data))
    commit(repository)
    done = ci()
    assert done.returncode == 1, done.stdout
    assert f"plans/{name}: " in done.stdout


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 1}'])
def test_a_plan_that_becomes_something_else_fails(ci: Run, repository: Path, text: str) -> None:
    (repository / "plans" / "revenue.json").write_text(text)
    commit(repository)
    done = ci()
    assert done.returncode == 1, done.stdout
    assert "plans/revenue.json: no valid plan\n  error: was a plan in the base and is none now" in done.stdout


def test_a_plan_that_no_longer_names_its_script_fails(ci: Run, repository: Path) -> None:
    file = repository / "plans" / "job.json"
    (repository / "plans" / "job.sql").unlink()
    text = file.read_text()
    file.write_text(text.replace('  "source": "job.sql",\n', ""))
    assert file.read_text() != text
    done = ci()
    assert done.returncode == 1, done.stdout
    assert "the plan of the base names its script, 'job.sql'; this one names none" in done.stdout
    compared = hintplan("diff", "git:main:plans/job.json", "plans/job.json", "--exit-code", folder=repository)
    assert compared.returncode == 2
    assert "source" in compared.stdout


@pytest.mark.parametrize("is_plan", [True, False])
@pytest.mark.parametrize(
    "command",
    [["ci", "--base", "git:main"], ["validate"], ["fmt"], ["fmt", "--check"], ["lint"], ["explain"]],
    ids=" ".join,
)
def test_a_file_name_with_line_breaks_forges_no_line(repository: Path, command: list[str], is_plan: bool) -> None:
    name = "x\nforged.json: ok.json"
    data = (repository / "plans" / "revenue.json").read_bytes()
    (repository / name).write_bytes(
        data.replace(b"  ", b"   ") if is_plan else b'{"format": 1, "mode": 2, "config": 3}'
    )
    commit(repository)
    done = hintplan(*command, *([] if command[0] == "ci" else [name]), folder=repository)
    printed = done.stdout + done.stderr
    assert not [line for line in printed.splitlines() if line.startswith("forged.json")]
    assert "x\\nforged.json: ok.json" in printed or (command[0] in ("lint", "explain") and is_plan)


def test_an_edited_plan_is_still_in_step_with_its_script(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "3 d")
    edit(repository / "plans" / "job.json", "config.table.exec.state.ttl", "2 h")
    edit(repository / "plans" / "job.json", "name", "other")
    assert ci().returncode == 0


def test_plans_that_come_and_go_are_named(ci: Run, repository: Path) -> None:
    (repository / "plans" / "new.json").write_bytes((repository / "plans" / "revenue.json").read_bytes())
    git(repository, "rm", "-q", "plans/job.json")
    commit(repository)
    assert ci().stdout == (
        "plans/new.json: ok · new, 6 operators · compared with main\n\n"
        "plans/revenue.json: ok · no differences · compared with main\n\n"
        "plans/job.json: removed\n\n"
        "3 plans checked · none failed\n"
    )


def test_what_others_merged_since_is_no_change_of_this_branch(ci: Run, repository: Path) -> None:
    git(repository, "checkout", "-q", "main")
    edit(repository / "plans" / "revenue.json", TTL, "9 d")
    commit(repository)
    git(repository, "checkout", "-q", "change")
    assert "plans/revenue.json: ok · no differences" in ci().stdout


def test_it_runs_in_any_folder_of_the_repository(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "3 d")
    assert "job.json: ok · 1 setting changed" in ci(folder=repository / "plans").stdout
    assert "../plans/job.json: ok · 1 setting changed" in ci("../plans/job.json", folder=repository / "plans").stdout


def test_sarif_and_junit_have_all_remarks(ci: Run, repository: Path) -> None:
    edit(repository / "plans" / "job.json", TTL, "3 d")
    file = repository / "plans" / "revenue.json"
    file.write_text(json.dumps(json.loads(file.read_text())))
    ci("--sarif", "plans.sarif", "--junit", "plans.xml")
    run = modelled((repository / "plans.sarif").read_text()).runs[0]
    assert [result.rule_id for result in run.results or []] == ["diff-ttl", "fmt"]
    root = ElementTree.parse(repository / "plans.xml").getroot()
    assert [case.get("classname") for case in root.iter("testcase")] == ["hintplan.diff-ttl", "hintplan.fmt"]
    assert len(list(root.iter("failure"))) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--base", "git:nowhere"), "there is no revision 'nowhere'"),
        (("--base", "git:main:plans/job.json"), "is no revision"),
        (("--base", "--all"), "is no revision"),
        (("plans/nothing.json",), "cannot be read"),
    ],
)
def test_what_is_wrong_with_the_call_is_said(ci: Run, arguments: tuple[str, ...], said: str) -> None:
    done = ci(*arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "internal error" not in done.stderr


def test_a_folder_without_plans_is_told(ci: Run, repository: Path) -> None:
    (repository / "empty").mkdir()
    done = ci(folder=repository / "empty")
    assert done.returncode == 1
    assert "git tracks no plan here" in done.stderr


def workflow() -> dict[str, Any]:
    loaded = YAML(typ="safe", pure=True).load(WORKFLOW.read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_the_example_workflow_is_one_to_the_schema_of_workflows() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_the_steps_of_the_example_workflow_do_what_they_say(repository: Path, tmp_path_factory: Any) -> None:
    """Run as GitHub would: in a clone on the branch, with bash, each step with its own variables."""
    edit(repository / "plans" / "job.json", TTL, "3 d")
    commit(repository)
    clone = tmp_path_factory.mktemp("runner") / "work"
    git(repository, "clone", "-q", "-b", "change", str(repository), str(clone))
    tools = clone.parent / "bin"
    tools.mkdir()
    for name, text in {
        "hintplan": f'exec {sys.executable} -m hintplan "$@"',
        "gh": f'printf "%s\\n" "$@" > {clone.parent / "gh"}',
        "pip": "exit 0",
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    values = {
        "${{ github.base_ref }}": "main",
        "${{ contains(github.event.pull_request.labels.*.name, 'drops state') && 'incompatible' || 'drop' }}": "drop",
        "${{ github.token }}": "t",
        "${{ github.event.pull_request.number }}": "7",
    }
    summary = clone.parent / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    printed = ""
    (job,) = workflow()["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step]
    assert [step["name"] for step in steps] == ["Install", "Check", "Summary", "Comment"]
    for step in steps:
        given = {name: values[value] for name, value in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=clone, env={**environment, **given}, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (step["name"], done.stderr)
        printed += done.stdout
    assert printed.startswith("::notice file=plans/job.json,line=")
    assert summary.read_text() == (clone / "comment.md").read_text()
    said = (clone.parent / "gh").read_text().splitlines()
    assert said == ["pr", "comment", "7", "--edit-last", "--create-if-none", "--body-file", "comment.md"]
    modelled((clone / "plans.sarif").read_text())
    assert ElementTree.parse(clone / "plans.xml").getroot().tag == "testsuites"
