"""Brings code to workers that lack it: hintplan's packages, and modules of the user's, as zips that Spark distributes.

Local workers run where the code already is. On a cluster and on Spark Connect, Python functions of a run are pickled by
reference, so the modules they come from must be importable there; pyarrow and numpy must be installed with PySpark.
What does not reach by itself where it is needed is :mod:`runtime.spark.by_value`'s.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import shutil
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from runtime.spark.by_value import Carried
from runtime.spark.session import is_remote, shares_machine

_PACKAGES = ("plans", "runtime")
_FOR_PEOPLE = frozenset({"ci", "client", "commands", "edit", "lint", "merge", "review", "show"})
"""The folders of ``plans`` that only commands use."""
_SUFFIXES = (".py", ".json")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_shipped: dict[str, list[Path]] = {}
"""What was shipped to each session of Spark Connect, by its id."""


def ship_code(spark: SparkSession, modules: Sequence[str] = ()) -> None:
    """Add hintplan's packages to the Python path of the workers of ``spark``, unless they share this machine's.

    So is the code of those ``modules`` that are the user's own (:func:`own_code`).
    """
    if shares_machine(spark):
        return
    zips = [_kept_archive(), *own_code(modules, _directory())]
    spark.addArtifacts(*map(str, zips), pyfile=True)
    if is_remote(spark):
        _shipped[_session_id(spark)] = zips


def with_code(what: Any, df: DataFrame) -> Any:
    """``what`` as Python processes of a query of ``df`` can unpickle it: with all code that was shipped, if need be."""
    if not df.isStreaming or not is_remote(df.sparkSession):
        return what
    return Carried(what, _shipped.get(_session_id(df.sparkSession), ()))


def own_code(modules: Sequence[str], directory: Path) -> list[Path]:
    """Zips in ``directory`` of the user's own among ``modules``: each file of code, or package, as a whole.

    Own are modules that are found outside of what is installed, such as on PYTHONPATH. What is installed may have
    compiled parts, and belongs on the workers as pyarrow does. What is not found here may still be found there.
    """
    zips = []
    for name in sorted({module.partition(".")[0] for module in modules} - set(_PACKAGES)):
        files = dict(_own_files(name))
        if files:
            zips.append(_write_zip(directory, name, files))
    return zips


def _session_id(spark: Any) -> str:
    return str(spark.session_id)  # of Spark Connect only


@cache
def _directory() -> Path:
    # Executors fetch files from where they lie whenever they start, so they stay until this process ends.
    directory = tempfile.mkdtemp(prefix="hintplan-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


@cache
def _kept_archive() -> Path:
    return archive(_directory())


def archive(directory: Path) -> Path:
    """Write what tasks need of hintplan to a zip in ``directory``; same code, same bytes, a name that says which."""
    files: dict[str, bytes] = {}
    for package in _PACKAGES:
        root = Path(__file__).parents[2] / package
        for path in sorted(root.rglob("*")):
            within = path.relative_to(root)
            if path.suffix in _SUFFIXES and not (package == "plans" and within.parts[0] in _FOR_PEOPLE):
                files[f"{package}/{within.as_posix()}"] = path.read_bytes()
    return _write_zip(directory, "hintplan", files)


def _own_files(name: str) -> Iterator[tuple[str, bytes]]:
    """The files of the module or package called ``name`` by their paths in a zip; none of what is installed."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    roots = [Path(place) for place in spec.submodule_search_locations or () if Path(place).is_dir()]
    for root in roots:
        if not _is_installed(root):
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield f"{name}/{path.relative_to(root).as_posix()}", path.read_bytes()
    origin = Path(spec.origin or "")
    if not roots and origin.suffix == ".py" and origin.is_file() and not _is_installed(origin):
        yield origin.name, origin.read_bytes()


def _is_installed(path: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return any(path.is_relative_to(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


def _write_zip(directory: Path, name: str, files: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for path, data in files.items():
        digest.update(f"{path}\0{len(data)}\0".encode() + data)
    target = directory / f"{name}-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:  # who sends it squeezes it as a whole
            for path, data in files.items():
                packed.writestr(zipfile.ZipInfo(path, _EPOCH), data)
    return target
