"""Ships code to workers that lack it: hintplan's package and the user's modules, as zips that Spark distributes.

Local workers can import hintplan in place. On a cluster and on Spark Connect, Python functions of a run are pickled by
reference, so workers must be able to import their modules. Workers need pyarrow and numpy installed with PySpark.
:mod:`hintplan.runtime.spark.by_value` covers processes that shipped code does not reach.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from hintplan.runtime.code_files import PACKAGE, own_files, own_package, write_zip
from hintplan.runtime.spark.by_value import ShippedFunction
from hintplan.runtime.spark.session import is_remote, shares_machine

_Function = TypeVar("_Function", bound=Callable[..., object])

_FOR_PEOPLE = tuple(
    f"{PACKAGE}/plans/{folder}/" for folder in ("ci", "client", "commands", "edit", "lint", "merge", "review", "show")
)
"""The folders that only commands use."""
_SUFFIXES = (".py", ".json")
_shipped: dict[str, list[Path]] = {}
"""The zips that were shipped to each Spark Connect session, by its id."""


def ship_code(spark: SparkSession, modules: Sequence[str] = ()) -> None:
    """Add hintplan's package to the Python path of the workers of ``spark``, unless they run on this machine.

    In any case, also add the user's own code among ``modules`` (:func:`own_code`), because workers do not import
    modules from the directory where the run starts.
    """
    if shares_machine(spark):
        lacking = [module for module in modules if not _is_on_path(module.partition(".")[0])]
        _put_onto_path(spark.sparkContext.environment, own_code(lacking, _directory()))
        return
    zips = [_kept_archive(), *own_code(modules, _directory())]
    spark.addArtifacts(*map(str, zips), pyfile=True)
    if is_remote(spark):
        _shipped[_session_id(spark)] = zips


def _is_on_path(name: str) -> bool:
    """Return True if a module is in a directory of PYTHONPATH, which local workers share."""
    spec = importlib.util.find_spec(name)
    places = [] if spec is None else list(spec.submodule_search_locations or filter(None, [spec.origin]))
    on_path = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    return bool(places) and all(os.path.dirname(os.path.abspath(place)) in on_path for place in places)


def _put_onto_path(environment: dict[str, str], zips: Sequence[Path]) -> None:
    """Add ``zips`` to the path of local workers; streams would not find files added to a session (4.3)."""
    entries = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    shipped = {_module(path) for path in zips}
    kept = [entry for entry in entries if _module(Path(entry)) not in shipped]
    if zips:
        environment["PYTHONPATH"] = os.pathsep.join([*map(str, zips), *kept])


def _module(path: Path) -> str:
    """Return the module or package in a zip, from its file name."""
    return path.name.rpartition("-")[0] if path.suffix == ".zip" else str(path)


def with_code(what: _Function, df: DataFrame) -> _Function | ShippedFunction:
    """Return ``what`` in a form that the process of a query of ``df`` can unpickle that calls it with each batch.

    It includes all shipped code if the process needs it.
    """
    return _shippable(what, df, is_task=False)


def in_tasks(what: _Function, df: DataFrame) -> _Function | ShippedFunction:
    """Return ``what`` in a form that tasks of a query of ``df`` can unpickle, without the shipped code itself."""
    return _shippable(what, df, is_task=True)


def _shippable(what: _Function, df: DataFrame, *, is_task: bool) -> _Function | ShippedFunction:
    if not is_remote(df.sparkSession) or not df.isStreaming:
        return what
    return ShippedFunction(what, _shipped.get(_session_id(df.sparkSession), ()), is_task=is_task)


def own_code(modules: Sequence[str], directory: Path) -> list[Path]:
    """Write the user's own code among ``modules`` to zips in ``directory``, each module or package as a whole.

    Own modules are outside of Python's installed packages, such as on PYTHONPATH. Installed packages may have compiled
    parts, and must be installed on the workers, as pyarrow. Modules that are not found here may still exist on the
    workers.
    """
    zips = []
    for name in sorted({module.partition(".")[0] for module in modules} - {PACKAGE}):
        files = dict(own_files(name))
        if files:
            zips.append(_write_zip(directory, name, files))
    return zips


def _session_id(spark: SparkSession) -> str:
    client: Any = spark
    return str(client.session_id)  # only on Spark Connect


@cache
def _directory() -> Path:
    # New executors fetch the files at any time, so they are kept until this process ends.
    directory = tempfile.mkdtemp(prefix="hintplan-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


@cache
def _kept_archive() -> Path:
    return code_archive(_directory())


def code_archive(directory: Path) -> Path:
    """Write the parts of hintplan that tasks need to a zip in ``directory``; its name contains a digest of the code.

    The same code gives the same bytes.
    """
    files = {
        path: data
        for path, data in own_package().items()
        if path.endswith(_SUFFIXES) and not path.startswith(_FOR_PEOPLE)
    }
    return _write_zip(directory, PACKAGE, files)


def _write_zip(directory: Path, name: str, files: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for path, data in files.items():
        digest.update(f"{path}\0{len(data)}\0".encode() + data)
    target = directory / f"{name}-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        write_zip(target, files, squeezed=False)  # the sender compresses the whole archive
    return target
