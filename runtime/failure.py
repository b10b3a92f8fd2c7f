"""The root cause of a failed query, out of Spark's nested exceptions, for a person to read.

What went wrong in a Python worker or deep in the JVM arrives as text: a Java stack trace with a Python traceback
inside. The innermost Python traceback wins, else the last of Java's ``Caused by``.
"""

from __future__ import annotations

import re

__all__ = ["WORKER_HINT", "evidence", "root_cause"]

WORKER_HINT = (
    "workers need a Python with pyspark, pyarrow, numpy, pandas and protobuf; "
    "--conf spark.pyspark.python=PATH says which Python they run"
)

_TRACEBACK = "Traceback (most recent call last):"
_ADDRESS = re.compile(r"^(?:[\w$]+\.)+([\w$]+(?:Exception|Error)): ")


def root_cause(error: BaseException) -> str:
    """One message without stack: ``RunError: the state store has lost ...`` or ``SparkRuntimeException: [CAST...``."""
    texts = _texts(error)
    for text in reversed(texts):
        if _TRACEBACK in text:
            return _python_message(text.rpartition(_TRACEBACK)[2])
    for text in reversed(texts):
        if "Caused by: " in text:
            return _shortened(_message_lines(text.rpartition("Caused by: ")[2].splitlines()))
    return _shortened(_message_lines(texts[0].splitlines())) or type(error).__name__


def evidence(error: BaseException) -> str:
    """All that is said about ``error``: its text, and that of every cause, in Python and in the JVM."""
    texts = _texts(error)
    cause: BaseException | None = error
    while cause is not None:
        # What PySpark makes of a Java exception leaves out the causes of its cause.
        java = getattr(cause, "_origin", None) or getattr(cause, "java_exception", None)
        while java is not None:
            texts.append(str(java.toString()))
            java = java.getCause()
        cause = _cause(cause)
    return "\n".join(texts)


def _texts(error: BaseException) -> list[str]:
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts += [str(cause), getattr(cause, "stackTrace", None) or ""]
        cause = _cause(cause)
    return texts


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or getattr(error, "_cause", None)


def _python_message(text: str) -> str:
    lines = text.splitlines()
    while lines and (not lines[0].strip() or lines[0].startswith(" ")):
        lines.pop(0)
    return _shortened(_message_lines(lines))


def _message_lines(lines: list[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if re.match(r"\s+at |\s*SQLSTATE: |\s*\.\.\. \d+ more|\s*JVM stacktrace:|Caused by: |== |=== ", line):
            break
        if not line.strip() and kept:
            break
        kept.append(line.rstrip())
    return "\n".join(kept)


def _shortened(text: str) -> str:
    return _ADDRESS.sub(r"\1: ", text.strip())
