"""The Maven packages that Spark needs in addition to PySpark: packages of Spark, and of Hadoop for file system schemes.

Spark downloads them when it starts, and caches them in ``~/.ivy2.5.2``. Packages that the user has configured are left
alone: in ``spark.jars``, on the class path, or in ``spark.jars.packages``, including ``spark-defaults.conf``. A running
JVM cannot load more packages.
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
    """Return ``conf`` with ``packages`` of Spark and of Hadoop added, and notes to print.

    Each package is ``group:artefact``. RunError if a Hadoop package is needed and the version of Spark's Hadoop is
    unknown.
    """
    extended = dict(conf)
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return extended, []
    defaults = spark_defaults()
    effective = {**defaults, **conf}
    version, is_own = package_version(pyspark.__version__)
    instead = "" if is_own else f"; it is the newest up to Spark {pyspark.__version__}, which has none itself"
    wanted = [(f"{package}:{version}", instead) for package in packages if not _is_there(package, effective)]
    for package in hadoop:
        if not _is_there(package, effective):
            of_hadoop = hadoop_version()
            wanted.append((f"{package}:{of_hadoop}", f", for Spark's Hadoop is {of_hadoop}"))
    notes = []
    for coordinates, why in wanted:
        extended[PACKAGES] = ",".join(filter(None, (extended.get(PACKAGES, defaults.get(PACKAGES)), coordinates)))
        notes.append(f"Spark takes {coordinates} from Maven, or from where it has put it before{why}")
    return extended, notes


def hadoop_version() -> str:
    """Return the version of Hadoop among Spark's jars; RunError if there is none."""
    for jar in _own_jars("hadoop-client-api"):
        if (match := re.search(r"-api-(\d[\w.-]*)\.jar$", jar)) is not None:
            return match[1]
    raise RunError(
        f"the version of Spark's Hadoop is unknown: there is no hadoop-client-api among the jars of {_homes()[0]}",
        hint="give Spark the package of its Hadoop yourself: --conf "
        "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION",
    )


def _is_there(package: str, conf: Mapping[str, str]) -> bool:
    """Return whether ``package`` is configured, or is among Spark's own jars."""
    artefact = package.partition(":")[2]
    texts = [conf.get(PACKAGES, ""), os.environ.get("PYSPARK_SUBMIT_ARGS", "")]
    for key in _JARS:
        for path in filter(None, conf.get(key, "").replace(":", ",").split(",")):
            texts += [path, *glob(path)]
    return any(artefact in text for text in (*texts, *_own_jars(artefact)))


def _own_jars(artefact: str) -> Iterator[str]:
    for home in _homes():
        yield from glob(f"{home}/jars/{artefact}-*.jar")


def _homes() -> list[str]:
    return [home for home in (os.environ.get("SPARK_HOME", ""), str(Path(pyspark.__file__).parent)) if home]


def conf_folder() -> str:
    """Return the directory of Spark's configuration, which may also contain Hadoop's."""
    return os.environ.get("SPARK_CONF_DIR") or f"{_homes()[0]}/conf"


def spark_defaults() -> dict[str, str]:
    """Return the settings in ``spark-defaults.conf``, which the settings of a run override."""
    try:
        lines = Path(conf_folder(), "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith(("#", "!"))}
