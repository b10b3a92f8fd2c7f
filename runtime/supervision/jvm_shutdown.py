"""Lets a run end after its batch where the JVM is told to end first, which spark-submit has started before Python.

SIGTERM of Kubernetes, of a standalone worker and of whoever stops spark-submit comes to the JVM alone, and Spark would
stop at once. Hadoop's shutdown hooks run in the order of their priorities: one that stands before Spark's own asks the
run to end, and waits until it has. Whoever has sent the signal says how long that may take, and kills afterwards.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_BEFORE_SPARK = 100
"""A priority above that of Spark's hook, 40."""
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
    """For the time of the block, a JVM that ends calls ``ask`` before, and ends when the block does.

    Where Python has started the JVM, as without spark-submit, signals come to Python, and there is nothing to do.
    """
    gateway = _submitters_gateway()
    if gateway is None:
        yield
        return
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    ended = threading.Event()
    hook = gateway.jvm.java.lang.Thread(_Hook(ask, ended))  # an object of Java's, which can be taken out again
    hooks = gateway.jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    hooks.addShutdownHook(hook, _BEFORE_SPARK, _PATIENCE_SECONDS, gateway.jvm.java.util.concurrent.TimeUnit.SECONDS)
    try:
        yield
    finally:
        ended.set()
        with suppress(Py4JError, ConnectionError):  # it is ending already
            hooks.removeShutdownHook(hook)


def _submitters_gateway() -> Any:
    """The way to the JVM that spark-submit has started; None if there is none."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkContext

    return SparkContext._gateway
