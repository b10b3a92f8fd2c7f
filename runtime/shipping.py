"""Brings hintplan to workers that lack it: the packages ``runtime`` and ``plans`` as a zip that Spark distributes.

Local workers run where hintplan already is. On a cluster and on Spark Connect, Python functions of a run are pickled by
reference, so the modules they come from must be importable there; pyarrow and numpy must be installed with PySpark.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from runtime.session import shares_machine

__all__ = ["archive", "ship_code"]

_PACKAGES = ("plans", "runtime")
_SUFFIXES = (".py", ".json")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship_code(spark: SparkSession) -> None:
    """Add hintplan's packages to the Python path of the workers of ``spark``, unless they share this machine's."""
    if shares_machine(spark):
        return
    spark.addArtifacts(str(_kept_archive()), pyfile=True)


@cache
def _kept_archive() -> Path:
    # Executors fetch the file from where it lies whenever they start, so it stays until this process ends.
    directory = tempfile.mkdtemp(prefix="hintplan-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return archive(Path(directory))


def archive(directory: Path) -> Path:
    """Write the packages to a zip in ``directory``; same code, same bytes, and a name that says which."""
    files: dict[str, bytes] = {}
    for package in _PACKAGES:
        root = Path(__file__).parent.parent / package
        for path in sorted(root.rglob("*")):
            if path.suffix in _SUFFIXES:
                files[f"{package}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    target = directory / f"hintplan-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return target
