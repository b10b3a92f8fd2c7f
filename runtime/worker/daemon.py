"""The process that forks Python workers on the machine of the driver, which SIGTERM does not end.

Whoever stops a service or a container sends SIGTERM to all of its processes at once. Workers are needed until the batch
in progress has ended. They end with the JVM, whose end closes the input of this process: it tells its group by SIGHUP.

    python -m hintplan.runtime.worker.daemon pyspark.worker     # as Spark starts it: spark.python.daemon.module
"""

from __future__ import annotations

import signal

from pyspark import daemon


def main() -> None:
    """PySpark's own daemon, which has a handler for SIGTERM, and gives its workers back the default: not here."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon.SIGTERM = signal.SIGUSR2  # type: ignore[attr-defined]
    daemon.manager()


if __name__ == "__main__":
    main()
