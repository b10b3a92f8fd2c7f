"""Plan -> Spark -> results.

Python workers import parts of this package on every executor, so importing the package itself costs nothing:
``execute``, ``Session`` and what they return load Spark's session code on first use; ``read_state`` and ``state_rows``
need no Spark.

>>> from runtime import execute  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.batch.cache import CachedResult
    from runtime.batch.execution import BatchExecution
    from runtime.batch.session import Session
    from runtime.inspect.contents import CheckpointState
    from runtime.inspect.read import read_state
    from runtime.inspect.visible import state_rows
    from runtime.run.execute import execute
    from runtime.run.execution import Execution

__all__ = [
    "BatchExecution",
    "CachedResult",
    "CheckpointState",
    "Execution",
    "Session",
    "execute",
    "read_state",
    "state_rows",
]

_MODULES = {
    "BatchExecution": "runtime.batch.execution",
    "CachedResult": "runtime.batch.cache",
    "CheckpointState": "runtime.inspect.contents",
    "Execution": "runtime.run.execution",
    "Session": "runtime.batch.session",
    "execute": "runtime.run.execute",
    "read_state": "runtime.inspect.read",
    "state_rows": "runtime.inspect.visible",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
