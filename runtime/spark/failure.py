"""The root cause of a failed query, out of Spark's nested exceptions, for a person to read.

What went wrong in a Python worker or deep in the JVM arrives as text: a Java stack trace with a Python traceback
inside. The innermost Python traceback wins, else the last of Java's ``Caused by``. Sinks in Python that Spark calls for
each micro-batch add a traceback around the whole, which says nothing.
"""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last):"
_CALLED_BACK = "An exception was raised by the Python Proxy. Return Message: "
"""What stands before the error of a sink that Spark calls with each micro-batch."""
_OF_SPARK = re.compile(
    # Each line can match in one way only: tracebacks are long.
    rf"{re.escape(_TRACEBACK)}\n(?:[ ].*\n|\n)*(?=(?:py4j\.protocol|pyspark\.errors)\.)",
)
"""How Python came to an error of Spark's, which says more itself."""
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
            texts.append(_of_callback(str(java.toString())))
            java = java.getCause()
        cause = _cause(cause)
    return "\n".join(texts)


def _texts(error: BaseException) -> list[str]:
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts += [_of_callback(str(cause)), _of_callback(getattr(cause, "stackTrace", None) or "")]
        cause = _cause(cause)
    return texts


def _of_callback(text: str) -> str:
    """``text``, or what it says of Spark's error if that came through a sink in Python."""
    return _OF_SPARK.sub("", text.partition(_CALLED_BACK)[2] or text)


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
