"""The command line, where it matters as a process: exit codes, streams, and what it does not import."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from hintplan.plans.commands.root import COMMANDS
from hintplan.plans.lazy import load
from tests.plans.in_process import Done, hintplan

pytestmark = pytest.mark.slow

Run = Callable[..., Done]


@pytest.fixture
def run() -> Run:
    return hintplan


@pytest.fixture
def process() -> Run:
    def start(*arguments: str | Path, stdin: str | None = None) -> Done:
        command = [sys.executable, "-m", "hintplan", *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        return Done(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    return start


@pytest.fixture
def plan_file(plan_text: str, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_text, encoding="utf-8")
    return path


def test_validate_says_that_a_plan_is_valid(process: Run, plan_file: Path) -> None:
    done = process("validate", plan_file)
    assert (done.returncode, done.stderr) == (0, "")
    digest = hashlib.sha256(plan_file.read_bytes()).hexdigest()[:16]
    assert done.stdout == f"{plan_file}: valid · 6 operators, 2 with state · digest {digest}\n"


def test_a_pattern_sets_all_that_it_matches_and_nothing_else(run: Run, plan_file: Path) -> None:
    before = json.loads(plan_file.read_text())
    assert run("set", plan_file, "*State.ttl=3 d", "--reason", "as agreed").returncode == 0
    after = json.loads(plan_file.read_text())
    ttls = {(o["id"], s["name"]): s["ttl"] for o in after["operators"] for s in o.get("state", [])}
    # A join and an aggregate: left, right and groupAggregateState.
    assert sorted(name for _, name in ttls) == ["groupAggregateState", "leftState", "rightState"]
    assert set(ttls.values()) == {"3 d"}
    assert len(after["reasons"]) == 3
    assert run("set", plan_file, "*.leftState.ttl=4 d").returncode == 0
    assert plan_file.read_text().count('"ttl": "4 d"') == 1
    for operator in before["operators"]:
        operator.pop("state", None)
    for operator in (found := json.loads(plan_file.read_text()))["operators"]:
        operator.pop("state", None)
    assert found["operators"] == before["operators"]


def test_a_pattern_that_matches_nothing_is_refused(run: Run, plan_file: Path) -> None:
    before = plan_file.read_text()
    done = run("set", plan_file, "*.leftStat.ttl=3 d")
    assert done.returncode == 1
    assert "no setting matches '*.leftStat.ttl'\n  hint: did you mean 'leftState.ttl'?" in done.stderr
    assert plan_file.read_text() == before


def test_validate_reads_stdin(process: Run, plan_text: str) -> None:
    assert process("validate", "-", stdin=plan_text).returncode == 0
    done = process("validate", "-", stdin=plan_text.replace('"3 d"', '"3"'))
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>:78:65: operators.join_o_c.state.leftState.ttl: bad duration '3'")


def test_validate_reports_all_files_and_prints_json_on_request(run: Run, plan_file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(plan_file.read_text().replace('"3 d"', "3"))
    done = run("validate", "--json", plan_file, wrong)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["valid"] is False
    assert report["diagnostics"] == [
        {
            "file": str(wrong),
            "line": 78,
            "column": 65,
            "path": "operators.join_o_c.state.leftState.ttl",
            "message": "expected a string, found the number 3",
            "hint": 'write a number with its unit, in double quotes, such as "3 ms"',
        }
    ]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["validate"], ["diff", "one.json"], ["validate", "--nonsense", "x"], ["--debug"]]
)
def test_wrong_usage_exits_with_64(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert "Usage: hintplan" in done.stderr
    assert "--help" in done.stderr


def test_alone_it_prints_its_help_with_each_command_once(run: Run) -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help").stdout
    listed = re.findall(r"^  ([a-z-]+)  +[A-Z]", done.stdout.partition("Compile and read:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert done.stdout.count("  $ hintplan ") == 5


def test_the_help_of_run_lists_each_option_once_in_sections(run: Run) -> None:
    run_command, said = load(COMMANDS["run"].target), run("run", "--help").stdout
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+)", said, re.MULTILINE)
    options = [option.opts[0] for option in run_command.params if isinstance(option, click.Option)]
    assert sorted(listed) == sorted([*options, "--help"])
    assert said.count("  $ hintplan run ") == len(run_command.sections)


@pytest.mark.parametrize("words", [["validate"], ["explain"], ["set", "a=1"], ["flat"], ["fmt"]])
def test_a_script_where_a_plan_is_wanted_is_called_so(run: Run, tmp_path: Path, words: list[str]) -> None:
    script = tmp_path / "paid.sql"
    script.write_text("CREATE TABLE t (a INT);")
    done = run(words[0], script, *words[1:])
    assert done.returncode == 1
    assert done.stderr.startswith(f"{script}: this is a SQL script, and no plan\n  hint: compile it: hintplan compile")
    assert script.read_text() == "CREATE TABLE t (a INT);"


def test_set_without_an_equals_sign_is_wrong_usage(run: Run, plan_file: Path) -> None:
    done = run("set", plan_file, "join_o_c.leftState.ttl")
    assert done.returncode == 64
    assert "expected PATH=VALUE, found 'join_o_c.leftState.ttl'" in done.stderr


def test_a_missing_file_is_one_line_and_exit_1(run: Run) -> None:
    done = run("explain", "none.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "none.json: cannot be read: No such file or directory\n"


def test_debug_shows_the_traceback_before_or_after_the_command(process: Run) -> None:
    for arguments in (["--debug", "explain", "none.json"], ["explain", "none.json", "--debug"]):
        assert "Traceback (most recent call last)" in process(*arguments).stderr


def test_set_writes_the_file_and_shows_the_difference(run: Run, plan_file: Path) -> None:
    before = plan_file.read_text()
    done = run("set", plan_file, "join_o_c.state.leftState.ttl=5 d")
    assert (done.returncode, done.stderr) == (0, "")
    assert "~ join_o_c.leftState.ttl               3 d → 5 d     edit over hint 1 d" in done.stdout
    assert plan_file.read_text() == before.replace('"ttl": "3 d"', '"ttl": "5 d"')


def test_set_writes_nothing_when_any_part_is_wrong_and_reports_all_that_are(run: Run, plan_file: Path) -> None:
    before = plan_file.read_bytes()
    done = run("set", plan_file, "join_o_c.leftState.ttl=5 d", "join_o_c.rightState.ttl=5", "config.x=1")
    assert done.returncode == 1
    assert "join_o_c.rightState.ttl: bad duration '5'" in done.stderr
    assert "config.x: 'x' cannot be set in config" in done.stderr
    assert plan_file.read_bytes() == before


def test_set_refuses_an_option_that_the_connector_does_not_know(run: Run, plan_file: Path) -> None:
    before = plan_file.read_bytes()
    done = run("set", plan_file, "tables.orders.options.pth=x")
    assert done.returncode == 1
    assert "tables.orders.options.pth: the filesystem connector has no option 'pth'" in done.stderr
    assert plan_file.read_bytes() == before


def test_set_prints_json_on_request(run: Run, plan_file: Path) -> None:
    done = run("set", "--json", plan_file, "join_o_c.leftState.ttl=5 d")
    assert json.loads(done.stdout)["changes"][0]["after"] == "5 d"


def test_diff_exits_with_2_only_when_asked_and_only_for_differences(run: Run, plan_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(plan_file.read_text().replace('"ttl": "3 d"', '"ttl": "5 d"'))
    assert run("diff", plan_file, other).returncode == 0
    done = run("diff", plan_file, other, "--exit-code")
    assert done.returncode == 2
    assert done.stdout.startswith("~ join_o_c.leftState.ttl")
    same = run("diff", plan_file, plan_file, "--exit-code")
    assert (same.returncode, same.stdout) == (0, "no differences\n")
    assert json.loads(run("diff", plan_file, other, "--format", "json").stdout)["different"] is True
    assert run("diff", plan_file, other, "--format", "markdown").stdout.startswith("**1 setting changed")


def test_explain_prints_the_tree_without_colours_to_a_pipe(run: Run, plan_file: Path) -> None:
    done = run("explain", plan_file)
    assert done.returncode == 0
    assert "└─ aggregate_t" in done.stdout
    assert "\x1b" not in done.stdout
    assert json.loads(run("explain", "--json", plan_file).stdout)["name"] == "revenue_by_country"


def test_a_changed_fact_needs_the_flag_in_every_command(run: Run, plan_file: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.json"
    changed.write_text(plan_file.read_text().replace('"o_total > 0"', '"o_total > 1"'))
    commands = (["validate", changed], ["explain", changed], ["diff", plan_file, changed])
    for command in (*commands, ["set", changed, "join_o_c.leftState.ttl=5 d"]):
        refused = run(*command)
        assert refused.returncode == 1
        assert "operator 'calc_o': its facts were changed by hand" in refused.stderr
        assert run(*command, "--allow-fact-edits").returncode == 0
    # The edit was accepted with the fact in it, so the digests fit again.
    assert run("validate", changed).returncode == 0


def test_schema_prints_the_schema(run: Run) -> None:
    assert json.loads(run("schema").stdout)["title"] == "hintplan plan"


def test_escape_sequences_in_names_do_not_reach_the_terminal(run: Run, plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace('"mode"', '"\\u001b[2Kmode"'))
    done = run("validate", plan_file)
    assert done.returncode == 1
    assert "unknown key '\\x1b[2Kmode'" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_reader_that_goes_away_is_no_traceback(plan_file: Path) -> None:
    command = [sys.executable, "-m", "hintplan", "schema"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("where", ["a full disk", "nowhere", "nobody"])
@pytest.mark.parametrize(("words", "code"), [(["fmt", "{}"], 0), (["validate", "none"], 1)])
def test_talk_that_cannot_be_written_stops_nothing(plan_file: Path, words: list[str], code: int, where: str) -> None:
    canonical = plan_file.read_text()
    plan_file.write_text(canonical.replace("  ", "   "))
    command = [sys.executable, "-m", "hintplan", *(word.format(plan_file) for word in words)]
    if where == "nowhere":
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full", "w") as full:
        stderr = full if where == "a full disk" else writing
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stdout) == (code, b"")
    assert (plan_file.read_text() == canonical) == (words[0] == "fmt")


def test_an_unexpected_error_is_one_line_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import hintplan.plans.commands.explain
    from hintplan.plans.cli import main

    def fail(path: str, **options: bool) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr(hintplan.plans.commands.explain, "read_plan", fail)
    with pytest.raises(SystemExit) as caught:
        main(["explain", "plan.json"])
    assert caught.value.code == 1
    assert capsys.readouterr().err == (
        "internal error: ZeroDivisionError: first line\n  hint: --debug shows the traceback\n"
    )


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import hintplan.plans.commands.explain
    from hintplan.plans.cli import main

    def interrupt(path: str, **options: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hintplan.plans.commands.explain, "read_plan", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["explain", "plan.json"])
    assert caught.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted"


HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "sqlglot", "jsonschema")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["validate"], ["explain"], ["diff"], ["set"], ["schema"]]
)
def test_commands_on_plans_start_without_heavy_libraries(arguments: list[str], plan_file: Path) -> None:
    extra = {"validate": [plan_file], "explain": [plan_file], "diff": [plan_file, plan_file]}
    extra["set"] = [plan_file, "join_o_c.leftState.ttl=5 d"]
    words = [*arguments, *map(str, extra.get(arguments[0], []))]
    program = (
        "import sys\n"
        "from hintplan.plans.cli import main\n"
        f"try:\n    main({words!r})\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr if done.returncode else "") == (0, "")


def test_set_removes_a_setting_and_shows_what_follows(run: Run, plan_file: Path) -> None:
    done = run("set", plan_file, "--remove", "config.table.exec.state.ttl")
    assert done.returncode == 0, done.stderr
    assert "table.exec.state.ttl" in done.stdout
    assert '"table.exec.state.ttl"' not in plan_file.read_text()
    assert run("validate", plan_file).returncode == 0
    again = run("set", plan_file, "--remove", "config.table.exec.state.ttl")
    assert again.returncode == 1
    assert "'table.exec.state.ttl' is not set in config" in again.stderr
    assert run("set", plan_file).returncode == 64
