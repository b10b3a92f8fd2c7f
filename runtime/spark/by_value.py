"""What Spark unpickles in Python processes that have none of hintplan's code: classes that are pickled by value.

Code that is shipped (:mod:`runtime.spark.shipping`) reaches tasks on executors. It does not reach the process on the
driver's side, with the workers' Python, in which a stateful processor declares its state variables before the first
batch. And on Spark Connect (4.3) it reaches no process of a streaming query: neither that in which the server runs
``foreachBatch`` nor tasks, which look for a session's files where those of no session are. What is pickled for these is
an instance of a class of this module, whose own code goes along. So code here uses nothing of hintplan's, and imports
what it needs where it needs it.

    frame.groupBy("bucket").transformWithState(statefulProcessor=Deferred(processor, values={"n": "n bigint"}), ...)
    frame.writeStream.foreachBatch(Carried(write, [archive]))
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class Deferred(StatefulProcessor):
    """Declares the state variables of ``processor``, which is unpickled when the first rows or timer of a task come.

    ``values`` and ``maps`` are the variables by name: the schema of a value, and those of keys and values of a map.
    The processor is told the handle and the variables, by name, in a call of ``open``; then ``handleInputRows`` and
    ``handleExpiredTimer`` are called as Spark calls them.
    """

    def __init__(
        self, processor: Any, values: Mapping[str, str] = {}, maps: Mapping[str, tuple[str, str]] = {}
    ) -> None:
        self._closed: bytes = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]
        self._values = dict(values)
        self._maps = dict(maps)

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._opened: Any = None
        self._variables = {name: handle.getValueState(name, schema) for name, schema in self._values.items()}
        for name, (keys, values) in self._maps.items():
            self._variables[name] = handle.getMapState(name, keys, values)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        yield from self._processor().handleInputRows(key, rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        yield from self._processor().handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def close(self) -> None:
        pass

    def _processor(self) -> Any:
        if self._opened is None:
            import pickle

            self._opened = pickle.loads(self._closed)
            self._opened.open(self._handle, self._variables)
        return self._opened


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
        zips = tuple((path.name, path.read_bytes()) for path in self._zips)
        return _unpacked, (zips, cloudpickle.dumps(self._what))  # type: ignore[no-untyped-call]


def _unpacked(zips: tuple[tuple[str, bytes], ...], closed: bytes) -> Any:
    """What is ``closed``, opened with the code of the ``zips``."""
    import os
    import pickle
    import sys
    import tempfile

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
                    file.write(data)
                os.replace(draft, path)
        sys.path[:] = [*sys.path[:1], path, *(entry for entry in sys.path[1:] if entry != path)]
        stem = name.rpartition("-")[0]
        for loaded, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            if f"{os.sep}{stem}-" in origin and ".zip" + os.sep in origin and not origin.startswith(path + os.sep):
                del sys.modules[loaded]
    return pickle.loads(closed)
