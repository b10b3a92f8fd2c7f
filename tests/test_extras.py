"""What is asked for without the extra that it needs: one line says what to install, as for wrong usage."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from hintplan.plans.extras import EXTRAS
from tests.links import link_package
from tests.plans.in_process import hintplan

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SQL = """\
CREATE TABLE orders (id BIGINT, total DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');
CREATE TABLE sums (id BIGINT, total DOUBLE) WITH ('connector' = 'print');
"""
SUMS = "INSERT INTO sums SELECT id, SUM(total) FROM orders GROUP BY id;\n"
ON_SPARK = (
    "running on Spark needs pyspark, numpy and pyarrow, which this Python ({}) lacks: pip install 'hintplan[spark]'"
)
IN_STATE = "reading a checkpoint needs numpy and pyarrow, which this Python ({}) lacks: pip install 'hintplan[state]'"

Python = Callable[..., subprocess.CompletedProcess[str]]


def requirements(lines: list[str]) -> set[str]:
    """The distributions that these lines of pyproject.toml ask for, and what those that are extras of ours do."""
    names: set[str] = set()
    for line in lines:
        own = re.fullmatch(r"hintplan\[(\w+)\]", line)
        names |= requirements(PROJECT["optional-dependencies"][own[1]]) if own else set(re.findall(r"^[\w-]+", line))
    return names


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Python has that pip has brought hintplan to, without an extra."""
    folder = tmp_path_factory.mktemp("bare")
    (packages,) = (Path(path) for path in sys.path if (Path(path) / "sqlglot").is_dir())
    for name in ("click", "jsonschema_rs", "prompt_toolkit", "pygments", "rich", "sqlglot", "wcwidth"):
        (folder / name).symlink_to(packages / name)
    return folder


@pytest.fixture
def python(bare: Path, tmp_path: Path) -> Python:
    """``python(program, "run", ...)`` runs ``program`` with these arguments where a script and its plan are."""
    (tmp_path / "job.sql").write_text(SQL + SUMS)
    assert hintplan("compile", "job.sql", "-o", "plan.json", folder=tmp_path).returncode == 0
    path = f"import sys; sys.path += [{str(bare)!r}, {str(link_package(tmp_path / 'own'))!r}]\n"

    def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", path + program, *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


COMMAND = "from hintplan.plans.cli import main; main()"


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_brings_what_is_missed_without_it(name: str) -> None:
    assert requirements([f"hintplan[{name}]"]) == {*EXTRAS[name].packages}
    assert requirements(PROJECT["dependencies"]).isdisjoint(EXTRAS[name].packages)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "plan.json"), ON_SPARK),
        (("run", "plan.json", "--once", "--remote", "sc://127.0.0.1:1"), ON_SPARK),
        (("run", "there-is-none.json"), ON_SPARK),
        (("check", "plan.json", "--checkpoint", "hdfs://127.0.0.1:1/state"), ON_SPARK),
        (("sql", "job.sql"), ON_SPARK),
        (("sql", "job.sql", "--continue-on-error"), ON_SPARK),
        (("state", "."), IN_STATE),
        (("state", "plan.json", "--checkpoint", ".", "--show", "1"), IN_STATE),
        (("state", ".", "--snapshot", "copy"), IN_STATE),
        (("state", ".", "--compact"), IN_STATE),
    ],
)
def test_a_command_says_in_one_line_what_to_install(python: Python, words: tuple[str, ...], said: str) -> None:
    done = python(COMMAND, *words)
    *before, last = done.stderr.splitlines()
    assert (done.returncode, last, done.stdout) == (64, said.format(sys.executable), "")
    # What a script has declared before is told as ever.
    assert len(before) == (2 if words[0] == "sql" else 0), done.stderr


@pytest.mark.parametrize("name", ["run", "state", "sql", "check"])
def test_their_help_needs_nothing(python: Python, name: str) -> None:
    done = python(COMMAND, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: hintplan {name} [OPTIONS]")


def test_wrong_usage_comes_first(python: Python) -> None:
    assert (
        "--once processes the existing rows" in python(COMMAND, "run", "plan.json", "--once", "--trigger", "1 s").stderr
    )
    assert "make the snapshot first" in python(COMMAND, "state", ".", "--snapshot", "copy", "--compact").stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("hintplan.execute", ON_SPARK),
        ("hintplan.Session", ON_SPARK),
        ("hintplan.check(hintplan.load('plan.json'), 'hdfs://127.0.0.1:1/state')", ON_SPARK),
        ("hintplan.read_state", IN_STATE),
        ("hintplan.compact_state", IN_STATE),
    ],
)
def test_a_program_is_told_the_same(python: Python, asked: str, said: str) -> None:
    program = f"import hintplan\ntry: {asked}\nexcept hintplan.RunError as error: print(error)"
    done = python(program)
    assert (done.stdout.rstrip("\n"), done.stderr) == (said.format(sys.executable), "")


def test_a_local_checkpoint_is_checked_without(python: Python) -> None:
    done = python(COMMAND, "check", "plan.json", "--checkpoint", "state")
    assert (done.returncode, done.stderr) == (0, "")
    program = "import hintplan; print(hintplan.check(hintplan.load('plan.json'), 'state'))"
    assert python(program).stdout == done.stdout
