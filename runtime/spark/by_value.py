"""Classes that Spark unpickles in Python processes without hintplan's code, because they are pickled by value.

Shipped code (:mod:`hintplan.runtime.spark.shipping`) reaches tasks on executors. On Spark Connect (4.3), it reaches no
process of a streaming query. This applies to the server process that runs ``foreachBatch`` and to tasks, which look for
session files in the wrong directory. For these processes, an instance of a class of this module is pickled, together
with the code of the class. Code in this module therefore uses nothing else of hintplan, and imports what it needs
inside functions.

    frame.writeStream.foreachBatch(ShippedFunction(write, [archive]))
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class ShippedFunction:
    """A wrapper for ``what`` that is pickled together with ``zips`` of the modules that it needs.

    Unpickling puts the zips on the path, and then returns ``what`` itself. The name of a zip consists of its module or
    package and a digest. Modules that a process has loaded from a zip with another digest are loaded again.
    """

    def __init__(self, what: Callable[..., Any], zips: Sequence[Path]) -> None:
        self._what = what
        self._zips = tuple(zips)

    def __call__(self, *arguments: Any) -> Any:
        return self._what(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        zips = tuple((path.name, _squeezed(path)) for path in self._zips)
        return _unpacked, (zips, cloudpickle.dumps(self._what))  # type: ignore[no-untyped-call]


@cache
def _squeezed(path: Path) -> bytes:
    # Each Python step of a query contains the code, and the server stores several copies of each. Compressed as one
    # stream, it is a third smaller than file by file.
    return zlib.compress(path.read_bytes(), 9)


def _unpacked(zips: tuple[tuple[str, bytes], ...], closed: bytes) -> object:
    """Unpickle ``closed`` with the code of the ``zips``."""
    import os
    import pickle
    import sys
    import tempfile
    import zlib

    # Spark removes its own directories when the application ends.
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    for name, data in zips:
        candidates = (entry for entry in sys.path if os.path.basename(entry) == name)
        path = next(filter(os.path.exists, candidates), None)  # Spark also lists files that it has not stored there
        if path is None:
            path = os.path.join(local if os.path.isdir(local) else tempfile.mkdtemp(prefix="hintplan-"), name)
            if not os.path.exists(path):
                handle, draft = tempfile.mkstemp(dir=os.path.dirname(path))
                with os.fdopen(handle, "wb") as file:
                    file.write(zlib.decompress(data))
                os.replace(draft, path)
        sys.path[:] = [*sys.path[:1], path, *(entry for entry in sys.path[1:] if entry != path)]
        stem = name.rpartition("-")[0]
        for loaded, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            if f"{os.sep}{stem}-" in origin and ".zip" + os.sep in origin and not origin.startswith(path + os.sep):
                del sys.modules[loaded]
    return pickle.loads(closed)
