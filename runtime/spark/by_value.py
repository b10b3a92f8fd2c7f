"""Classes that Spark unpickles in Python processes without hintplan's code, because they are pickled by value.

Shipped code (:mod:`hintplan.runtime.spark.shipping`) reaches tasks on executors. On Spark Connect (4.0 to 4.3), the
processes of a streaming query do not find it. The server process that runs ``foreachBatch`` gets no files of a session.
Tasks get them, each session's in a directory of its own, but look for them in the directory above. For these processes,
an instance of a class of this module is pickled, together with the code of the class. Code in this module therefore
uses nothing else of hintplan, and imports what it needs inside functions.

    frame.writeStream.foreachBatch(ShippedFunction(write, [archive]))
    frame.mapInArrow(ShippedFunction(run, [archive], is_task=True), schema)
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
    package and a digest. Modules that a process has loaded from a zip with another digest are loaded again. If it
    ``is_task``, only the names and digests of the zips are pickled, because Spark has sent the files to the executor.
    """

    def __init__(self, what: Callable[..., Any], zips: Sequence[Path], *, is_task: bool = False) -> None:
        self._what = what
        self._zips = tuple(zips)
        self._is_task = is_task

    def __call__(self, *arguments: Any) -> Any:
        return self._what(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        # A query has dozens of tasks' functions, and the server keeps a dozen plans that contain each of them.
        zips = tuple((path.name, _digest(path) if self._is_task else _squeezed(path)) for path in self._zips)
        return _unpacked, (zips, cloudpickle.dumps(self._what))  # type: ignore[no-untyped-call]


@cache
def _squeezed(path: Path) -> bytes:
    # Compressed as one stream, the code is a third smaller than file by file.
    return zlib.compress(path.read_bytes(), 9)


@cache
def _digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def _unpacked(zips: tuple[tuple[str, bytes | str], ...], closed: bytes) -> object:
    """Unpickle ``closed`` with the code of the ``zips``, each with its name and data, or its digest if Spark sent it.

    RuntimeError if Spark has not sent a file.
    """
    import hashlib
    import os
    import pickle
    import sys
    import tempfile
    import zlib
    from glob import escape, glob

    # Spark removes its own directories when the application ends.
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    for name, data in zips:
        listed = [entry for entry in sys.path if os.path.basename(entry) == name]
        path = next(filter(os.path.exists, listed), None)  # Spark also lists files that it has not stored there
        if path is None:
            path = os.path.join(local if os.path.isdir(local) else tempfile.mkdtemp(prefix="hintplan-"), name)
            if not os.path.exists(path):
                if isinstance(data, bytes):
                    content = zlib.decompress(data)
                else:
                    # Depending on who starts the job, the path has the directory of a session, or the one above. Other
                    # sessions may have sent other files under this name, and Spark may remove a session's files soon.
                    folders = [os.path.dirname(os.path.abspath(entry)) for entry in listed]
                    folders += map(os.path.dirname, folders[:])
                    for sent in (file for folder in folders for file in glob(os.path.join(escape(folder), "*", name))):
                        with open(sent, "rb") as file:
                            content = file.read()
                        if hashlib.sha256(content).hexdigest() == data:
                            break
                    else:
                        raise RuntimeError(f"Spark has not sent {name} to the executor, below any of {folders}")
                handle, draft = tempfile.mkstemp(dir=os.path.dirname(path))
                with os.fdopen(handle, "wb") as copy:
                    copy.write(content)
                os.replace(draft, path)
        sys.path[:] = [*sys.path[:1], path, *(entry for entry in sys.path[1:] if entry != path)]
        stem = name.rpartition("-")[0]
        for loaded, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            if f"{os.sep}{stem}-" in origin and ".zip" + os.sep in origin and not origin.startswith(path + os.sep):
                del sys.modules[loaded]
    return pickle.loads(closed)
