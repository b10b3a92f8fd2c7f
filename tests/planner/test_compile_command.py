"""``hintplan compile`` at the command line: where output goes, how findings look, exit codes, the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hintplan as api
from hintplan.plans.settings.layers import layers_of
from tests.plans.in_process import Done
from tests.plans.in_process import hintplan as command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
JOB = """SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE orders (id BIGINT, custkey BIGINT, total DOUBLE) WITH ('connector' = 'datagen');
CREATE TABLE customers (custkey BIGINT, country STRING) WITH ('connector' = 'datagen');
CREATE TABLE result (country STRING, n BIGINT, revenue DOUBLE) WITH ('connector' = 'print');
INSERT INTO result
SELECT /*+ STATE_TTL('t' = '7 d') */ country, COUNT(*), SUM(total)
FROM (SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '20 d') */ o.total, c.country
      FROM orders o LEFT JOIN customers c ON o.custkey = c.custkey WHERE o.total > 10) t
GROUP BY country;
"""


def hintplan(*arguments: str, cwd: Path, stdin: str = "") -> Done:
    return command(*arguments, folder=cwd, stdin=stdin)


def process(*arguments: str, cwd: Path, seed: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    words = [sys.executable, "-m", "hintplan", *arguments]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.sql").write_text(JOB)
    return tmp_path


def test_plan_goes_to_standard_output_or_to_a_file(folder: Path) -> None:
    shown = hintplan("compile", "job.sql", cwd=folder)
    written = hintplan("compile", "job.sql", "-o", "plan.json", cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    assert (folder / "plan.json").read_text() == shown.stdout
    assert hintplan("compile", "job.sql", "-o", "-", cwd=folder).stdout == shown.stdout
    assert not (folder / "-").exists()
    plan = api.load(folder / "plan.json")
    assert plan.name == "job"
    assert [o.id for o in plan.operators] == [
        "scan_orders", "calc_o", "scan_customers", "join_o_c", "aggregate_t", "calc_t", "sink_result",
    ]  # fmt: skip


def test_script_is_read_from_standard_input(folder: Path) -> None:
    piped = hintplan("compile", "-", cwd=folder, stdin=JOB)
    assert piped.returncode == 0
    assert '"name": "result"' in piped.stdout
    named = hintplan("compile", "-", "--name", "job", cwd=folder, stdin=JOB)
    from_file = hintplan("compile", "job.sql", cwd=folder).stdout
    assert named.stdout == from_file.replace('  "source": "job.sql",\n', "")
    assert named.stdout != from_file


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(folder: Path) -> None:
    (folder / "windows").mkdir()
    (folder / "windows" / "job.sql").write_bytes(b"\xef\xbb\xbf" + JOB.replace("\n", "\r\n").encode())
    assert (
        hintplan("compile", "windows/job.sql", cwd=folder).stdout == hintplan("compile", "job.sql", cwd=folder).stdout
    )


def test_same_script_gives_the_same_bytes_under_any_hash_seed(folder: Path) -> None:
    plans = {process("compile", "job.sql", cwd=folder, seed=seed).stdout for seed in ("0", "1")}
    assert plans == {hintplan("compile", "job.sql", cwd=folder).stdout}


def test_setting_on_the_command_line_wins(folder: Path) -> None:
    done = hintplan("compile", "job.sql", "-c", "table.exec.state.ttl=30 min", "-o", "plan.json", cwd=folder)
    assert done.returncode == 0
    plan = api.load(folder / "plan.json")
    assert dict(plan.config) == {"table.exec.state.ttl": "30 min"}
    assert layers_of(plan.operator("join_o_c").state[0].settings, "ttl") == {"config": "30 min", "hint": "1 d"}  # type: ignore[union-attr]


def test_error_shows_the_line_with_a_caret_and_leaves_the_old_plan_alone(folder: Path) -> None:
    (folder / "plan.json").write_text("old")
    (folder / "job.sql").write_text(JOB.replace("o.custkey = c.custkey", "o.custkey = c.custky"))
    failed = hintplan("compile", "job.sql", "-o", "plan.json", cwd=folder)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (
        "job.sql:8:58: error: unknown column 'custky' in 'c'\n"
        "        FROM orders o LEFT JOIN customers c ON o.custkey = c.custky WHERE o.total > 10) t\n"
        f"{' ' * 59}^\n"
        "  hint: did you mean 'custkey'?\n"
    )
    assert (folder / "plan.json").read_text() == "old"


def test_warning_is_shown_and_is_an_error_if_strict(folder: Path) -> None:
    hint = "SELECT /*+ STATE_TTL('orders' = '1 d') */ 'x', id, total FROM orders"
    (folder / "job.sql").write_text(f"{JOB.split('INSERT')[0]}INSERT INTO result {hint};")
    finding = (
        "STATE_TTL has no effect: this query block has no join and no aggregation\n"
        f"  INSERT INTO result {hint};\n"
        f"{' ' * 42}^\n"
        "  hint: put it after the SELECT of the block that joins or groups\n"
    )
    warned = hintplan("compile", "job.sql", cwd=folder)
    assert warned.returncode == 0
    assert warned.stderr == f"job.sql:5:41: warning: {finding}"
    strict = hintplan("compile", "job.sql", "--strict-hints", cwd=folder)
    assert (strict.returncode, strict.stdout) == (1, "")
    assert strict.stderr == f"job.sql:5:41: error: {finding}"


def test_wrong_usage_is_told_apart_from_a_wrong_script(folder: Path) -> None:
    assert hintplan("compile", cwd=folder).returncode == 64
    assert hintplan("compile", "job.sql", "-c", "novalue", cwd=folder).returncode == 64
    unknown = hintplan("compile", "job.sql", "-c", "table.exec.state.tl=1 h", cwd=folder)
    assert unknown.returncode == 1
    assert "did you mean 'table.exec.state.ttl'?" in unknown.stderr
    missing = hintplan("compile", "none.sql", cwd=folder)
    assert missing.returncode == 1
    assert missing.stderr.startswith("none.sql: ")


def test_script_that_is_not_text_is_refused(folder: Path) -> None:
    (folder / "job.sql").write_bytes(b"SELECT 1\n\xff\xfe")
    failed = hintplan("compile", "job.sql", cwd=folder)
    assert failed.returncode == 1
    assert failed.stderr.startswith("job.sql:2:1: the script is not UTF-8")


def test_compiling_needs_neither_spark_nor_arrow_nor_pandas(folder: Path) -> None:
    code = (
        "import sys; sys.argv = ['hintplan', 'compile', 'job.sql', '-o', 'plan.json']\n"
        "from hintplan.plans.cli import main\n"
        "try: main()\n"
        "except SystemExit as done: assert done.code == 0, done.code\n"
        "print(sorted({'pyspark', 'pyarrow', 'pandas', 'numpy', 'hintplan.runtime'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_debug_shows_the_traceback_of_an_error_in_the_script(folder: Path) -> None:
    (folder / "job.sql").write_text("SELECT")
    assert "Traceback" not in hintplan("compile", "job.sql", cwd=folder).stderr
    shown = hintplan("compile", "job.sql", "--debug", cwd=folder)
    assert shown.returncode == 1
    assert "Traceback" in shown.stderr
    assert "SqlError" in shown.stderr
