"""The examples of CONTRIBUTING.md are true: applied to a copy of the code, they do what is shown."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.links import link_package
from tests.sample import in_turn

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
OWN = ("plans", "planner", "runtime")


def fences() -> Iterator[tuple[str, str, str]]:
    """Each fenced block: the paragraph before it, its language and its text."""
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        yield PAGE[: found.start()].rstrip().rpartition("\n\n")[2], found[1], found[2]


def new_files() -> dict[str, str]:
    """The text of each file that is to be made, by its path: the paragraph before it ends in the path."""
    found = {}
    for paragraph, language, text in fences():
        if language in ("python", "sql"):
            (path,) = re.findall(r"`([\w./]+)`:$", paragraph)
            found[path] = text
    return found


def changed(path: str, text: str, hunks: str) -> str:
    """``text`` with each of the hunks in the one place where its old lines are."""
    for hunk in hunks.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        assert {line[:1] for line in lines} <= {" ", "+", "-", "\n"}, hunk
        old = "".join(line[1:] if line != "\n" else line for line in lines if line[0] != "+")
        new = "".join(line[1:] if line != "\n" else line for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"{path} has {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    return text


def sessions() -> Iterator[tuple[str, str]]:
    """Each command with the output that stands below it."""
    for _, language, text in fences():
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                yield line, output


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code with all examples in it."""
    root = tmp_path_factory.mktemp("contributing")
    for package in OWN:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for path, text in new_files().items():
        assert not (root / path).exists(), path
        (root / path).write_text(text, encoding="utf-8")
    for _, language, text in fences():
        if language == "diff":
            path, _, hunks = text.partition("\n")
            before = (root / path).read_text(encoding="utf-8")
            (root / path).write_text(changed(path, before, hunks), encoding="utf-8")
    link_package(root / "site", root)
    launcher = root / "bin" / "hintplan"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hintplan "$@"\n')
    launcher.chmod(0o755)
    # What mypy knows of the code, if it has run before.
    for cache in (ROOT / ".mypy_cache").glob("3.*"):
        shutil.copytree(cache, root / ".mypy_cache" / cache.name)
    done = run(root, f"{shlex.quote(sys.executable)} -m hintplan.plans.format.generate")
    assert done.returncode == 0, done.stdout
    return root


def run(root: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command in the copy, with what it prints and says in one text."""
    path, site = os.pathsep.join([str(root / "bin"), os.environ["PATH"]]), str(root / "site")
    return subprocess.run(
        line,
        shell=True,
        cwd=root,
        env={**os.environ, "PATH": path, "PYTHONPATH": site, "MYPYPATH": site, "PYTHONUTF8": "1", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def like(shown: str) -> re.Pattern[str]:
    """What is printed as it is shown; a line of three dots stands for any lines."""
    return re.compile("".join("(?:.*\n)*" if line == "...\n" else re.escape(line) for line in shown.splitlines(True)))


@in_turn(0, of=2)
def test_the_examples_are_typed_and_laid_out_as_the_code_is(copy: Path) -> None:
    for tool in ("ruff check -q", "ruff format -q --check", "mypy --no-error-summary"):
        done = run(copy, shlex.join([sys.executable, "-m", *tool.split()]))
        assert (done.returncode, done.stdout) == (0, "")


def test_an_operator_takes_six_files_a_setting_two_a_connector_four_and_a_function_two() -> None:
    sections = re.split(r"^## How to add ", PAGE, flags=re.MULTILINE)[1:]
    touched = [
        set(re.findall(r"(?:^|`)((?:plans|planner|runtime)/[\w/]+\.py)(?:`:)?$", s, re.MULTILINE)) for s in sections
    ]
    assert [len(files) for files in touched] == [6, 2, 4, 2]


def test_the_make_targets_are_some() -> None:
    targets = re.findall(r"^make ([\w-]+)", PAGE, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if f"\n{target}: " not in makefile] == []


@in_turn(1, of=2)
@pytest.mark.spark
def test_the_commands_print_what_is_shown(copy: Path) -> None:
    """In order; some need Spark, and all of them together are one story."""
    for line, shown in sessions():
        printed = run(copy, line).stdout
        assert like(shown).fullmatch(printed), f"$ {line}\n{printed}"
