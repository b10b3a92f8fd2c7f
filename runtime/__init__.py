"""Plan -> Spark -> results.

Python workers import parts of this package on every executor, so importing the package itself costs nothing:
``execute``, ``Session`` and what they return load Spark's session code on first use; ``read_state`` and ``state_rows``
need no Spark.

>>> from hintplan import execute  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hintplan.runtime.batch.cache import CachedResult
    from hintplan.runtime.batch.execution import BatchExecution
    from hintplan.runtime.batch.session import Session
    from hintplan.runtime.inspect.contents import CheckpointState
    from hintplan.runtime.inspect.read import read_state
    from hintplan.runtime.inspect.visible import state_rows
    from hintplan.runtime.run.execute import execute
    from hintplan.runtime.run.execution import Execution

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
    "BatchExecution": "hintplan.runtime.batch.execution",
    "CachedResult": "hintplan.runtime.batch.cache",
    "CheckpointState": "hintplan.runtime.inspect.contents",
    "Execution": "hintplan.runtime.run.execution",
    "Session": "hintplan.runtime.batch.session",
    "execute": "hintplan.runtime.run.execute",
    "read_state": "hintplan.runtime.inspect.read",
    "state_rows": "hintplan.runtime.inspect.visible",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
