"""What commands say of a link that leads nowhere, and of a folder in the place of a file: the thing, and why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hintplan.plans.text.links import link_to_nowhere
from tests.plans.in_process import Done, hintplan

PLAN = Path(__file__).parents[1] / "revenue_by_country.json"

FILES = [
    ["compile", "X"],
    ["sql", "X"],
    ["sql", "-i", "X", "job.sql"],
    ["validate", "X"],
    ["explain", "X"],
    ["show", "X"],
    ["diff", "plan.json", "X"],
    ["diff", "X", "plan.json"],
    ["flat", "X"],
    ["fmt", "X"],
    ["lint", "X"],
    ["why", "X", "name"],
    ["set", "X", "name=other"],
    ["rebase", "X", "--onto", "plan.json"],
    ["merge", "plan.json", "X", "plan.json"],
    ["check", "X", "--checkpoint", "none"],
    ["lint", "plan.json", "--settings", "X"],
    ["run", "plan.json", "--policy", "X"],
]
WRITTEN = [["compile", "job.sql", "-o", "X/plan.json"], ["show", "plan.json", "-o", "X/page.html"]]
CHECKPOINTS = [
    ["check", "plan.json", "--checkpoint", "X"],
    ["check", "plan.json", "--checkpoint", "X/below"],
    ["state", "X"],
    ["state", "plan.json", "--checkpoint", "X"],
]
PROJECT = [["lint", "plan.json"], ["run", "plan.json"]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(PLAN, "plan.json")
    Path("job.sql").write_text(
        "CREATE TABLE s (id BIGINT) WITH ('connector' = 'datagen');\n"
        "CREATE TABLE r (id BIGINT) WITH ('connector' = 'print');\nINSERT INTO r SELECT id FROM s;\n"
    )
    return tmp_path


def run(words: list[str], x: str) -> Done:
    return hintplan(*(word.replace("X", x) for word in words), together=True)


@pytest.mark.parametrize("words", [*FILES, *WRITTEN, *CHECKPOINTS], ids=" ".join)
def test_a_link_to_nowhere_is_named(words: list[str]) -> None:
    Path("link").symlink_to("nowhere")
    found = run(words, "link")
    assert found.returncode == 1, found.stdout
    assert "link is a symbolic link to " in found.stdout
    assert "nowhere, where there is nothing" in found.stdout
    assert "Traceback" not in found.stdout
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_a_folder_where_a_file_must_be_is_named(words: list[str]) -> None:
    Path("folder").mkdir()
    found = run(words, "folder")
    assert found.returncode in (1, 64), found.stdout
    assert "folder" in found.stdout
    assert "irectory" in found.stdout
    assert "Traceback" not in found.stdout


@pytest.mark.parametrize("words", [words for words in CHECKPOINTS if words != ["state", "X"]], ids=" ".join)
def test_a_file_where_a_checkpoint_must_be_is_named(words: list[str]) -> None:
    Path("file").write_text("x")
    found = run(words, "file")
    assert found.returncode == 1, found.stdout
    assert "file" in found.stdout
    assert "Not a directory" in found.stdout or "there is no directory file" in found.stdout


@pytest.mark.parametrize("words", PROJECT, ids=" ".join)
@pytest.mark.parametrize(("kind", "why"), [("link", "is a symbolic link to"), ("folder", "Is a directory")])
def test_settings_of_a_project_that_cannot_be_read_are_not_left_out(words: list[str], kind: str, why: str) -> None:
    file = Path("hintplan.toml")
    file.symlink_to("nowhere") if kind == "link" else file.mkdir()
    found = run(words, "")
    assert found.returncode == 1, found.stdout
    assert "hintplan.toml: cannot be read: " in found.stdout
    assert why in found.stdout


def test_the_first_link_that_leads_nowhere_is_found() -> None:
    Path("there").mkdir()
    Path("a").symlink_to("b")
    Path("b").symlink_to("there")
    assert [link_to_nowhere(path) for path in ("a", "a/x", "x/y", "/", "there")] == [None] * 5
    Path("there").rmdir()
    assert link_to_nowhere("a/x/y") == "a is a symbolic link to b, where there is nothing"
    Path("b").unlink()
    Path("b").symlink_to("a")
    assert link_to_nowhere("b") == "b is a symbolic link to a, where there is nothing"
