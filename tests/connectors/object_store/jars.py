"""Where the jars are with which Spark reaches S3, for the Hadoop of the Spark that tests run on."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["jars"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hintplan" / "s3"
LISTED = Path(__file__).parents[3] / ".ci" / "s3-jars"


def jars() -> list[Path]:
    """The listed jars; empty if one is not there, or if they are for another Hadoop than that of this Spark."""
    from runtime.spark.packages import hadoop_version

    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [CACHE / line.rpartition("/")[2] for line in lines]
    fits = any(path.name == f"hadoop-aws-{hadoop_version()}.jar" for path in found)
    return found if fits and all(path.is_file() for path in found) else []
