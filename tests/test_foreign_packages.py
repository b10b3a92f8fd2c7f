"""A package of another's that has the name of one of hintplan's is named, by the command and by ``import hintplan``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMAND = "import sys; sys.argv = ['hintplan', '--version']; from hintplan_command import main; main()"
PROGRAM = "import hintplan; hintplan.loads"
NAMES = ("plans", "planner", "runtime")


def python(program: str, *folders: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``program`` with the modules in ``folders``, and then those of the checkout."""
    path = os.pathsep.join(map(str, (*folders, ROOT)))
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def foreign(folder: Path, name: str, shape: str) -> Path:
    """Someone's package or module ``name`` in ``folder``, which must not be run; what Python would find."""
    found = folder / name if shape == "package" else folder / f"{name}.py"
    file = found / "__init__.py" if shape == "package" else found
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise SystemExit('a stranger was imported')\n")
    return found


@pytest.mark.parametrize("shape", ["package", "module"])
@pytest.mark.parametrize("name", NAMES)
def test_the_command_names_what_stands_in_the_place_of_a_package(tmp_path: Path, name: str, shape: str) -> None:
    (tmp_path / "theirs").mkdir()
    found = foreign(tmp_path / "theirs", name, shape)
    done = python(COMMAND, tmp_path / "theirs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    first, hint = done.stderr.splitlines()
    assert first == f"Python finds hintplan's package '{name}' in {found}, not in {ROOT / name}"
    assert hint.startswith("  hint: another package of this name stands earlier in the module search path: take its")


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_told_as_well(tmp_path: Path, name: str) -> None:
    """As with ``python job.py`` in a project that has a package of this name."""
    found = foreign(tmp_path, name, "package")
    (tmp_path / "job.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"ImportError: Python finds hintplan's package '{name}' in {found}, not in {ROOT / name}" in done.stderr


def test_a_program_that_has_made_such_a_module_is_told_as_well(tmp_path: Path) -> None:
    made = "import sys, types; sys.modules['planner'] = types.ModuleType('planner')\n"
    done = python(made + PROGRAM, cwd=tmp_path)
    assert "ImportError: Python finds hintplan's package 'planner' nowhere, not in" in done.stderr


def test_folders_of_plans_are_no_packages(tmp_path: Path) -> None:
    """People keep their plans in a folder ``plans``, here and anywhere in the module search path."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "orders.json").touch()
    for program in (COMMAND, PROGRAM):
        assert python(program, tmp_path, cwd=tmp_path).returncode == 0
