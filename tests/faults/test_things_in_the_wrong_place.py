"""What a run says of links to nowhere, of folders and files in each other's place, and of logs that are gone or others.

The message names the thing and the true cause. Some of it happens before the first run of a job, some after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from tests.connectors.lakes.lakes import IcebergLake
from tests.faults.older_sinks import CopyJob
from tests.sample import sampled

pytestmark = [pytest.mark.spark]

LINK = "{what} is a symbolic link to .*nowhere, where there is nothing"
SINKS: dict[str, Callable[[Path], dict[str, str]]] = {
    "filesystem": lambda at: {"connector": "filesystem", "path": f"{at}/out", "format": "json"},
    "delta": lambda at: {"connector": "delta", "table-path": f"{at}/out"},
    "iceberg": lambda at: IcebergLake(at / "lake").options("r") | {"warehouse": f"{at}/out"},
    "sqlite": lambda at: {"connector": "jdbc", "url": f"jdbc:sqlite:{at}/out/r.db", "table-name": "r"},
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is done to the place ``what`` before a run, the second one if it ``began``, and what the run says."""

    sink: str
    what: str
    do: Callable[[Path], None]
    says: str
    began: bool = True

    def __str__(self) -> str:
        return f"{self.sink}-{self.what}-{self.do.__name__}{'' if self.began else '-at-first'}"


def link(path: Path) -> None:
    remove(path)
    path.symlink_to("nowhere")


def file(path: Path) -> None:
    remove(path)
    path.write_text("x")


def folder(path: Path) -> None:
    remove(path)
    path.mkdir()


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def garbage(path: Path) -> None:
    path.write_text("x")


ENTRY = "out/_delta_log/00000000000000000001.json"
LACKS = "this checkpoint has written batches up to 0 to .*, which {}: their rows are lost"
CASES = [
    Case("filesystem", "in", link, "table s cannot be read: .*" + LINK.format(what="/in"), began=False),
    Case("filesystem", "in/0.csv", link, LINK.format(what="/in/0.csv") + ", and Spark would pass it over"),
    *(Case(sink, "out", link, LINK.format(what="/out"), began=False) for sink in SINKS),
    Case("filesystem", "out", file, "/out.* cannot be read: Not a directory", began=False),
    Case("delta", "out", file, "/out is a file", began=False),
    Case("iceberg", "out", file, "Cannot create directory .*/out/db/r.* Not a directory", began=False),
    Case("sqlite", "out", file, "SQLite cannot open .*/out/r.db: .*/out is a file", began=False),
    Case("sqlite", "out/r.db", folder, "SQLite cannot open .*/out/r.db: it is a directory", began=False),
    Case("filesystem", "checkpoint", link, LINK.format(what="/checkpoint")),
    Case("filesystem", "checkpoint", link, LINK.format(what="/checkpoint"), began=False),
    Case("filesystem", "checkpoint", file, "/checkpoint/hintplan cannot be read: Not a directory", began=False),
    Case("filesystem", "checkpoint/sink_r", file, "sink_r/ is a file, where a directory must be"),
    Case("filesystem", "checkpoint/sink_r/offsets/0", folder, "offsets/0 is a directory, where a file must be"),
    Case("filesystem", "checkpoint/sink_r/metadata", folder, "sink_r/metadata is a directory, where a file must be"),
    Case("filesystem", "checkpoint/hintplan/record.jsonl", folder, "/record.jsonl cannot be read: Is a directory"),
    Case("filesystem", "checkpoint/hintplan", file, "/checkpoint/hintplan cannot be read: Not a directory"),
    Case("filesystem", "checkpoint/hintplan.lock", folder, r"Is a directory \(.*/hintplan.lock\)"),
    Case("filesystem", "checkpoint/hintplan.lock", link, "hintplan.lock is a symbolic link, which no run makes"),
    Case("filesystem", "out/_spark_metadata", remove, LACKS.format("has none of them")),
    Case("filesystem", "out/_spark_metadata", file, "/out/_spark_metadata cannot be read: Not a directory"),
    Case("filesystem", "out/_spark_metadata", link, LINK.format(what="/out/_spark_metadata")),
    Case("filesystem", "out/_spark_metadata/0", garbage, "/out/_spark_metadata/0 was changed after Spark wrote it"),
    Case("filesystem", "out/_spark_metadata/0", folder, "/out/_spark_metadata/0 cannot be read: Is a directory"),
    Case("filesystem", "out/_spark_metadata/0", link, LINK.format(what="/out/_spark_metadata/0")),
    Case("delta", "out/_delta_log", remove, "/out has files, but no log of a Delta table"),
    Case("delta", "out/_delta_log", file, "/out/_delta_log is a file, where a directory must be"),
    Case("delta", "out/_delta_log", link, LINK.format(what="/out/_delta_log")),
    Case("delta", ENTRY, link, LINK.format(what=f"/{ENTRY}")),
    Case("delta", ENTRY, folder, f"/{ENTRY} is a directory, where a file must be"),
    Case("delta", ENTRY, garbage, f"/{ENTRY} is not a log file of a Delta table: a line is not JSON"),
    Case("delta", ENTRY, remove, LACKS.format("has none of them")),
    Case("delta", ENTRY.replace("1.json", "0.json"), remove, "/0+.json is missing"),
    Case("iceberg", "metadata.json", link, LINK.format(what=r"/out/.*\.metadata.json")),
    Case("iceberg", "metadata.json", garbage, "it is not the metadata of an Iceberg table: .*Invalid JSON"),
    Case("iceberg", "metadata.json", remove, r"/out/.*\.metadata.json.* No such file"),
]


@pytest.mark.parametrize("case", sampled([pytest.param(case, id=str(case)) for case in CASES], keep=10))
def test_the_message_names_the_thing_and_the_true_cause(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    if case.began and case.sink == "sqlite":
        (tmp_path / "out").mkdir()
    job = CopyJob(spark, tmp_path, SINKS[case.sink](tmp_path))
    if case.began:
        job.batch(1)
    for place in places(tmp_path, case):
        case.do(place)
    with pytest.raises(RunError, match=case.says) as caught:
        job.again() if case.what.startswith("in") else job.batch(2)
    assert "Traceback" not in str(caught.value)


def places(at: Path, case: Case) -> list[Path]:
    if case.what == "metadata.json":
        return list((at / "out").rglob("*.metadata.json"))
    (at / case.what).parent.mkdir(parents=True, exist_ok=True)
    return [at / case.what]
