"""Detects in the error of a failed query what Python workers lack: memory, time, a package, or the right Python.

Workers do not need hintplan, which is shipped, but they need the driver's minor version of Python with a few packages.
This module does not know Spark; the text comes from :mod:`hintplan.runtime.spark.failure`.

>>> cause, hint = worker_fault("ModuleNotFoundError: No module named 'pyarrow'")
>>> cause
"the Python of the workers has no 'pyarrow'"
>>> hint.partition(", ")[0]
'on every worker: PYTHON -m pip install numpy pyarrow'
"""

from __future__ import annotations

import re
import sys

_NEEDED = "numpy pyarrow"
_OF_SERVERS = "googleapis-common-protos grpcio grpcio-status pandas protobuf zstandard"
_DISTRIBUTIONS = {
    "google": "protobuf",
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "numpy": "numpy",
    "pandas": "pandas",
    "py4j": "py4j",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
    "zstandard": "zstandard",
}
"""The distribution of each module. Spark or hintplan imports these modules; they are never only the user's."""

_WHICH = (
    "PYSPARK_PYTHON, or --conf spark.pyspark.python=PATH, sets the Python of the workers of a cluster; a Spark "
    "Connect server uses its own PYSPARK_PYTHON"
)

_MORE_MEMORY = (
    "give workers more: by --conf spark.executor.pyspark.memory=2g if that is set, else give the machine or the pod "
    "more; or let a batch take fewer rows, then run again; nothing that was committed is lost"
)

_LATE = re.compile(r"Python worker (?:to|failed to) connect back")


def is_late_worker(text: str) -> bool:
    """Return True if a Python process did not connect to Spark within 10 s after its start.

    Spark sets the limit in ``PythonWorkerFactory``, not in a setting. It applies to the process that a Spark Connect
    server starts for each streaming query.
    """
    return _LATE.search(text) is not None


def worker_fault(text: str, *, connected: bool = False) -> tuple[str, str] | None:
    """Return the fault of the workers' Python and its remedy; None if ``text`` has a different error.

    ``connected`` is true if a Spark Connect server reported the error.
    """
    mismatch = r"PYTHON_VERSION_MISMATCH\].*?version: ([\d.]+) than that in driver: ([\d.]+)"
    versions = re.search(mismatch, text, re.DOTALL)
    if versions:
        theirs, ours = (version.rstrip(".") for version in versions.groups())
        return (
            f"the workers have Python {theirs}, the driver has Python {ours}",
            f"both must be of one minor version: install Python {ours} on every worker. {_WHICH}",
        )
    program = re.search(r'Cannot run program "([^"]+)"[^\n]*error=(2|13)\b', text)
    if program:
        reason = "is not there" if program[2] == "2" else "may not be run"
        return f"the Python of the workers, {program[1]}, {reason} on one of them", _WHICH
    if re.search(r"^(?:[\w.]+\.)?(?:Arrow|_Array)?MemoryError\b", text, re.MULTILINE):
        return "a Python worker has no memory left", _MORE_MEMORY
    if is_late_worker(text):
        return (
            f"Python did not start within 10 s {'on the Spark Connect server' if connected else 'for a worker'}",
            f"look for the reason in the log {'of the server' if connected else 'of Spark'}: the machine may be "
            f"overloaded, or that Python may lack a module; then run again; nothing that was committed is lost",
        )
    package = _package(text)
    if package is None:
        return None
    if package == "hintplan" and connected:
        return (
            "the Python of the Spark Connect server has no 'hintplan'",
            "parts of a plan, such as a table of generated rows, run there, where Spark sends no code: "
            "PYTHON -m pip install hintplan",
        )
    if package == "hintplan":
        return (
            "the Python that Spark runs for workers has no 'hintplan'",
            f"workers of a local session run python3 of the PATH unless PYSPARK_PYTHON is set: set it to "
            f"{sys.executable} before Spark starts. On a cluster, PYTHON -m pip install hintplan where the driver runs",
        )
    needed = _OF_SERVERS if package in _OF_SERVERS.split() else _NEEDED
    where = "where the Spark Connect server runs" if package in _OF_SERVERS.split() else "on every worker"
    return (
        f"the Python of the workers has no '{package}'",
        f"{where}: PYTHON -m pip install {needed}, each as hintplan needs it here. {_WHICH}",
    )


def _package(text: str) -> str | None:
    """Return the missing distribution, from the error messages of Python and PySpark."""
    missing = re.search(r"(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] (\S+) >= \S+ must be installed", text)
    if missing:
        return missing[1].lower()
    if re.search(r"cannot import name '\w+' from 'google\.protobuf'", text):
        return "protobuf"
    module = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if module is None:
        return None
    top = module[1].partition(".")[0]
    if top == "hintplan":
        return top
    return _DISTRIBUTIONS.get(module[1]) or _DISTRIBUTIONS.get(top)
