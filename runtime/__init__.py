"""Plan -> Spark -> results.

Python workers import parts of this package on every executor, so importing the package itself costs nothing:
``execute`` and ``Execution`` load Spark's session code on first use.

>>> from runtime import execute  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.execution import Execution, execute

__all__ = ["Execution", "execute"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runtime import execution

    return getattr(execution, name)
