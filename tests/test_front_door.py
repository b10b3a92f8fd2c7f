"""`import hintplan`: what it offers, that it loads nothing beforehand, its types, and that it does what commands do."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import hintplan
import hintplan.plans.api
from hintplan.plans.model.plan import Plan
from tests.links import link_package
from tests.plans.in_process import hintplan as command

ROOT = Path(__file__).parent.parent
SQL = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE o (id BIGINT, c BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE c (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
CREATE TABLE r (id BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO r SELECT o.id, c.name FROM o JOIN c ON o.c = c.id;
"""
LEFT = "join_o_c.state.leftState.ttl"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return hintplan.compile_sql(SQL, name="job")


@pytest.fixture(scope="module")
def edited(plan: Plan) -> Plan:
    return hintplan.set(plan, LEFT, "3 d", reason="late payments")


@pytest.fixture
def folder(tmp_path: Path, plan: Plan, edited: Plan) -> Path:
    """The plans as files, for commands to say what the functions must."""
    hintplan.dump(plan, tmp_path / "plan.json")
    hintplan.dump(edited, tmp_path / "edited.json")
    return tmp_path


def printed(folder: Path, *words: str) -> str:
    done = command(*words, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.rstrip("\n")


def test_every_name_is_there_and_listed() -> None:
    assert sorted(hintplan.__all__) == hintplan.__all__
    assert {*hintplan.__all__} <= {*dir(hintplan)}
    for name in hintplan.__all__:
        found = getattr(hintplan, name)
        assert found.__name__.removeprefix("hintplan.") == name
        assert found.__doc__, name


def test_a_misspelt_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'hintplan' has no attribute 'expalin'"):
        hintplan.expalin  # type: ignore[attr-defined] # noqa: B018


def test_importing_it_loads_nothing_that_it_offers() -> None:
    assert loaded("import hintplan") == []


def test_only_what_needs_spark_or_the_parser_loads_them(folder: Path) -> None:
    path = str(folder / "plan.json")
    program = f"""
import hintplan
plan = hintplan.loads(hintplan.dumps(hintplan.load({path!r})))
edited = hintplan.set(plan, {LEFT!r}, "5 d")
print(hintplan.diff(plan, edited), hintplan.explain(plan), hintplan.rebase(edited, onto=plan), file=sys.stderr)
hintplan.validate(edited), hintplan.check(edited, "nowhere"), plan._repr_html_()
"""
    heavy = ("hintplan.planner", "pyspark", "pyarrow", "sqlglot", "pandas")
    assert [name for name in loaded(program) if name in heavy] == []


def loaded(program: str) -> list[str]:
    """Which packages ``program`` loads, of those that take a while."""
    own = ("hintplan.planner", "hintplan.plans", "hintplan.runtime")
    heavy = (*own, "pyspark", "pyarrow", "pandas", "numpy", "sqlglot", "click")
    program = f"import sys\n{program}\nprint(*(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(hintplan.plans.api.__path__)])
def test_the_examples_in_the_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"hintplan.plans.api.{name}")).failed == 0


