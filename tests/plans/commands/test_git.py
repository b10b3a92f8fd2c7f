"""Real git repositories whose plans are diffed, merged and rebased by meaning after ``hintplan git-setup``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hintplan as api
from hintplan import compile_sql
from hintplan.plans.edit.edit import set_value
from tests.plans.in_process import hintplan
from tests.plans.merge.test_rebase import SQL, value

pytestmark = pytest.mark.slow

LEFT, RIGHT = "join_o_c.state.leftState.ttl", "join_o_c.state.rightState.ttl"
PLAN = "plans/orders.json"


class Repository:
    """A repository with one plan, on branch ``main``; commands run as a user's would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "HOME": str(folder / "home"),
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
        }
        for name in ("bin", "home", "repo/plans"):
            (folder / name).mkdir(parents=True)
        script = folder / "bin" / "hintplan"
        # -P: as with an installed command, the folder plans/ of the repository is not taken for the package.
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m hintplan "$@"\n')
        script.chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        api.dump(compile_sql(SQL, name="orders"), self.plan)

    @property
    def plan(self) -> Path:
        return self.folder / "repo" / PLAN

    def hintplan(self, *words: str, code: int = 0) -> str:
        done = hintplan(*words, folder=self.folder / "repo", environment=self.environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def git(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder / "repo",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def edit(self, assignment: str) -> None:
        path, _, text = assignment.partition("=")
        api.dump(set_value(api.load(self.plan), path, text)[0], self.plan)
        self.commit(assignment)

    def branches(self, ours: str, theirs: str) -> None:
        """Two branches from the first commit, ``main`` with one edit and ``topic`` with the other."""
        self.git("checkout", "-qb", "topic")
        self.edit(theirs)
        self.git("checkout", "-q", "main")
        self.edit(ours)


@pytest.fixture
def plain(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path)
    repository.commit("plan")
    return repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path)
    repository.hintplan("git-setup")
    repository.commit("plan")
    return repository


def test_plain_git_conflicts_where_two_ttls_stand_next_to_each_other(plain: Repository) -> None:
    plain.branches(f"{LEFT}=3 d", f"{RIGHT}=30 d")
    assert "CONFLICT" in plain.git("merge", "topic", "-m", "merge", code=1)


def test_edits_of_two_ttls_next_to_each_other_merge(repository: Repository) -> None:
    repository.branches(f"{LEFT}=3 d", f"{RIGHT}=30 d")
    repository.git("merge", "topic", "-m", "merge")
    merged = api.load(repository.plan)
    assert (value(merged, LEFT), value(merged, RIGHT)) == ("3 d", "30 d")
    assert api.dumps(merged) == repository.plan.read_bytes()


def test_a_branch_with_an_edit_rebases_onto_a_recompiled_plan(repository: Repository) -> None:
    repository.git("checkout", "-qb", "topic")
    repository.edit(f"{LEFT}=3 d")
    repository.git("checkout", "-q", "main")
    api.dump(compile_sql(SQL.replace("'1 d'", "'2 d'").replace("'1 h'", "'5 h'"), name="orders"), repository.plan)
    repository.commit("hint")
    repository.git("checkout", "-q", "topic")
    said = repository.git("rebase", "main")
    assert f"{PLAN}: {LEFT}: 3 d is kept over hint 2 d; it was over hint 1 d" in said
    rebased = api.load(repository.plan)
    assert (value(rebased, LEFT), value(rebased, RIGHT)) == ("3 d", "5 h")


def test_two_values_for_one_ttl_conflict_with_a_clear_text(repository: Repository) -> None:
    repository.branches(f"{LEFT}=3 d", f"{LEFT}=5 d")
    said = repository.git("merge", "topic", "-m", "merge", code=1)
    sides = "ours 3 d (edit over hint 1 d), theirs 5 d (edit over hint 1 d), base 1 d (hint)"
    assert f"{PLAN}: {LEFT}: both sides changed it: {sides}" in said
    assert repository.git("status", "--short").startswith(f"UU {PLAN}")
    lines = repository.plan.read_text().splitlines()
    start = lines.index("<<<<<<< ours")
    assert ('"ttl": "3 d"' in lines[start + 1], lines[start + 2], '"ttl": "5 d"' in lines[start + 3]) == (
        True,
        "=======",
        True,
    )
    assert lines[start + 4] == ">>>>>>> theirs"
    assert "the file has merge conflicts" in repository.hintplan("validate", PLAN, code=1)
    shown = repository.git("diff")
    assert f"{LEFT} = 3 d" in shown
    assert shown.count("\n") < 40
    # One side is chosen, as in any other file.
    repository.plan.write_text("\n".join(lines[:start] + lines[start + 3 : start + 4] + lines[start + 5 :]) + "\n")
    repository.commit("merge")
    assert value(api.load(repository.plan), LEFT) == "5 d"


def test_with_conflict_style_diff3_the_base_stands_between(repository: Repository) -> None:
    repository.git("config", "merge.conflictStyle", "diff3")
    repository.branches(f"{LEFT}=3 d", f"{LEFT}=5 d")
    repository.git("merge", "topic", "-m", "merge", code=1)
    conflict = repository.plan.read_text().partition("|||||||\n")[2].partition("=======\n")[0]
    assert '"ttl": "1 d"' in conflict


def test_a_version_that_is_no_plan_never_passes_as_merged(repository: Repository) -> None:
    repository.git("checkout", "-qb", "topic")
    repository.plan.write_text(repository.plan.read_text().replace('"index": 0', '"index": 0, "index": 1', 1))
    repository.commit("broken")
    repository.git("checkout", "-q", "main")
    repository.edit(f"{RIGHT}=30 d")
    said = repository.git("merge", "topic", "-m", "merge", code=1)
    assert "not merged by meaning, because one version is no valid plan" in said
    assert "duplicate key 'index'" in said


def test_other_json_files_are_merged_as_always(repository: Repository) -> None:
    other = repository.plan.parent / "other.json"
    lines = [f'  "{name}": 1,' for name in "abcdefghij"]
    other.write_text("\n".join(["{", *lines, '  "z": 1', "}"]))
    repository.commit("other")
    repository.git("checkout", "-qb", "topic")
    other.write_text(other.read_text().replace('"a": 1', '"a": 2'))
    repository.commit("a")
    repository.git("checkout", "-q", "main")
    other.write_text(other.read_text().replace('"z": 1', '"z": 2'))
    repository.commit("z")
    repository.git("merge", "topic", "-m", "merge")
    assert ('"a": 2' in other.read_text(), '"z": 2' in other.read_text()) == (True, True)


def test_git_diff_shows_settings_with_who_set_them(repository: Repository) -> None:
    repository.hintplan("set", PLAN, f"{LEFT}=3 d")
    lines = [line for line in repository.git("diff").splitlines() if line[:1] in "+-" and line[1:2] not in "+-"]
    assert lines == [
        f"-{LEFT} = 1 d   (hint · config 1 h)",
        f"+{LEFT} = 3 d   (edit · hint 1 d · config 1 h)",
    ]


def test_layout_is_no_difference_to_git_diff(repository: Repository) -> None:
    import json

    repository.plan.write_text(json.dumps(json.loads(repository.plan.read_text())))
    assert [line for line in repository.git("diff").splitlines() if line.startswith(("+ ", "+j", "-j"))] == []


def test_setting_up_twice_changes_nothing_and_a_dry_run_neither(plain: Repository) -> None:
    config = plain.folder / "repo" / ".git" / "config"
    attributes = plain.folder / "repo" / ".gitattributes"
    before = config.read_text()
    shown = plain.hintplan("git-setup", "--dry-run", "jobs/*.plan.json")
    assert "would set merge.hintplan.driver = c=" in shown
    assert (config.read_text(), attributes.exists()) == (before, False)
    attributes.write_text("*.sql text")
    shown = plain.hintplan("git-setup", "jobs/*.plan.json", "plans/*.json")
    assert "to undo it: git config --local --remove-section merge.hintplan" in shown
    written = "*.sql text\njobs/*.plan.json diff=hintplan merge=hintplan\nplans/*.json diff=hintplan merge=hintplan\n"
    assert attributes.read_text() == written
    after = config.read_text()
    assert "nothing to do" in plain.hintplan("git-setup", "jobs/*.plan.json", "plans/*.json")
    assert (config.read_text(), attributes.read_text()) == (after, written)


def test_setting_up_for_all_repositories_writes_to_the_users_files_only(plain: Repository) -> None:
    plain.hintplan("git-setup", "--global")
    assert "merge.hintplan" not in (plain.folder / "repo" / ".git" / "config").read_text()
    assert "merge --git --path %P" in (plain.folder / "home" / ".gitconfig").read_text()
    used = (plain.folder / "home" / ".config" / "git" / "attributes").read_text()
    assert used == "plans/*.json diff=hintplan merge=hintplan\n"
    plain.branches(f"{LEFT}=3 d", f"{RIGHT}=30 d")
    plain.git("merge", "topic", "-m", "merge")


def test_outside_a_repository_there_is_nothing_to_set_up(tmp_path: Path) -> None:
    environment = {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    done = hintplan("git-setup", folder=tmp_path, environment=environment)
    assert done.returncode == 1
    assert "this is no git repository" in done.stderr


def test_the_driver_is_found_where_no_environment_is_active(repository: Repository) -> None:
    repository.environment["PATH"] = "/usr/bin:/bin"
    repository.branches(f"{LEFT}=3 d", f"{RIGHT}=30 d")
    repository.git("merge", "topic", "-m", "merge")
    merged = api.load(repository.plan)
    assert (value(merged, LEFT), value(merged, RIGHT)) == ("3 d", "30 d")
    assert f"+{LEFT} = 3 d   (edit · hint 1 d · config 1 h)" in repository.git("show", "HEAD^1", "--textconv")


@pytest.mark.parametrize("failure", ["exit 70", "exit 127", "kill -9 $$"])
@pytest.mark.parametrize("theirs", [f"{LEFT}=5 d", "config.parallelism.default=3"])
def test_a_driver_that_fails_never_leaves_one_side_as_if_it_were_merged(
    repository: Repository, failure: str, theirs: str
) -> None:
    repository.branches(f"{LEFT}=3 d", theirs)
    gone = repository.folder / "gone"
    gone.write_text(f"#!/bin/sh\n{failure}\n")
    gone.chmod(0o755)
    driver = repository.git("config", "merge.hintplan.driver").strip()
    repository.git("config", "merge.hintplan.driver", "c=" + str(gone) + driver[driver.index(";") :])
    said = repository.git("merge", "topic", "-m", "merge", code=1)
    assert "hintplan did not run" in said
    assert f"git merges the lines of {PLAN}" in said
    assert repository.git("status", "--short").startswith(f"UU {PLAN}")
    text = repository.plan.read_text()
    assert text.startswith("<<<<<<< hintplan did not run")
    assert '"ttl": "3 d"' in text
    assert ('"ttl": "5 d"' in text) == ("5 d" in theirs)
    assert ('"parallelism.default": "3"' in text) == ("parallelism" in theirs)
    repository.hintplan("validate", PLAN, code=1)
    assert sorted(path.name for path in repository.plan.parent.iterdir()) == ["orders.json"]


def test_after_a_conflict_over_merged_sql_the_edits_of_both_sides_are_kept(repository: Repository) -> None:
    """What rebase.md tells to do: each version is compiled anew with its own edits, and the three are merged."""
    script = repository.folder / "repo" / "orders.sql"
    script.write_text(SQL)
    repository.hintplan("compile", "orders.sql", "-o", PLAN, "--overwrite")
    repository.commit("compiled")
    for branch, change, edit in (
        ("topic", ("'1 d'", "'2 d'"), f"{RIGHT}=30 d"),
        ("main", (" JOIN", " LEFT JOIN"), f"{LEFT}=3 d"),
    ):
        repository.git("checkout", "-q", *(["-b"] if branch == "topic" else []), branch)
        script.write_text(SQL.replace(*change))
        repository.hintplan("set", PLAN, edit)
        repository.hintplan("compile", "orders.sql", "-o", PLAN, "--keep-edits", PLAN)
        repository.commit(branch)
    repository.edit("join_o_c.state.rightState.ttl=9 h")
    repository.git("merge", "topic", "-m", "merge", code=1)
    script.write_text(SQL.replace("'1 d'", "'2 d'").replace(" JOIN", " LEFT JOIN"))
    for number in (1, 2, 3):
        side = repository.folder / "repo" / f"side{number}.json"
        side.write_text(repository.git("show", f":{number}:{PLAN}"))
        repository.hintplan("compile", "orders.sql", "-o", side.name, "--keep-edits", side.name)
    said = repository.hintplan("merge", "side1.json", "side2.json", "side3.json", "-o", PLAN, code=1)
    assert f"{RIGHT}: both sides changed it: ours 9 h (edit over config 1 h), theirs 30 d (edit" in said
    repository.hintplan("set", "side3.json", f"{RIGHT}=9 h")
    repository.hintplan("merge", "side1.json", "side2.json", "side3.json", "-o", PLAN)
    merged = api.load(repository.plan)
    assert (value(merged, LEFT), value(merged, RIGHT)) == ("3 d", "9 h")
    assert (
        merged.operators
        == set_value(
            set_value(compile_sql(script.read_text(), name="orders", file="orders.sql"), LEFT, "3 d")[0], RIGHT, "9 h"
        )[0].operators
    )
