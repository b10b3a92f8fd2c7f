"""Commands that start no Spark load what they need: benchmarks/starts.py measures what the rest would cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RARE = ("difflib", "lzma", "subprocess", "tempfile", "tomllib", "traceback", "hintplan.plans.review.diff_sql")
"""Modules that only some calls of these commands need."""


def loaded(*words: object) -> list[str]:
    """The modules that are loaded when the command has done its work."""
    program = (
        "import sys\n"
        "from hintplan.plans.cli import main\n"
        f"try:\n    main({[*map(str, words)]!r})\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('modules:', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.fixture
def plan_file(plan_text: str, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("command", "plans", "most"), [("--help", 0, 16), ("validate", 1, 152), ("explain", 1, 155), ("diff", 2, 163)]
)
def test_a_command_loads_no_more_modules_than_it_needs(command: str, plans: int, most: int, plan_file: Path) -> None:
    names = loaded(command, *[plan_file] * plans)
    assert len([name for name in names if name.startswith("hintplan")]) <= most
    assert [name for name in RARE if name in names and not (name == "lzma" and command == "--help")] == []


@pytest.mark.parametrize("command", ["validate", "explain"])
def test_a_command_loads_only_the_connectors_of_the_plan(command: str, plan_file: Path, plan_text: str) -> None:
    folder = "hintplan.plans.connectors."
    homes = {"datagen", "delta", "filesystem", "http", "iceberg", "jdbc", "kafka", "print_sink", "redis"}
    names = {name.removeprefix(folder) for name in loaded(command, plan_file) if name.startswith(folder)}
    assert names & homes == {home for home in homes if f'"connector": "{home.removesuffix("_sink")}"' in plan_text}


def test_a_command_that_has_ended_has_written_everything_and_kept_its_code(plan_file: Path) -> None:
    # Python is not left to take the modules apart, so nothing may be left to it.
    program = "import sys; from hintplan.plans.cli import main; main()"
    command = [sys.executable, "-c", program, "validate", plan_file]
    good = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith(f"{plan_file}: valid")
    plan_file.write_text("[")
    bad = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "plan.json:1:" in bad.stderr
