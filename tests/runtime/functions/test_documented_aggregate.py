"""The example in docs/aggregate-functions.md does what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sample import in_turn

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "aggregate-functions.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@in_turn(1, of=2)
@pytest.mark.spark
def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(block("python"), encoding="utf-8")
    (tmp_path / "prices.sql").write_text(block("sql"), encoding="utf-8")
    launcher = tmp_path / "bin" / "hintplan"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hintplan "$@"\n')
    launcher.chmod(0o755)
    path = os.pathsep.join([str(launcher.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": "", "PYTHONUTF8": "1", "NO_COLOR": "1"}
    for part in re.split(r"^\$ ", block("console"), flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(shown.replace("...\n", "").splitlines()), line
