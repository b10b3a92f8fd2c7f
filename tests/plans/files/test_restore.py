"""A refused change of facts: what it was, what it is, and the command that takes it back, which is tried."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

import hintplan as api
from tests.plans.in_process import hintplan
from tests.plans.merge.test_rebase import LEFT, SQL, value

CHANGES = {
    "a fact": ('"join-type": "inner"', '"join-type": "left"', "join_o_c.join-type: inner → left"),
    "a list": ('"columns": ["id", "country"]', '"columns": ["id"]', "scan_customers.columns: removed country"),
    "a table": ('"name": "country", "type": "STRING"', '"name": "country", "type": "INT"', "tables.customers.columns"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.sql").write_text(SQL)
    assert hintplan("compile", "job.sql", "-o", "plan.json", folder=tmp_path).returncode == 0
    assert hintplan("set", "plan.json", f"{LEFT}=3 d", folder=tmp_path).returncode == 0
    return tmp_path


def changed(folder: Path, old: str, new: str) -> None:
    text = (folder / "plan.json").read_text()
    assert old in text
    (folder / "plan.json").write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(("old", "new", "said"), [pytest.param(*c, id=n) for n, c in CHANGES.items()])
@pytest.mark.parametrize("words", [("validate", "plan.json"), ("explain", "plan.json"), ("set", "plan.json", "name=x")])
def test_a_changed_fact_is_shown_with_what_it_was(
    folder: Path, old: str, new: str, said: str, words: tuple[str, ...]
) -> None:
    changed(folder, old, new)
    done = hintplan(*words, folder=folder)
    assert done.returncode == 1
    assert f"what was changed:\n  {said}" in done.stderr


def test_the_command_that_is_named_takes_the_change_back_and_keeps_the_edits(folder: Path) -> None:
    before = (folder / "plan.json").read_bytes()
    changed(folder, *CHANGES["a fact"][:2])
    said = hintplan("validate", "plan.json", folder=folder).stderr
    command = said.splitlines()[-1].removeprefix("to take it back: hintplan ")
    assert hintplan(*shlex.split(command), folder=folder).returncode == 0
    assert (folder / "plan.json").read_bytes() == before
    assert value(api.load(folder / "plan.json"), LEFT) == "3 d"


def test_without_the_script_the_plan_that_git_has_is_the_original(folder: Path) -> None:
    (folder / "job.sql").unlink()
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    before = (folder / "plan.json").read_bytes()
    changed(folder, *CHANGES["a fact"][:2])
    said = hintplan("validate", "plan.json", folder=folder).stderr
    assert said.endswith(
        "what was changed:\n  join_o_c.join-type: inner → left\nto take it back: git checkout HEAD -- plan.json\n"
    )
    subprocess.run(shlex.split(said.splitlines()[-1].partition(": ")[2]), cwd=folder, check=True, capture_output=True)
    assert (folder / "plan.json").read_bytes() == before


def test_without_an_original_nothing_is_claimed(folder: Path) -> None:
    (folder / "job.sql").write_text(SQL.replace(" JOIN", " LEFT JOIN"))
    changed(folder, '"join-type": "inner"', '"join-type": "full"')
    done = hintplan("validate", "plan.json", folder=folder)
    assert (done.returncode, "what was changed" in done.stderr) == (1, False)
