"""Directories with other files are refused as checkpoints, and left as they are, but not what a run has begun."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.checkpoint.files import NO_FILES
from hintplan.runtime.run import building
from hintplan.runtime.run.in_advance import refuse_in_advance
from tests.runtime.run.test_in_advance import job

FOREIGN = {
    "a file": ["important.csv"],
    "the parent of sources": ["orders/0.json", "customers/"],
    "a table of Iceberg": ["t/metadata/v1.json", "t/data/0.parquet"],
    "a checkpoint of Spark": ["metadata", "offsets/0", "commits/0"],
    "the parent of checkpoints": ["revenue/hintplan/record.jsonl", "revenue/hintplan.lock"],
    "an empty directory in it": ["data/"],
}
OURS = {
    "nothing": [],
    "what systems leave": ["lost+found/", ".DS_Store", ".nfs00000001", "Thumbs.db"],
    "a run that ended before its record": ["hintplan.lock"],
    "the same where machines share it": ["hintplan.lease/1"],
    "the same on Spark Connect": ["hintplan/"],
    "files that came later": ["hintplan/_last", "sink_r/offsets/0", "notes.txt"],
}


def made(directory: Path, paths: list[str]) -> Path:
    for path in paths:
        file = directory / path
        (file if path.endswith("/") else file.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            file.write_text("" if path.endswith(".lock") else "{}")
    directory.mkdir(exist_ok=True)
    return directory


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("name", FOREIGN)
def test_before_spark_starts(tmp_path: Path, name: str, scheme: str) -> None:
    directory, _ = made(tmp_path / "d", FOREIGN[name]), (tmp_path / "in").mkdir()
    first = sorted({path.partition("/")[0] for path in FOREIGN[name]})[0]
    with pytest.raises(hintplan.RunError, match=rf"d is no checkpoint .* there is something in it: {first}"):
        refuse_in_advance(job(tmp_path / "in"), f"{scheme}{directory}", {})


@pytest.mark.parametrize("name", OURS)
def test_what_may_be_a_checkpoint_is_left_to_the_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    refuse_in_advance(job(tmp_path / "in"), str(made(tmp_path / "d", OURS[name])), {})


@pytest.mark.spark
def test_a_run_leaves_a_foreign_directory_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    plan = job(tmp_path / "in")
    for number, paths in enumerate(FOREIGN.values()):
        directory = made(tmp_path / str(number), paths)
        before = sorted(directory.rglob("*"))
        said = "is no checkpoint of hintplan" if "offsets/0" not in paths else "is no checkpoint|is damaged"
        with pytest.raises(hintplan.RunError, match=said):
            hintplan.execute(plan, spark, checkpoint=directory, once=True)
        assert sorted(directory.rglob("*")) == before
    for number, (name, paths) in enumerate(OURS.items()):
        if name != "files that came later":
            directory = made(tmp_path / f"ours-{number}", paths)
            for _ in range(2):
                building.before_run(plan, spark, str(directory))
    (tmp_path / "in" / "0.json").write_text('{"k": 1}')
    run = hintplan.execute(plan, spark, checkpoint=made(tmp_path / "cp", ["lost+found/", ".DS_Store"]), once=True)
    assert run.await_termination()
    (tmp_path / "cp" / "notes.txt").write_text("")
    run = hintplan.execute(plan, spark, checkpoint=tmp_path / "cp", once=True)
    assert run.await_termination()


@pytest.mark.spark
def test_a_foreign_directory_behind_another_file_system_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark lists it there, which hides some names; so it does here, of a directory that is on this machine."""
    from hintplan.runtime.checkpoint import files, record

    for module in (files, record):
        monkeypatch.setattr(module, "local_directory", lambda spark, checkpoint: None)
    (tmp_path / "in").mkdir()
    plan = job(tmp_path / "in")
    assert NO_FILES.sizes == building.before_run(plan, spark, str(tmp_path / "new")).there.sizes
    directory = made(tmp_path / "d", FOREIGN["the parent of sources"])
    with pytest.raises(hintplan.RunError, match="there is something in it: orders"):
        building.before_run(plan, spark, str(directory))
    shutil.rmtree(directory)
    building.before_run(plan, spark, str(made(directory, OURS["the same where machines share it"])))
