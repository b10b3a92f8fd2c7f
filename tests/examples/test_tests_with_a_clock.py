"""The tests with a clock of the examples pass, and so does the first file of the page on them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.plans.in_process import hintplan

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hintplan-test.md"
SQL = """
SET 'table.exec.state.ttl' = '3 h';
CREATE TABLE orders (id BIGINT, total DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE payments (order_id BIGINT, `method` STRING)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'p');
CREATE TABLE paid (id BIGINT, total DECIMAL(10, 2), `method` STRING) WITH ('connector' = 'print');
INSERT INTO paid SELECT o.id, o.total, p.`method` FROM orders AS o JOIN payments AS p ON o.id = p.order_id;
"""
ON_SPARK = {"enrich", "functions"}
"""Examples with lookups and calls, whose keys and arguments Spark computes."""
ALLOWED = {"functions": ("--allow-module", "nearby")}
EXAMPLES = sorted({path.relative_to(ROOT / "examples").parts[0] for path in (ROOT / "examples").rglob("*.test.yaml")})


def test_the_examples_that_are_streams_of_one_script_have_tests() -> None:
    assert EXAMPLES == ["enrich", "flights", "functions", "review"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.spark] if name in ON_SPARK else []) for name in EXAMPLES]
)
def test_the_tests_of_an_example_pass_however_its_steps_are_cut(name: str) -> None:
    done = hintplan("test", "--slices", "2", *ALLOWED.get(name, ()), folder=ROOT / "examples" / name)
    assert done.returncode == 0, done.stdout


def test_a_longer_ttl_fails_a_test_of_an_example(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "review" / "jobs", tmp_path / "jobs")
    script = tmp_path / "jobs" / "orders.sql"
    script.write_text(script.read_text(encoding="utf-8").replace("'o' = '1 d'", "'o' = '3 d'"), encoding="utf-8")
    done = hintplan("test", folder=tmp_path)
    assert done.returncode == 1
    assert re.findall(r"^  (ok|failed) +(.+)  \(", done.stdout, re.MULTILINE) == [
        ("ok", "an order finds its customer within a day"),
        ("failed", "an order is forgotten after a day"),
        ("ok", "later orders of a country add up"),
    ]


def test_the_page_begins_with_tests_that_pass_and_a_failure_that_a_longer_ttl_gives(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "paid.sql").write_text(SQL)
    (tmp_path / "paid.test.yaml").write_text(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    assert hintplan("compile", "paid.sql", "-o", "paid.json", folder=tmp_path).returncode == 0
    assert hintplan("test", folder=tmp_path).returncode == 0
    words = ("set", "paid.json", "join_o_p.leftState.ttl=4 h", "--reason", "longer")
    assert hintplan(*words, folder=tmp_path).returncode == 0
    printed = re.findall(r"```text\n\$ hintplan test\n(.*?)```", page, re.DOTALL)[0]
    done = hintplan("test", folder=tmp_path)
    times = re.compile(r"\d+ ms|[\d.]+ s$", re.MULTILINE)
    assert times.sub("T", done.stdout) == times.sub("T", printed)
