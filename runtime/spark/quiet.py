"""Keeps Spark's own talk off the terminal: the JVM and its Python workers write to a log file instead of our stderr.

The JVM inherits its stderr from this process when it is started, so that is the moment to point it elsewhere. The file
is removed when the run went well, and named in the error when it did not.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class SparkLog:
    """Where the stderr of a JVM goes that is started within :meth:`captured`; users read ``terminal``, a descriptor."""

    def __init__(self) -> None:
        self.terminal = 2
        handle, name = tempfile.mkstemp(prefix="hintplan-spark-", suffix=".log")
        self._handle = handle
        self.path = Path(name)

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Point file descriptor 2 at the log for as long as the JVM starts."""
        # PySpark repeats the errors of a query as JSON on stderr, ours says them in words.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        # And py4j, if the JVM is gone, in tracebacks.
        logging.getLogger().addFilter(lambda record: record.msg != "Exception while sending command.")
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
    def mute_loss(spark: Any) -> None:
        """Let the server of accumulators say nothing when the JVM that it serves ends."""
        server = getattr(getattr(spark, "sparkContext", None), "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda request, address: None

    def discard(self) -> None:
        """Remove the log."""
        self.path.unlink(missing_ok=True)
