"""The error of a function that a Python program handed over as a sink, with the place in the program.

In a stream the error reaches the run as text: Spark calls the function, on Spark Connect in another process. So the
message and the hint are complete before Spark has them.

    raise function_failed("paid", error, on_server=False) from error

>>> reported_failure(RuntimeError("Traceback ...: x.FunctionFailed: the function of table o2 failed: KeyError: 'nope'"))
FunctionFailed("the function of table o2 failed: KeyError: 'nope'")
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from types import FrameType
from typing import Any

from pyspark.errors import AnalysisException, PySparkException

from hintplan.plans.errors import RunError
from hintplan.runtime.spark.failure import evidence, root_cause
from hintplan.runtime.spark.interrupted import chain

_MACHINERY = ("hintplan", "py4j", "pyspark")
"""Packages whose frames say nothing of the user's function."""

_NAMED = re.compile(r"[\w.$]*(?:Error|Exception): ")

_TOLD = re.compile(
    r"\.FunctionFailed: (the function of table .*?)(?:\n {2}hint: ([^\n]*))?(?=\n\s*\n|\n\S|\n\s+at |\n*\Z)", re.DOTALL
)


class FunctionFailed(RunError):
    """A function of the user's failed with the rows of a batch."""


def function_failed(table: str, error: Exception, *, on_server: bool) -> FunctionFailed:
    """Return the error that a user reads if the function of ``table`` raises ``error``; the caller sets its cause.

    ``on_server`` is True if the function runs in a Python of the Spark Connect server.
    """
    missing = next((each for each in chain(error) if isinstance(each, ModuleNotFoundError) and each.name), None)
    place = _place(error)
    hint = None
    if missing is not None:
        cause = str(missing)
        where = "where the Spark Connect server runs" if on_server else "in this Python"
        package = str(missing.name).partition(".")[0]
        if sys.modules.get(package) is None:
            hint = f"pip install {package} {where}"
    elif isinstance(error, PySparkException) or type(error).__module__.startswith("py4j."):
        cause = _of_spark(error)
    else:
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
    return FunctionFailed(f"the function of table {table} failed: {cause}{f' ({place})' if place else ''}", hint=hint)


def _of_spark(error: Exception) -> str:
    cause = root_cause(error)
    if isinstance(error, AnalysisException):
        cause = cause.splitlines()[0].partition(" SQLSTATE: ")[0]  # without Spark's plan
    return cause if _NAMED.match(cause) else f"{type(error).__name__}: {cause}"


def reported_failure(error: BaseException) -> FunctionFailed | None:
    """Return the failure of a function that ``error`` or its text contains, or None."""
    for each in chain(error):
        if isinstance(each, FunctionFailed):
            return each
    match = _TOLD.search(evidence(error))
    return None if match is None else FunctionFailed(match[1].rstrip(), hint=match[2])


def _place(error: BaseException) -> str | None:
    """Return the last line of the user's own code that ``error`` came through, as people call it."""
    frames: list[tuple[FrameType, int]] = []
    traceback = error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _MACHINERY:
            frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    own = [each for each in frames if not _is_of_library(each[0].f_code.co_filename)] or frames
    if not own:
        return None
    frame, line = own[-1]
    return f"{_shown(frame.f_code.co_filename)}, line {line}"


def _is_of_library(file: str) -> bool:
    paths = sysconfig.get_paths()
    folders = {os.path.realpath(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return os.path.realpath(file).startswith(tuple(f"{folder}{os.sep}" for folder in folders))


def _shown(file: str) -> str:
    """Return the name of a cell, of a file below the working directory, or of another file as a whole."""
    if cell := _cell(file):
        return cell
    below = os.path.relpath(file) if os.path.isabs(file) else file
    return file if below.startswith(os.pardir) else below


def _cell(file: str) -> str | None:
    """Return what IPython calls the cell that it compiled as ``file``; None if there is no such cell."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    name = None if named is None else named(file)
    return None if name is None else f"{name[0]} {name[1]}"
