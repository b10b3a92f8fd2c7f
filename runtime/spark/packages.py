"""What Spark needs besides what PySpark brings: packages that Spark publishes with its versions, by Maven coordinates.

Spark fetches them when it starts, and keeps them in ``~/.ivy2.5.2``. Whoever has them in ``spark.jars``, on the class
path, or named in ``spark.jars.packages`` himself is not interfered with. A running JVM cannot be given any.

>>> package_version("4.1.1"), package_version("4.3.0")
(('4.1.1', True), ('4.2.0', False))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path

import pyspark
from pyspark import SparkContext

from runtime.spark.versions import VERSIONS

PACKAGES = "spark.jars.packages"
_JARS = ("spark.jars", "spark.driver.extraClassPath")


def package_version(spark: str) -> tuple[str, bool]:
    """The version of the packages for Spark ``spark``: its own, or the newest before it; and whether it is its own."""
    published = [version for facts in VERSIONS.values() for version in facts.published]
    older = [version for version in published if _numbers(version) <= _numbers(spark)]
    newest = max(older or published[:1], key=_numbers)
    return newest, newest == spark


def with_packages(conf: Mapping[str, str], packages: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """``conf`` for a Spark that starts with ``packages``, each ``group:artefact``, and what is to be said of it."""
    found = dict(conf)
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return found, []
    version, own = package_version(pyspark.__version__)
    notes = []
    for package in packages:
        if _is_there(package.partition(":")[2], conf):
            continue
        coordinates = f"{package}:{version}"
        found[PACKAGES] = ",".join(filter(None, (found.get(PACKAGES), coordinates)))
        instead = "" if own else f"; it is the newest up to Spark {pyspark.__version__}, which has none of its own"
        notes.append(f"Spark takes {coordinates} from Maven, or from where it has put it before{instead}")
    return found, notes


def _is_there(artefact: str, conf: Mapping[str, str]) -> bool:
    """Whether Spark is told of ``artefact``, or has it among its own jars."""
    said = [conf.get(PACKAGES, ""), os.environ.get("PYSPARK_SUBMIT_ARGS", "")]
    for key in _JARS:
        for path in filter(None, conf.get(key, "").replace(":", ",").split(",")):
            said += [path, *glob(path)]
    homes = [os.environ.get("SPARK_HOME", ""), str(Path(pyspark.__file__).parent)]
    said += [jar for home in homes if home for jar in glob(f"{home}/jars/{artefact}-*.jar")]
    return any(artefact in text for text in said)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".") if number.isdecimal())
