"""Brings code to workers that lack it: hintplan's package, and modules of the user's, as zips that Spark distributes.

Local workers run where hintplan's code already is. On a cluster and on Spark Connect, Python functions of a run are
pickled by reference, so the modules they come from must be importable there; pyarrow and numpy must be installed with
PySpark. What does not reach by itself where it is needed is :mod:`hintplan.runtime.spark.by_value`'s.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hintplan.runtime.code_files import PACKAGE, own_files, own_package, write_zip
from hintplan.runtime.spark.by_value import Carried
from hintplan.runtime.spark.session import is_remote, shares_machine

_FOR_PEOPLE = tuple(
    f"{PACKAGE}/plans/{folder}/" for folder in ("ci", "client", "commands", "edit", "lint", "merge", "review", "show")
)
"""The folders that only commands use."""
_SUFFIXES = (".py", ".json")
_shipped: dict[str, list[Path]] = {}
"""What was shipped to each session of Spark Connect, by its id."""


def ship_code(spark: SparkSession, modules: Sequence[str] = ()) -> None:
    """Add hintplan's package to the Python path of the workers of ``spark``, unless they share this machine's.

    So is, in any case, the code of those ``modules`` that are the user's own (:func:`own_code`): workers do not look
    for modules where the run starts.
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
    """True if a module lies in a directory of PYTHONPATH, which local workers have, too."""
    spec = importlib.util.find_spec(name)
    places = [] if spec is None else list(spec.submodule_search_locations or filter(None, [spec.origin]))
    known = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    return bool(places) and all(os.path.dirname(os.path.abspath(place)) in known for place in places)


def _put_onto_path(environment: dict[str, str], zips: Sequence[Path]) -> None:
    """Let local workers find what is in ``zips``; files that a session has would not be found in streams (4.3)."""
    known = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    names = {_module(path) for path in zips}
    others = [entry for entry in known if _module(Path(entry)) not in names]
    if zips:
        environment["PYTHONPATH"] = os.pathsep.join([*map(str, zips), *others])


def _module(path: Path) -> str:
    """The module or package in a zip, by its name."""
    return path.name.rpartition("-")[0] if path.suffix == ".zip" else str(path)


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
    for name in sorted({module.partition(".")[0] for module in modules} - {PACKAGE}):
        files = dict(own_files(name))
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
        write_zip(target, files, squeezed=False)  # who sends it squeezes it as a whole
    return target
