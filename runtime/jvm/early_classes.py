"""Lets a JVM of Spark load classes, which takes long, while its main thread does something else.

A Spark session has the functions of Spark's own machine learning, whose types are found by Scala's reflection: half a
second of work before the session is there. A Spark context needs none of it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError

_CLASSES = ("org.apache.spark.sql.ml.InternalFunctionRegistration$",)


def load_early(jvm: Any) -> threading.Thread:
    """Load them in a thread of ``jvm`` of its own. Whoever starts a session waits for the end: two threads that
    initialise classes which need each other would wait for ever.
    """
    thread = threading.Thread(target=_load, args=(jvm,), name="hintplan-early-classes", daemon=True)
    thread.start()
    return thread


def _load(jvm: Any) -> None:
    for name in _CLASSES:
        with suppress(Py4JError, OSError):  # a Spark without this class needs none
            jvm.java.lang.Class.forName(name)
