"""What Spark needs besides what PySpark brings, by Maven coordinates: packages of Spark's, and of Hadoop's for schemes.

Spark fetches them when it starts, and keeps them in ``~/.ivy2.5.2``. Whoever has them in ``spark.jars``, on the class
path, or named in ``spark.jars.packages`` himself, also in ``spark-defaults.conf``, is not interfered with. A running
JVM cannot be given any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path

import pyspark
from pyspark import SparkContext

from hintplan.plans.errors import RunError
from hintplan.runtime.spark.versions import package_version

PACKAGES = "spark.jars.packages"
_JARS = ("spark.jars", "spark.driver.extraClassPath")


def with_packages(
    conf: Mapping[str, str], packages: Sequence[str], hadoop: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """``conf`` for a Spark that starts with ``packages`` of Spark's and of Hadoop's, and what is to be said of it.

    Each is ``group:artefact``. RunError if one of Hadoop's is needed, and which Hadoop Spark has cannot be told.
    """
    found = dict(conf)
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return found, []
    defaults = spark_defaults()
    there = {**defaults, **conf}
    version, own = package_version(pyspark.__version__)
    instead = "" if own else f"; it is the newest up to Spark {pyspark.__version__}, which has none of its own"
    wanted = [(f"{package}:{version}", instead) for package in packages if not _is_there(package, there)]
    for package in hadoop:
        if not _is_there(package, there):
            of_hadoop = hadoop_version()
            wanted.append((f"{package}:{of_hadoop}", f", for Spark's Hadoop is {of_hadoop}"))
    notes = []
    for coordinates, why in wanted:
        found[PACKAGES] = ",".join(filter(None, (found.get(PACKAGES, defaults.get(PACKAGES)), coordinates)))
        notes.append(f"Spark takes {coordinates} from Maven, or from where it has put it before{why}")
    return found, notes


def hadoop_version() -> str:
    """The version of the Hadoop that Spark has among its jars; RunError if it has none there."""
    for jar in _own_jars("hadoop-client-api"):
        if (found := re.search(r"-api-(\d[\w.-]*)\.jar$", jar)) is not None:
            return found[1]
    raise RunError(
        f"which Hadoop Spark has cannot be told: there is no hadoop-client-api among the jars of {_homes()[0]}",
        hint="give Spark the package of its Hadoop yourself: --conf "
        "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION",
    )


def _is_there(package: str, conf: Mapping[str, str]) -> bool:
    """Whether Spark is told of ``package``, or has it among its own jars."""
    artefact = package.partition(":")[2]
    said = [conf.get(PACKAGES, ""), os.environ.get("PYSPARK_SUBMIT_ARGS", "")]
    for key in _JARS:
        for path in filter(None, conf.get(key, "").replace(":", ",").split(",")):
            said += [path, *glob(path)]
    return any(artefact in text for text in (*said, *_own_jars(artefact)))


def _own_jars(artefact: str) -> Iterator[str]:
    for home in _homes():
        yield from glob(f"{home}/jars/{artefact}-*.jar")


def _homes() -> list[str]:
    return [home for home in (os.environ.get("SPARK_HOME", ""), str(Path(pyspark.__file__).parent)) if home]


def conf_folder() -> str:
    """The folder in which Spark looks for its configuration, and for Hadoop's."""
    return os.environ.get("SPARK_CONF_DIR") or f"{_homes()[0]}/conf"


def spark_defaults() -> dict[str, str]:
    """What ``spark-defaults.conf`` says, which what a run is told replaces."""
    try:
        lines = Path(conf_folder(), "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith(("#", "!"))}
