"""Folders and modules of the user's that have the names of hintplan's parts: each is found by its own name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = "import sys; sys.argv = ['hintplan', '--version']; from hintplan.plans.cli import main; main()"
PROGRAM = "import hintplan; hintplan.compile_sql, hintplan.execute; import plans; print(plans.__file__)"
NAMES = ("plans", "planner", "runtime")


@pytest.mark.parametrize("shape", ["package", "module"])
def test_both_can_be_imported(tmp_path: Path, shape: str) -> None:
    for name in NAMES:
        file = tmp_path / name / "__init__.py" if shape == "package" else tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    outputs = []
    for program in (COMMAND, PROGRAM):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0].startswith("hintplan 0.1.0")
    assert outputs[1].startswith(str(tmp_path / "plans"))
