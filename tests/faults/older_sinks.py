"""A job that copies numbers into a sink, to which something happens between two of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink
from hintplan.runtime.run.execute import execute

POLICY = Policy(environment=("HINTPLAN_TEST_PASSWORD",))
ID = (TableColumn(name="id", type="BIGINT NOT NULL"),)


@dataclass(frozen=True, slots=True)
class CopyJob:
    """Reads files with numbers below ``directory``, each file as a batch, and writes them to a sink."""

    spark: SparkSession
    directory: Path
    sink: Mapping[str, str]
    key: bool = False

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    def batch(self, *numbers: int, checkpoint: Path | None = None, agreed: bool = False) -> None:
        """Run once more, with another file of ``numbers``."""
        files = self.directory / "in"
        files.mkdir(exist_ok=True)
        (files / f"{len(list(files.iterdir()))}.csv").write_text("".join(f"{n}\n" for n in numbers), encoding="utf-8")
        self.again(checkpoint=checkpoint, agreed=agreed)

    def again(self, *, checkpoint: Path | None = None, agreed: bool = False) -> None:
        """Run once more, on the files that are there."""
        where = str(checkpoint or self.checkpoint)
        running = execute(self.plan(), self.spark, checkpoint=where, once=True, policy=POLICY, allow_older_sink=agreed)
        assert running.await_termination(180)

    def plan(self) -> Plan:
        source = {"connector": "filesystem", "path": str(self.directory / "in"), "format": "csv"}
        tables = {
            "s": Table(columns=ID, options=source),
            "r": Table(columns=ID, options=dict(self.sink), primary_key=("id",) if self.key else ()),
        }
        scan = Scan(id="scan_s", table="s", columns=("id",))
        return Plan(name="copy", tables=tables, operators=(scan, Sink(id="sink_r", inputs=("scan_s",), table="r")))

    def refuses(self, said: str) -> None:
        """The next run starts nothing, and names the table and what it lacks."""
        wanted = rf"table r: this checkpoint has written batches up to 1 to .*, which {said}: their rows"
        with pytest.raises(RunError, match=wanted) as caught:
            execute(self.plan(), self.spark, checkpoint=str(self.checkpoint), once=True, policy=POLICY)
        assert "allow_older_sink=True" in str(caught.value)
