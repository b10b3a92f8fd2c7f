"""Lets a run end after its batch if its JVM gets the stop signal, because spark-submit started it before Python.

SIGTERM from Kubernetes, a standalone worker or a user of spark-submit reaches only the JVM, and Spark would stop at
once. Hadoop runs its shutdown hooks in order of priority. A hook with a higher priority than Spark's own requests the
end of the run, and waits for it. The sender of the signal limits the wait, and kills the process afterwards.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_BEFORE_SPARK = 100
"""A priority above the priority of Spark's hook, 40."""
_PATIENCE_SECONDS = 600


class _Hook:
    """A ``java.lang.Runnable`` that calls ``ask`` and waits for ``ended``."""

    def __init__(self, ask: Callable[[], None], ended: threading.Event) -> None:
        self._ask = ask
        self._ended = ended

    def run(self) -> None:
        self._ask()
        self._ended.wait(_PATIENCE_SECONDS)

    class Java:
        implements = ("java.lang.Runnable",)


@contextmanager
def asked_before_the_jvm_ends(ask: Callable[[], None]) -> Iterator[None]:
    """During the block, let a JVM that shuts down call ``ask`` first, and wait for the end of the block.

    If Python has started the JVM, as without spark-submit, signals reach Python, and nothing is done.
    """
    gateway = _submitters_gateway()
    if gateway is None:
        yield
        return
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    ended = threading.Event()
    hook = gateway.jvm.java.lang.Thread(_Hook(ask, ended))  # a Java object, which can be removed again
    hooks = gateway.jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    hooks.addShutdownHook(hook, _BEFORE_SPARK, _PATIENCE_SECONDS, gateway.jvm.java.util.concurrent.TimeUnit.SECONDS)
    try:
        yield
    finally:
        ended.set()
        with suppress(Py4JError, ConnectionError):  # the JVM is already shutting down
            hooks.removeShutdownHook(hook)


def _submitters_gateway() -> JavaGateway | None:
    """Return the gateway to the JVM that spark-submit has started, or None if there is none."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkContext

    return SparkContext._gateway
