"""Runs a plan every hour on what has come since, in Airflow 3; a later task sees what the run said of itself.

Put this file, and the plan, where the environment variables below say, or change it as you like. A worker needs the
command ``hintplan`` with its extra ``spark``.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag, task

PLAN = os.environ.get("HINTPLAN_PLAN", "/opt/plans/revenue.json")
CHECKPOINT = os.environ.get("HINTPLAN_CHECKPOINT", "/mnt/checkpoints/revenue")

RUN = """
setsid hintplan run "$PLAN" --once --json \
  --checkpoint "$CHECKPOINT" --wait '10 min' --max-restarts 5 --grace '45 s' > events &
run=$!
trap 'kill -TERM $run; wait $run; exit $?' TERM
wait $run
code=$?
tail -n 1 events
exit $code
"""
# Airflow ends a task by SIGTERM to its process group, and has 60 s patience. In a group of its own, hintplan gets the
# one that is passed on to it, and finishes its batch. The last line that is printed is the event "end".


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a checkpoint has one run at a time
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
)
def hintplan_revenue() -> None:
    run = BashOperator(
        task_id="run",
        bash_command=RUN,
        env={"PLAN": PLAN, "CHECKPOINT": CHECKPOINT},
        append_env=True,
        output_processor=json.loads,
        execution_timeout=timedelta(hours=2),
    )

    @task
    def report(end: dict) -> str:
        return f"{end['plan']}: {end['status']} after {end['batches']} batches, {end['rows_out']} rows out"

    report(run.output)


hintplan_revenue()
