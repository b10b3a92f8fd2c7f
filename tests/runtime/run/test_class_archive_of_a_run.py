"""A class data archive that Java has made: a run maps classes of it, and one that is cut off is not touched."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hintplan
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

MANY = 5_000
"""Spark loads about 14,000 classes in a short run."""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.spark
def test_a_run_maps_the_classes_of_a_whole_archive(tmp_path: Path) -> None:
    (archive,) = made(tmp_path)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 20))
    hintplan.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    assert mapped_by_run(tmp_path, "first") > MANY
    assert fold(changes(tmp_path)) == expected(sample(0, 20))
    with archive.open("r+b") as file:
        file.truncate(archive.stat().st_size // 2)
    with (archive.parent / "lock").open("a") as lock:  # the run would let another archive be made
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert mapped_by_run(tmp_path, "second") == 0


def made(cache: Path) -> list[Path]:
    """The archives that are there when one has been made."""
    command = [sys.executable, "-m", "hintplan.runtime.jvm.class_archive"]
    subprocess.run(command, env=variables(cache), check=True, timeout=600)
    return list(cache.glob("hintplan/classes/*.jsa"))


def mapped_by_run(folder: Path, name: str) -> int:
    """The number of classes that the JVM of a run takes from an archive that is not Java's own."""
    log = folder / f"{name}.log"
    done = subprocess.run(
        [sys.executable, "-m", "hintplan", "run", "plan.json", "--once", "--checkpoint", "state"],
        cwd=folder,
        env={**variables(folder), "SPARK_SUBMIT_OPTS": f"-Xlog:class+load=info:file={log}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return log.read_text(encoding="utf-8").count("source: shared objects file (top)")


def variables(cache: Path) -> dict[str, str]:
    """The environment of a user whose cache is in ``cache``."""
    hidden = ("HINTPLAN_CLASS_ARCHIVE", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "XDG_CACHE_HOME": str(cache)}
