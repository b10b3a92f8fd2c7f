"""The life of a plan in examples/review: every command of its page, in order, with a real repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.sample import in_turn

EXAMPLE = Path(__file__).parents[2] / "examples" / "review"

pytestmark = pytest.mark.integration


def steps(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each command, which continues after ``>`` as in a shell, and the lines that are shown below it."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.rstrip("\n").split("\n")
            more = [line[2:] for line in takewhile(lambda line: line.startswith(">"), rest if "<<" in first else [])]
            yield "\n".join([first, *more]), rest[len(more) :]


def pattern(shown: list[str]) -> str:
    """The lines as a pattern: a line of three dots is any lines, three dots in a line are any text."""
    lines = (r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in shown)
    return "".join(lines)


@in_turn(1, of=3)
def test_every_step_of_the_life_of_a_plan_is_as_the_page_shows_it(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    shutil.copytree(EXAMPLE, folder)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("GIT_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "NO_COLOR": "1",
    }
    for key, value in {"user.name": "A", "user.email": "a@example.org"}.items():
        subprocess.run(["git", "config", "--global", key, value], env=environment, check=True)
    found = list(steps((EXAMPLE / "README.md").read_text(encoding="utf-8")))
    assert found[0][0].startswith("cp -r examples/review ")
    assert len(found) > 40
    for command, shown in found[1:]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        output = re.sub(r"[ \t]+$", "", done.stdout, flags=re.MULTILINE)
        assert re.fullmatch(pattern(shown), output), f"$ {command}\n{output}"
