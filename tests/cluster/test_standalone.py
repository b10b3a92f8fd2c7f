"""Runs on a standalone cluster of two bare workers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import hintplan
from tests.cluster.conftest import Run
from tests.cluster.installed import environment, installed
from tests.cluster.jobs import check_run_and_restart, prepare_rates, prepare_words
from tests.cluster.standalone import Cluster
from tests.connectors.lakes.iceberg_reader import iceberg_rows
from tests.connectors.lakes.readers import delta_rows
from tests.connectors.lookup.test_lookups_on_spark import results
from tests.runtime.functions.test_functions_on_spark import FOUND, tuples
from tests.sample import in_turn, sampled
from tests.spark.programs import revenue_plan

pytestmark = pytest.mark.part(of=2)


def test_joins_and_aggregates_keep_their_state_across_a_restart(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    check_run_and_restart(run, tmp_path, *cluster.options())


@in_turn(0, of=2)
@pytest.mark.parametrize("sent", sampled(["by --allow-module", "by spark.submit.pyFiles"], keep=1))
def test_the_module_of_a_function_goes_along(sent: str, cluster: Cluster, run: Run, tmp_path: Path) -> None:
    module = prepare_words(tmp_path)
    own = tmp_path / "own"
    conf = {"spark.submit.pyFiles": str(own / f"{module}.py")} if "pyFiles" in sent else {}
    found = {} if conf else {"PYTHONPATH": str(own)}
    job = ("plan.json", "--once", "--checkpoint", "state", "--allow-module", module)
    done = run(*job, *cluster.options(**conf), **found)
    assert done.returncode == 0, done.stderr
    assert tuples(tmp_path) == FOUND
    assert "correlate_w: 10 calls · 5 rows out · 5 failures · 5 retries" in done.stderr


@in_turn(1, of=2)
def test_the_package_of_a_lookup_class_goes_along(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    module = prepare_rates(tmp_path)
    own = {"PYTHONPATH": str(tmp_path / "own")}
    done = run("plan.json", "--once", "--checkpoint", "state", "--allow-module", module, *cluster.options(), **own)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path) == [(1, 1.1), (2, None), (3, 1.1)]


def test_a_module_that_is_nowhere_is_named(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    module = prepare_words(tmp_path)
    done = run("plan.json", "--once", "--checkpoint", "state", "--allow-module", module, *cluster.options())
    assert done.returncode == 1
    assert "the class words_of_text.AsyncWords cannot be loaded: No module named 'words_of_text'" in done.stderr
    assert "PYTHONPATH" in done.stderr


def test_a_checkpoint_must_be_where_all_workers_reach_it(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    hintplan.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    done = run("plan.json", "--once", *cluster.options())
    assert done.returncode == 1
    assert "keeps its state in a checkpoint that all workers can reach" in done.stderr


LAKES = {
    "delta": "'table-path' = '{name}'",
    "iceberg": "'catalog-name' = 'lake', 'catalog-type' = 'jdbc', 'uri' = 'jdbc:sqlite:lake.db', "
    "'catalog-database' = 'shop', 'catalog-table' = '{name}', 'warehouse' = 'lake'",
}


@in_turn(1, of=2)
@pytest.mark.parametrize("lake", sampled(LAKES, keep=1))
def test_bare_workers_write_and_read_the_files_of_lakes(cluster: Cluster, tmp_path: Path, lake: str) -> None:
    """Of deltalake and pyiceberg, which are on the driver alone, they know nothing."""
    found = installed("delta", "iceberg")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text("".join(f'{{"id": {i}, "v": {i % 7}}}\n' for i in range(1000)))
    options = {name: f"'connector' = '{lake}', {LAKES[lake].format(name=name)}" for name in ("copies", "newest")}
    tables = f"""
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE copies (id BIGINT, v BIGINT) PARTITIONED BY (v) WITH ({options["copies"]});
CREATE TABLE newest (v BIGINT, id BIGINT, PRIMARY KEY (v) NOT ENFORCED) WITH ({options["newest"]});
"""
    files = "'connector' = 'filesystem', 'format' = 'json'"
    (tmp_path / "write.sql").write_text(f"""{tables}
CREATE TABLE o (id BIGINT, v BIGINT) WITH ({files}, 'path' = 'in');
INSERT INTO copies SELECT id, v FROM o;
INSERT INTO newest SELECT v, MAX(id) FROM o GROUP BY v;
""")
    (tmp_path / "read.sql").write_text(f"""{tables}
CREATE TABLE r (v BIGINT, n BIGINT, id BIGINT) WITH ({files}, 'path' = 'out');
INSERT INTO r SELECT v, COUNT(*), MAX(n.id) FROM copies JOIN newest AS n USING (v) GROUP BY v;
""")
    write, read = (("run", f"{name}.json", *cluster.options()) for name in ("write", "read"))
    compiled = (("compile", f"{name}.sql", "-o", f"{name}.json") for name in ("write", "read"))
    for arguments in (*compiled, write, write, read):
        done = subprocess.run(
            [found.hintplan, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def rows(name: str) -> list[tuple[int, ...]]:
        there = delta_rows(tmp_path / name) if lake == "delta" else iceberg_rows(tmp_path / "lake.db", name)
        return sorted(there)

    last = {v: 999 - (999 - v) % 7 for v in range(7)}
    assert rows("copies") == sorted([(i, i % 7) for i in range(1000)] * 2)
    assert rows("newest") == sorted(last.items())
    out = [json.loads(line) for path in (tmp_path / "out").glob("*.json") for line in path.open()]
    each = {v: sum(i % 7 == v for i in range(1000)) for v in range(7)}
    assert sorted((row["v"], row["n"], row["id"]) for row in out) == [(v, 2 * each[v], last[v]) for v in range(7)]
