"""Keeps Spark's output off the terminal: the JVM and its Python workers write to a log file instead of our stderr.

The JVM inherits stderr from this process when it starts, so stderr is redirected at that moment. The log is removed
after a successful run; after a failure, its path is printed.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkLog:
    """The log file for the stderr of a JVM that starts within :meth:`captured`.

    ``terminal`` is the file descriptor for output to users.
    """

    def __init__(self) -> None:
        self.terminal = 2
        handle, name = tempfile.mkstemp(prefix="hintplan-spark-", suffix=".log")
        self._handle = handle
        self.path = Path(name)

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Redirect file descriptor 2 to the log while the JVM starts."""
        # PySpark repeats the errors of a query on stderr as JSON; our errors already explain them.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        # If the JVM has ended, or Ctrl-C interrupts a call into it, py4j prints tracebacks.
        logging.getLogger().addFilter(lambda record: not str(record.msg).endswith(" while sending command."))
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        sys.stderr.flush()
        self.terminal = os.dup(2)
        os.dup2(self._handle, 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(self.terminal, 2)
            os.close(self.terminal)
            self.terminal = 2

    @staticmethod
    def mute_loss(spark: SparkSession) -> None:
        """Suppress the errors of the accumulator server when the JVM that it serves ends."""
        server = getattr(getattr(spark, "sparkContext", None), "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda *request: None

    def discard(self) -> None:
        """Remove the log."""
        self.path.unlink(missing_ok=True)
