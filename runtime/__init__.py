"""Plan -> Spark -> results.

Python workers import parts of this package on every executor, so importing the package itself costs nothing:
``execute``, ``Session`` and what they return load Spark's session code on first use.

>>> from runtime import execute  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.batch.cache import CachedResult
    from runtime.batch.execution import BatchExecution
    from runtime.batch.session import Session
    from runtime.execution import Execution, execute

__all__ = ["BatchExecution", "CachedResult", "Execution", "Session", "execute"]

_MODULES = {
    "BatchExecution": "runtime.batch.execution",
    "CachedResult": "runtime.batch.cache",
    "Execution": "runtime.execution",
    "Session": "runtime.batch.session",
    "execute": "runtime.execution",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
