"""Each form of SQL on this version of Spark, and on Spark Connect, over a restart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.runtime.run.execute import execute
from tests.runtime.run import forms
from tests.sample import in_turn

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 300


def test_each_form_gives_its_rows_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    plan = forms.plan_of(tmp_path)
    for add, ends in ((forms.add_first, {"once": True}), (forms.add_second, {"drain": True})):
        add(tmp_path)
        checkpoint = str(tmp_path / "checkpoint")
        execution = execute(plan, spark, checkpoint=checkpoint, policy=Policy(modules=forms.MODULES), **ends)
        assert execution.await_termination(DEADLINE_SECONDS)
    forms.check(tmp_path)


@in_turn(0, of=3)
@pytest.mark.integration
@pytest.mark.usefixtures("connect_port")
def test_each_form_gives_its_rows_on_spark_connect(tmp_path: Path) -> None:
    hintplan.dump(forms.plan_of(tmp_path), tmp_path / "plan.json")
    modules = [argument for module in forms.MODULES for argument in ("--allow-module", module)]
    command = ["-m", "hintplan", "run", "plan.json", "--checkpoint", "state", "--remote", "local[2]"]
    for add, end in ((forms.add_first, "--once"), (forms.add_second, "--drain")):
        add(tmp_path)
        done = subprocess.run(
            [sys.executable, *command, end, *modules],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    forms.check(tmp_path)
