"""What Spark unpickles in Python processes that have none of hintplan's code: classes that are pickled by value.

Code that is shipped (:mod:`hintplan.runtime.spark.shipping`) reaches tasks on executors. On Spark Connect (4.3) it
reaches no process of a streaming query: neither that in which the server runs ``foreachBatch`` nor tasks, which look
for a session's files where those of no session are. What is pickled for these is an instance of a class of this module,
whose own code goes along. So code here uses nothing of hintplan's, and imports what it needs where it needs it.

    frame.writeStream.foreachBatch(Carried(write, [archive]))
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class Carried:
    """Stands for ``what`` and, when it is pickled, takes along ``zips`` of the modules that this needs.

    Where it is unpickled, the zips are put on the path first, and ``what`` itself comes out. A zip is called after the
    module or package in it and a digest: modules that a process has from another zip of that name are loaded anew.
    """

    def __init__(self, what: Any, zips: Sequence[Path]) -> None:
        self._what = what
        self._zips = tuple(zips)

    def __call__(self, *arguments: Any) -> Any:
        return self._what(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        zips = tuple((path.name, _squeezed(path)) for path in self._zips)
        return _unpacked, (zips, cloudpickle.dumps(self._what))  # type: ignore[no-untyped-call]


@cache
def _squeezed(path: Path) -> bytes:
    # Each Python step of a query has the code, and the server several copies of each: as one stream, it is a third
    # smaller than file by file.
    return zlib.compress(path.read_bytes(), 9)


def _unpacked(zips: tuple[tuple[str, bytes], ...], closed: bytes) -> Any:
    """What is ``closed``, opened with the code of the ``zips``."""
    import os
    import pickle
    import sys
    import tempfile
    import zlib

    # Spark's own directories go with the application.
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    for name, data in zips:
        known = (entry for entry in sys.path if os.path.basename(entry) == name)
        path = next(filter(os.path.exists, known), None)  # Spark names files that it has not put there
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
