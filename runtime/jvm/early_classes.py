"""Loads slow classes in Spark's JVM while the main thread does something else.

A Spark session has the functions of Spark's own machine learning, whose types Scala's reflection looks up. That takes
half a second before the session exists. A Spark context needs none of it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView

_CLASSES = ("org.apache.spark.sql.ml.InternalFunctionRegistration$",)


def load_early(jvm: JVMView) -> threading.Thread:
    """Load the classes in a separate thread of ``jvm``, and return it.

    Wait for its end before starting a session: two threads that initialise classes which need each other would
    deadlock.
    """
    thread = threading.Thread(target=_load, args=(jvm,), name="hintplan-early-classes", daemon=True)
    thread.start()
    return thread


def _load(jvm: JVMView) -> None:
    for name in _CLASSES:
        with suppress(Py4JError, OSError):  # a Spark without this class needs none
            jvm.java.lang.Class.forName(name)
