"""Finds the root cause of a failed query in Spark's nested exceptions, and decides if it may pass.

An error of a Python worker or deep in the JVM arrives as text: a Java stack trace that contains a Python traceback. The
innermost Python traceback is the root cause, otherwise the last ``Caused by`` of Java. A Python sink that Spark calls
for each micro-batch adds an outer traceback without information.

``TRANSIENT`` is the only list of errors that may pass before the next attempt; it decides if a run restarts. Other
errors are permanent: wrong data, a plan that cannot run here, a damaged checkpoint, a bug. Our own code marks transient
errors with :class:`hintplan.plans.errors.Unavailable`. Errors of Spark, Kafka, Hadoop and object stores are recognised
by their messages.

>>> is_transient(OSError("org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for t-0"))
True
>>> is_transient(ValueError("[DIVIDE_BY_ZERO] Division by zero"))
False
"""

from __future__ import annotations

import re

from hintplan.plans.errors import Unavailable

_TRACEBACK = "Traceback (most recent call last):"
_CALLED_BACK = "An exception was raised by the Python Proxy. Return Message: "
"""The text before the error of a sink that Spark calls with each micro-batch."""
_OF_SPARK = re.compile(
    # Each line can match in only one way, because tracebacks are long and backtracking would be slow.
    rf"{re.escape(_TRACEBACK)}\n(?:[ ].*\n|\n)*(?=(?:py4j\.protocol|pyspark\.errors)\.)",
)
"""The Python traceback before a Spark error, which contains the details itself."""
_ADDRESS = re.compile(r"^(?:[\w$]+\.)+([\w$]+(?:Exception|Error)): ")

TRANSIENT = {
    "a system that the plan looks up or writes is unavailable": (
        r"\b(?:hintplan\.plans\.errors\.Unavailable|SourceUnavailable): "
    ),
    "the brokers of a topic do not answer, or elect a leader": (
        r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|NotLeaderOrFollower|LeaderNotAvailable"
        r"|BrokerNotAvailable|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotController|KafkaStorage"
        r"|NotEnoughReplicas|NotEnoughReplicasAfterAppend|UnknownLeaderEpoch|FencedLeaderEpoch)Exception"
        r"|Timed out waiting for a node assignment|not present in metadata after|No resolvable bootstrap urls"
    ),
    "an executor or a worker was lost, and Spark has tried often enough": (
        r"ExecutorLostFailure|Executor heartbeat timed out|Remote RPC client disassociated|MetadataFetchFailed"
        r"|FetchFailedException|[Ww]orker (?:exited unexpectedly|failed to connect back)"
        r"|Could not find BlockManager|Block \S+ does not exist"
    ),
    "an object store is overloaded or away": (
        r"AWS Error (?:NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|THROTTLING)"
        r"|AWS(?:ClientIO|Status500|ServiceThrottled|ServiceIO)Exception|ApiCallTimeoutException|SlowDown"
        r"|Status Code: (?:429|50[0234])\b|HTTP (?:status |response )?(?:code )?(?:429|50[0234])\b"
    ),
    "a file system is starting, or changes its master": r"StandbyException|SafeModeException|RetriableException",
    "the network does not let through": (
        r"java\.net\.(?:Connect|SocketTimeout|NoRouteToHost|UnknownHost|PortUnreachable)Exception"
        r"|ConnectTimeoutException|Connection (?:refused|reset|timed out)|ClosedChannelException"
    ),
}
"""Errors that may pass before the next attempt, each with the pattern of its message."""

_PERMANENT = re.compile(
    r"DamagedFile|is damaged|MALFORMED_|Incomplete log file|MISSING_METADATA_FILE|CONCURRENT_STREAM_LOG_UPDATE"
    r"|No space left on device|Disk quota exceeded|DiskOutOfSpace|Read-only file system|Permission denied"
    r"|AccessControlException|AccessDenied|Authentication(?:Failed)?Exception|SSLHandshakeException"
    r"|UnknownTopicOrPartitionException|KAFKA_DATA_LOSS|InvalidReceiveException|ModuleNotFoundError"
    r"|PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED|Cannot run program"
)
"""Errors that are permanent, even if the text also has a transient error."""

_TRANSIENT = re.compile("|".join(f"(?:{words})" for words in TRANSIENT.values()))


def root_cause(error: BaseException) -> str:
    """Return one message without a stack trace, such as ``RunError: the state store has lost ...``.

    An error of the JVM has the name of its class without the package: ``SparkRuntimeException: [CAST...``.
    """
    texts = _texts(error)
    for text in reversed(texts):
        if _TRACEBACK in text:
            return _python_message(text.rpartition(_TRACEBACK)[2])
    for text in reversed(texts):
        if "Caused by: " in text:
            return _shortened(_message_lines(text.rpartition("Caused by: ")[2].splitlines()))
    return _shortened(_message_lines(texts[0].splitlines())) or type(error).__name__


def evidence(error: BaseException) -> str:
    """Return all texts about ``error``: its message, and the messages of all causes in Python and in the JVM."""
    texts = _texts(error)
    cause: BaseException | None = error
    while cause is not None:
        # PySpark's conversion of a Java exception loses the causes of its cause.
        java = getattr(cause, "_origin", None) or getattr(cause, "java_exception", None)
        while java is not None:
            texts.append(_of_callback(str(java.toString())))
            java = java.getCause()
        cause = _cause(cause)
    return "\n".join(texts)


def is_of_server(error: BaseException | None) -> bool:
    """Return True if ``error`` comes from a Spark Connect server."""
    while error is not None:
        if type(error).__module__.startswith("pyspark.errors.exceptions.connect"):
            return True
        error = _cause(error)
    return False


def is_transient(error: BaseException) -> bool:
    """Return whether the operation that failed with ``error`` may succeed at the next attempt."""
    if isinstance(error, Unavailable):
        return True
    text = evidence(error)
    return _PERMANENT.search(text) is None and _TRANSIENT.search(text) is not None


def _texts(error: BaseException) -> list[str]:
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts += [_of_callback(str(cause)), _of_callback(getattr(cause, "stackTrace", None) or "")]
        cause = _cause(cause)
    return texts


def _of_callback(text: str) -> str:
    """Return ``text``, or only its Spark error if that came through a sink in Python."""
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
