"""The recipes of the page for jobs of Flink: what a run of the first one may reach, and where reading starts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.connectors.policy import read_policy, refuse_reach
from hintplan.plans.text.redaction import variables_in

PAGE = (Path(__file__).parents[2] / "docs" / "moving-from-flink.md").read_text(encoding="utf-8")


def script(name: str) -> str:
    """The script that begins with its name."""
    found = re.findall(rf"^```sql\n(-- {name}\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (text,) = found
    return str(text)


def test_the_run_block_allows_all_that_the_job_needs_and_nothing_else(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "hintplan.toml"
    file.write_text(block, encoding="utf-8")
    policy = read_policy(file)
    tables = hintplan.compile_sql(script("pipeline.sql")).tables
    refuse_reach(tables, policy)
    for left_out in policy.hosts:
        with pytest.raises(hintplan.RunError, match="may not reach"):
            refuse_reach(tables, replace(policy, hosts=tuple(set(policy.hosts) - {left_out})))
    named = {name for table in tables.values() for name in variables_in(table.options)}
    assert named == set(policy.environment)


def test_a_job_can_start_where_flink_has_stopped() -> None:
    options = re.findall(r"`('scan\.startup\.mode' = [^`]*)`", PAGE)
    assert len(options) == 2
    for each in options:
        given = " ".join(each.split()).replace("'...'", "'1735689600000'")
        hinted = script("pipeline.sql").replace("FROM sales)", f"FROM sales /*+ OPTIONS({given}) */)")
        table = hintplan.compile_sql(hinted).tables["sales"]
        assert table.options["scan.startup.mode"] in ("specific-offsets", "timestamp")


def test_the_replay_reads_a_part() -> None:
    plan = hintplan.compile_sql(script("replay.sql"))
    assert plan.mode == "batch"
    bounds = ("scan.startup.timestamp-millis", "scan.bounded.timestamp-millis")
    assert [plan.tables["sales"].options[name] for name in bounds] == ["1735689600000", "1735700400000"]


def test_sinks_that_count_once_take_the_options_of_flink() -> None:
    """Of upsert-kafka and jdbc, as the table says."""
    tables = hintplan.compile_sql(script("pipeline.sql")).tables
    assert tables["top_products"].options["connector"] == "upsert-kafka"
    assert not any(key.startswith("sink.") for key in tables["top_products"].options)
