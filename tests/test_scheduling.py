"""Tests that share a fixture which starts slowly are handed to one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.scheduling import ROOT, group_of

TWO_FILES = """
import os
import pytest
from pathlib import Path

@pytest.mark.parametrize("n", [1, 2, 3])
def test_{name}(n, cluster):
    pass

def test_alone():
    pass
"""
CONFTEST = """
import os
from pathlib import Path
import pytest
import tests.scheduling

tests.scheduling.ROOT = Path(__file__).parent

def pytest_xdist_make_scheduler(config, log):
    return tests.scheduling.SharedFixtures(config, log)

@pytest.fixture(scope="session")
def cluster():
    Path(os.environ["PYTEST_XDIST_WORKER"]).touch()
"""


def test_a_test_is_in_the_group_of_what_it_shares_or_of_its_file() -> None:
    file = "tests/cluster/test_standalone.py"
    assert group_of(f"{file}::test_a_module_that_is_nowhere_is_named") == "cluster"
    assert group_of(f"{file}::test_bare_workers_write_and_read_the_files_of_lakes[delta]") == "cluster"
    assert group_of("tests/cluster/test_submit.py::test_a_local_run_needs_nothing_but_the_wheel") == (
        "tests/cluster/test_submit.py"
    )


def test_a_shared_fixture_starts_in_one_process_whatever_files_ask_for_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(TWO_FILES.replace("{name}", name))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path, env={"PATH": "", "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    assert len(list(tmp_path.glob("gw*"))) == 1
