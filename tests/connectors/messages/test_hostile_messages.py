"""Messages that somebody else writes, from topic to topic: their texts stay what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.connectors.hostile import CANARY, SECRET, TEXTS, seen
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.test_topics import source, table

pytestmark = pytest.mark.spark

ROWS = [{"k": k, "s": text} for k, text in enumerate(TEXTS)]


def test_texts_stay_what_they_are(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CANARY, SECRET)
    came, copied, csv, keyed, again = (broker.create() for _ in range(5))
    broker.send(came, [(row["s"], json.dumps(row)) for row in ROWS])
    upserts = {"connector": "upsert-kafka", "key__format": "json", "value__format": "json"}
    script = (
        source("came", "k INT, s STRING", broker, came)
        + source("csv_again", "k INT, s STRING", broker, csv, format="csv")
        + table("copied", "k INT, s STRING", broker, topic=copied, format="json")
        + table("csv", "k INT, s STRING", broker, topic=csv, format="csv")
        + table("again", "k INT, s STRING", broker, topic=again, format="json")
        + table("keyed", "s STRING NOT NULL, k INT, PRIMARY KEY (s) NOT ENFORCED", broker, topic=keyed, **upserts)
    )
    selects = {"copied": "k, s", "csv": "k, s", "keyed": "s, k"}
    first = "".join(f"INSERT INTO {name} SELECT {columns} FROM came;" for name, columns in selects.items())
    inside = tmp_path / "inside"
    for name, inserts in (("first", first), ("second", "INSERT INTO again SELECT k, s FROM csv_again;")):
        plan = hintplan.compile_sql(f"{script} BEGIN STATEMENT SET; {inserts} END;", name=name)
        execution = execute(plan, spark, checkpoint=str(inside / name), once=True)
        assert execution.await_termination(120)
        execution.raise_failure()
    for topic in (copied, again):
        found = [json.loads(message.value or b"") for message in broker.read(topic)]
        assert sorted(found, key=lambda row: row["k"]) == ROWS
    latest = {json.loads(key or b"")["s"]: json.loads(value) for key, value in broker.latest(keyed).items()}
    assert latest == {row["s"]: row for row in ROWS}
    assert {path.split("/")[0] for path in seen(tmp_path)} == {"inside"}