def test_a_type_checker_knows_the_types_of_what_is_installed(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment)
    (packages,) = environment.glob("lib/python3*/site-packages")
    link_package(packages)
    (tmp_path / "program.py").write_text(
        """import hintplan
from hintplan import Plan, compile_sql

reveal_type(compile_sql("..."))
reveal_type(hintplan.set(compile_sql("..."), "name", "x", reason="y"))
reveal_type([change.path for change in hintplan.diff(Plan(name="a"), Plan(name="b"))])
reveal_type(hintplan.rebase(Plan(name="a"), onto=Plan(name="b")).plan)
reveal_type(hintplan.execute(Plan(name="a"), checkpoint="state"))
reveal_type(hintplan.check(Plan(name="a"), "state").verdict)
reveal_type(hintplan.validate("plan.json"))
hintplan.set(Plan(name="a"), 5)
hintplan.expalin(Plan(name="a"))
"""
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(environment / "bin" / "python")]
    mypy += ["--cache-dir", str(ROOT / ".mypy_cache" / "front_door"), "program.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    plan_type = "hintplan.plans.model.plan.Plan"
    execution = "hintplan.runtime.run.execution.Execution | hintplan.runtime.batch.execution.BatchExecution"
    assert re.findall(r'Revealed type is "(.*)"', done.stdout) == [
        plan_type,
        plan_type,
        "list[str]",
        f"{plan_type} | None",
        execution,
        "Literal['new'] | Literal['continues'] | Literal['drops'] | Literal['refused']",
        "tuple[hintplan.plans.errors.Diagnostic, ...]",
    ], done.stdout
    errors = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == ["program.py:11", "program.py:12"], done.stdout


def test_explain_prints_what_the_command_prints(folder: Path, edited: Plan) -> None:
    found = hintplan.explain(edited)
    assert str(found) == repr(found) == printed(folder, "explain", "edited.json")
    assert found.json() == json.loads(printed(folder, "explain", "edited.json", "--json"))


@pytest.mark.parametrize("detail", ["concise", "normal", "full"])
def test_diff_prints_what_the_command_prints(folder: Path, plan: Plan, edited: Plan, detail: str) -> None:
    found = hintplan.diff(plan, edited)
    assert detail in ("concise", "normal", "full")
    options = [] if detail == "normal" else [f"--{detail}"]
    for layout, text in (
        ("text", found.text(detail)),  # type: ignore[arg-type]
        ("markdown", found.markdown(detail)),  # type: ignore[arg-type]
        ("html", found.html(detail).replace("job → job", "plan.json → edited.json")),  # type: ignore[arg-type]
    ):
        assert text == printed(folder, "diff", "plan.json", "edited.json", "--format", layout, *options)


def test_a_diff_is_its_changes(folder: Path, plan: Plan, edited: Plan) -> None:
    found = hintplan.diff(plan, edited)
    assert [(change.path, change.before, change.after) for change in found][:1] == [
        ("join_o_c.leftState.ttl", "1 d", "3 d")
    ]
    assert (found.effect, found.keeps_state, len(found)) == ("ttl", True, 2)
    assert found.json() == json.loads(printed(folder, "diff", "plan.json", "edited.json", "--json"))
    assert not hintplan.diff(plan, plan)
    assert str(hintplan.diff(plan, plan)) == "no differences"


def test_set_edits_as_the_command_does(folder: Path, plan: Plan, edited: Plan) -> None:
    done = command("set", "plan.json", f"{LEFT}=3 d", "--reason", "late payments", folder=folder)
    assert done.returncode == 0
    assert (folder / "plan.json").read_bytes() == hintplan.dumps(edited)
    assert done.stdout.rstrip("\n") == str(hintplan.diff(plan, edited))


def test_set_takes_patterns_several_settings_and_removals(plan: Plan) -> None:
    config = "config.table.exec.state.ttl"
    many = hintplan.set(plan, {"*State.ttl": "2 d", "config.parallelism.default": 4, config: None})
    assert many.config == {"parallelism.default": "4"}
    assert [(change.path, change.after) for change in hintplan.diff(plan, many) if change.subject == "setting"] == [
        ("config.parallelism.default", "4"),
        (config, None),
        ("join_o_c.leftState.ttl", "2 d"),
        ("join_o_c.rightState.ttl", "2 d"),
    ]


def test_set_says_all_that_is_wrong_and_changes_nothing(plan: Plan) -> None:
    before = hintplan.dumps(plan)
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.set(plan, {"join_o_c.leftState.ttl": "3", "join_o_d.leftState.ttl": "3 d", LEFT: "2 d"})
    assert [found.path for found in caught.value.diagnostics] == ["join_o_c.leftState.ttl", "join_o_d.leftState.ttl"]
    assert hintplan.dumps(plan) == before


def test_set_refuses_what_would_make_the_plan_wrong(plan: Plan) -> None:
    with pytest.raises(hintplan.PlanError, match=r"tables\.o\.options"):
        hintplan.set(plan, "tables.o.options.pth", "o")


def test_rebase_carries_edits_over_as_the_command_does(folder: Path, edited: Plan) -> None:
    newer = hintplan.compile_sql(SQL.replace("'1 d'", "'2 d'"), name="job")
    hintplan.dump(newer, folder / "newer.json")
    found = hintplan.rebase(edited, onto=newer)
    done = command("rebase", "edited.json", "--onto", "newer.json", "-o", "done.json", folder=folder)
    assert (done.returncode, done.stderr.rstrip("\n")) == (0, str(found))
    assert found.plan is not None
    assert (folder / "done.json").read_bytes() == hintplan.dumps(found.plan)
    assert found.conflicts == ()


def test_rebase_says_what_stands_in_the_way_and_takes_a_mapping(folder: Path, edited: Plan) -> None:
    other = SQL.replace("FROM o JOIN c ON o.c = c.id", "FROM c LEFT JOIN o ON o.c = c.id")
    newer = hintplan.compile_sql(other, name="job")
    hintplan.dump(newer, folder / "newer.json")
    found = hintplan.rebase(edited, onto=newer)
    done = command("rebase", "edited.json", "--onto", "newer.json", folder=folder)
    assert found.plan is None
    assert done.stderr.rstrip("\n") == str(found).replace("the old plan:", "edited.json:")
    assert "--map join_o_c=join_c_o" in str(found.conflicts[0].hint)
    assert found.json()["done"] is False
    mapped = hintplan.rebase(edited, onto=newer, mapping={"join_o_c": "join_c_o"}).plan
    assert mapped is not None
    assert not hintplan.diff(mapped, hintplan.set(newer, "join_c_o.rightState.ttl", "3 d", reason="late payments"))
    assert hintplan.rebase(edited, onto=newer, drop_orphans=True).plan == newer


def test_validate_finds_what_the_command_finds(folder: Path, plan: Plan) -> None:
    assert hintplan.validate(plan) == hintplan.validate(folder / "plan.json") == ()
    text = (folder / "plan.json").read_text(encoding="utf-8")
    (folder / "wrong.json").write_text(text.replace('"ttl": "1 d"', '"ttl": "1"', 1), encoding="utf-8")
    (folder / "broken.json").write_text(text[:-10], encoding="utf-8")
    for name in ("wrong.json", "broken.json", "none.json"):
        done = command("validate", name, "--json", folder=folder)
        found = hintplan.validate(folder / name)
        expected = [(one["line"], one["path"], one["message"]) for one in json.loads(done.stdout)["diagnostics"]]
        assert [(one.line, one.path, one.message) for one in found] == expected
        assert {one.file for one in found} == {str(folder / name)}
    (found,) = hintplan.validate(Plan(name="p", config={"parallelism.default": "many"}))
    assert found.path == "config.parallelism.default"


def test_validate_takes_facts_that_were_changed_if_it_is_told_to(folder: Path) -> None:
    path = folder / "plan.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"type": "STRING"', '"type": "INT"'))
    assert "facts were changed by hand" in "".join(map(str, hintplan.validate(path)))
    assert "facts were changed by hand" not in "".join(map(str, hintplan.validate(path, allow_fact_edits=True)))


def test_check_prints_what_the_command_prints(folder: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = hintplan.check(plan, "checkpoint")
    assert (found.verdict, found.record) == ("new", None)
    assert str(found) == printed(folder, "check", "plan.json", "--checkpoint", "checkpoint")
    assert found.json() == json.loads(printed(folder, "check", "plan.json", "--checkpoint", "checkpoint", "--json"))


def test_check_refuses_a_plan_without_state() -> None:
    batch = hintplan.compile_sql("SET 'execution.runtime-mode' = 'batch';" + SQL, name="job")
    with pytest.raises(hintplan.RunError, match="job is a batch plan: it keeps no state"):
        hintplan.check(batch, "checkpoint")


def test_the_program_for_spark_submit_does_what_the_command_does(folder: Path, edited: Plan) -> None:
    """As spark-submit starts it: the file of ``python -m hintplan``, by its path."""
    program = Path(hintplan.__path__[0], "__main__.py")
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    for words in (["explain", "edited.json"], ["check", "edited.json", "--checkpoint", "state"]):
        for start in (["-m", "hintplan"], [str(program)]):
            done = subprocess.run(
                [sys.executable, *start, *words],
                cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stdout.rstrip("\n")) == (0, printed(folder, *words)), done.stderr


def test_the_program_for_spark_submit_leaves_the_names_of_its_folder_to_the_user(tmp_path: Path) -> None:
    (tmp_path / "plans.py").write_text("print('the plans of the user')\n")
    code = "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = ['--version']\n"
    code += "try: runpy.run_path(sys.path[0] + '/__main__.py', run_name='__main__')\nexcept SystemExit: import plans"
    done = subprocess.run(
        [sys.executable, "-c", code, hintplan.__path__[0]],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("the plans of the user\n"), done.stderr


def test_it_has_no_second_name() -> None:
    with pytest.raises(ImportError, match="this package is called hintplan"):
        importlib.import_module("hintplan.plans.front_door")
