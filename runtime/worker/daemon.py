"""The process that forks Python workers on the machine of the driver, which SIGTERM does not end.

Whoever stops a service or a container sends SIGTERM to all of its processes at once. Workers are needed until the batch
in progress has ended. They end with the JVM, whose end closes the input of this process: it tells its group by SIGHUP.

It imports what each task of a run needs, a second of work, so that its workers have it when they are forked.

    python -m hintplan.runtime.worker.daemon pyspark.worker     # as Spark starts it: spark.python.daemon.module
"""

from __future__ import annotations

import signal
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

_NEEDED = (
    "pandas",  # pyarrow imports it where it is installed
    "pyarrow.compute",
    "hintplan.runtime.spark.map_in_arrow",
    "hintplan.runtime.engine.process",
    "hintplan.runtime.operators.join",
)
"""Modules that lead to most of those that a task imports."""


def main() -> None:
    """PySpark's own daemon, which has a handler for SIGTERM, and gives its workers back the default: not here."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon.SIGTERM = signal.SIGUSR2  # type: ignore[attr-defined]
    for name in _NEEDED:
        with suppress(ImportError):  # the task that needs it will report what is missing
            import_module(name)
    daemon.manager()


if __name__ == "__main__":
    main()
