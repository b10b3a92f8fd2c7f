"""The wheel as reviewers install it, without Spark: what each command does there, how large it is, and what it says
where something is missing, or where another distribution has packages of its names.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hintplan.plans.commands.root import COMMANDS
from tests.cluster.conftest import Run
from tests.cluster.installed import environment, installed, installed_for_reviews

SQL = """\
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (id BIGINT, country STRING) WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');
CREATE TABLE counts (country STRING, n BIGINT) WITH ('connector' = 'print');
"""
COUNTS = "INSERT INTO counts SELECT country, COUNT(*) FROM orders GROUP BY country;\n"
TTL = "aggregate_orders.state.groupAggregateState.ttl"
EVIDENCE = """\
{
  "evidence": 1, "plan": "job", "at": "2026-03-13T10:00:00.000Z",
  "states": {
    "aggregate_orders.groupAggregateState": {
      "ttl": "3 d", "rows": 2, "bytes": 128, "row-ages": [[3600000, 2]],
      "periods": [
        {
          "since": "2026-03-01T10:00:00.000Z", "until": "2026-03-13T10:00:00.000Z", "ttl": "3 d",
          "hits": [[3600000, 40000]], "misses": [], "written": 40002, "expired": 0, "sampled": false
        }
      ]
    }
  }
}
"""
MEGABYTE = 1_000_000

Hintplan = Callable[..., str]


@pytest.fixture(scope="module")
def packages() -> Path:
    """Where the wheel and what came with it are."""
    (found,) = installed_for_reviews().glob("lib/python3*/site-packages")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a script, not beside any code of hintplan's."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.json").write_text('{"id": 1, "country": "se"}\n{"id": 2, "country": "se"}\n')
    (tmp_path / "job.sql").write_text(SQL + COUNTS)
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(tmp_path))
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (tmp_path / ".gitignore").write_text("orders\nstate\n")
    return tmp_path


@pytest.fixture
def hintplan(folder: Path) -> Hintplan:
    """``hintplan("explain", "job.json")`` is what the installed command prints; ``code`` is what it must exit with."""

    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [installed_for_reviews() / "bin" / "hintplan", *words],
            cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return run


def commit(folder: Path) -> None:
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(folder))
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "Counts"], check=True)


def test_every_command_that_reviews_works_and_the_others_say_what_they_lack(folder: Path, hintplan: Hintplan) -> None:
    used = set()

    def said(command: str, *words: str, code: int = 0) -> str:
        used.add(command)
        return hintplan(command, *words, code=code)

    said("compile", "job.sql", "-o", "job.json")
    commit(folder)
    assert json.loads((folder / "job.json").read_text())["name"] == "job"
    assert "job.json" in said("validate", "job.json")
    assert "1 d" in said("explain", "job.json")
    said("show", "job.json", "-o", "job.html")
    assert "aggregate_orders" in (folder / "job.html").read_text()
    shutil.copy(folder / "job.json", folder / "base.json")
    assert "1 d → 3 d" in said("set", "job.json", f"{TTL}=3 d", "--reason", "late orders")
    assert "1 d → 3 d" in said("diff", "base.json", "job.json")
    assert "1 d → 3 d" in said("diff", "git:HEAD:job.json", "job.json")
    assert "edit wins" in said("why", "job.json", TTL)
    assert said("fmt", "--check", "job.json") == ""
    assert f"{TTL} = 3 d" in said("flat", "job.json")
    assert "1 setting changed" in said("ci", "--base", "git:main", "job.json")
    said("lint", "job.json")
    (folder / "evidence.json").write_text(EVIDENCE)
    assert "<- keeps 99.9 %" in said("advise", "job.json", "--evidence", "evidence.json")

    (folder / "job.sql").write_text(SQL.replace("'1 d'", "'2 d'") + COUNTS)
    hintplan("compile", "job.sql", "-o", "newer.json", "--name", "job")
    said("rebase", "job.json", "--onto", "newer.json", "-o", "rebased.json")
    assert "3 d" in hintplan("explain", "rebased.json")
    said("merge", "base.json", "job.json", "newer.json", "-o", "merged.json")
    assert "3 d" in hintplan("explain", "merged.json")
    said("git-setup", "*.json")
    assert "merge=hintplan" in (folder / ".gitattributes").read_text()

    assert "there is no directory state yet" in said("check", "job.json", "--checkpoint", "state")
    (folder / "declared.sql").write_text(SQL + f"EXPLAIN {COUNTS}")
    assert "aggregate_orders" in said("sql", "declared.sql")
    said("init", ".")
    assert (folder / ".vscode" / "settings.json").exists()
    assert "hintplan" in said("completion", "bash")
    assert json.loads(said("schema"))["$schema"]
    assert "dist/job_main.py" in said("bundle", "job.json", "-o", "dist", "--", "--once", "--checkpoint", "state")

    (folder / "job.test.yaml").write_text("plan: job.json\ntests: {}\n")
    on_spark = ("run job.json", "test job.test.yaml", "sql job.sql", "check job.json --checkpoint s3://bucket/state")
    for words in map(str.split, (*on_spark, "state .")):
        last = said(*words, code=64).splitlines()[-1]
        assert re.search(r", which this Python \(.*\) lacks: pip install 'hintplan\[(spark|state|test)\]'$", last)
    assert used == COMMANDS.keys()


def test_what_a_run_left_is_judged_without_spark(folder: Path, hintplan: Hintplan, run: Run, tmp_path: Path) -> None:
    """``check`` with what reviewers have, ``state`` with pyarrow and no PySpark."""
    hintplan("compile", "job.sql", "-o", "job.json")
    done = run("job.json", "--once", "--checkpoint", "state")
    assert done.returncode == 0, done.stderr
    assert "+I[se, 2]" in done.stdout
    hintplan("set", "job.json", f"{TTL}=3 d")
    assert "continues" in hintplan("check", "job.json", "--checkpoint", "state")
    (packages,) = installed().python.parents[1].glob("lib/python3*/site-packages")
    (tmp_path / "packages").mkdir()
    for entry in packages.iterdir():
        if not entry.name.startswith(("pyspark", "py4j")):
            (tmp_path / "packages" / entry.name).symlink_to(entry)
    command = (
        f"import sys; sys.path.append({str(tmp_path / 'packages')!r}); from hintplan.plans.cli import main; main()"
    )
    words = ("state", "job.json", "--checkpoint", "state", "--entry", "aggregate_orders", "--show", "1")
    seen = subprocess.run(
        [installed().python, "-I", "-S", "-c", command, *words],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (seen.returncode, seen.stderr) == (0, "")
    assert re.search(r"\bse\b.*\b2\b", seen.stdout)


def test_reviewers_install_less_than_a_tenth_of_what_a_run_needs(packages: Path) -> None:
    names = {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}
    assert names.isdisjoint({"pyspark", "py4j", "pyarrow", "numpy", "pandas"})
    brought = [path for path in packages.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
    size = sum(path.stat().st_size for path in brought if not path.relative_to(packages).parts[0].startswith(tools))
    assert size < 60 * MEGABYTE


def test_one_name_is_installed_and_its_types_are_read(packages: Path, tmp_path: Path) -> None:
    record = next(packages.glob("hintplan-*.dist-info")).joinpath("RECORD").read_text(encoding="utf-8")
    tops = {line.partition(",")[0].partition("/")[0] for line in record.splitlines()}
    assert {name for name in tops if not name.startswith(("..", "hintplan-"))} == {"hintplan"}
    (tmp_path / "program.py").write_text("import hintplan\n\nreveal_type(hintplan.load('plan.json').name)\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python_beside(packages), "program.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'Revealed type is "str"' in done.stdout
    assert "Success: no issues found in 1 source file" in done.stdout


def python_beside(packages: Path) -> Path:
    """The Python whose site-packages these are."""
    return packages.parents[2] / "bin" / "python"
