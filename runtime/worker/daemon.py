"""The process that forks Python workers on the machine of the driver, and ignores SIGTERM.

A stop of a service or a container sends SIGTERM to all of its processes at once, but the batch in progress still needs
its workers. They end with the JVM: its end closes the input of this process, which then sends SIGHUP to its process
group.

The process imports the modules that each task of a run needs, a second of work, so that forked workers have them.

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
    "hintplan.runtime.operators.window_aggregate",  # and what other aggregates import
    "hintplan.runtime.connectors.connector",
)
"""Modules whose imports include most modules that a task imports."""


def main() -> None:
    """Run PySpark's own daemon without its handling of SIGTERM.

    PySpark's daemon has a handler for SIGTERM, and its workers get the default handler back.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon.SIGTERM = signal.SIGUSR2  # type: ignore[attr-defined]
    for name in _NEEDED:
        with suppress(ImportError):  # the task that needs the module reports that it is missing
            import_module(name)
    daemon.manager()


if __name__ == "__main__":
    main()
