"""Explains a failed query to the user who runs it: the file or sink at fault, and the remedy.

Spark reports errors as nested exceptions of its own classes. This module explains the errors that users can fix. For
all others, it returns the root cause (:mod:`hintplan.runtime.spark.failure`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from hintplan.plans.errors import RunError, Unavailable
from hintplan.plans.text.counts import first_of, shortened
from hintplan.plans.text.nulls import broken_constraint
from hintplan.runtime.spark.failure import evidence, is_of_server, is_transient, root_cause
from hintplan.runtime.spark.function_failed import reported_failure
from hintplan.runtime.spark.worker_faults import worker_fault

Explanation = tuple[str, str]
"""The cause, and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLine:
    """The first line of a file that cannot be parsed in its ``format``, and the ``column`` at fault, if known.

    >>> WrongLine(format="json", text='{"v": 300}', column="'v' is TINYINT, and has 300").format
    'json'
    """

    format: str
    text: str
    column: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTables:
    """Facts about the tables of a failed plan that Spark does not report.

    ``wrong_line`` finds the wrong line of a file. ``brokers`` are the tables of topics, each with its servers, as text
    for users.
    """

    wrong_line: Callable[[str], WrongLine | None] = lambda file: None
    brokers: tuple[str, ...] = ()


NO_TABLES = FailedTables()

_RESUME = "then run again; nothing that was committed is lost"
_CORRECT = (
    "correct the file, then run again, a stream with --allow-missing-files, for its batch has noted the file as it "
    "was; nothing that was committed is lost"
)
_RESTORE = "restore it, or the whole checkpoint, from a backup, " + _RESUME
_OWN_MODULE = (
    "{0} is not where workers find it: --allow-module sends the package along that an allowed module is in; "
    "--conf spark.submit.pyFiles=A.py,B.zip takes along more, or install it on every worker"
)
_SHOWN = 80
_NAMED = 3
_URL = r"(?:file:(?://)?)?"


def failure_of_spark(what: str, error: BaseException, tables: FailedTables = NO_TABLES, after: str = "") -> RunError:
    """Return the error that a user gets for a Spark ``error``.

    The message contains ``what`` failed, the cause, and the text ``after`` it; the hint is the remedy. The result is
    Unavailable if another attempt may succeed. A function of the user that failed is named instead of ``what``.
    """
    kind = Unavailable if is_transient(error) else RunError
    if (own := reported_failure(error)) is not None:
        (failure,) = own.diagnostics
        result = kind(f"{failure.message}{after}", hint=failure.hint)
        result.__cause__ = own.__cause__ or error
        return result
    if explanation := explained(error, tables) or worker_fault(evidence(error), connected=is_of_server(error)):
        cause, hint = explanation
        return kind(f"{what}: {cause}{after}", hint=hint)
    cause = root_cause(error)
    missing_module = re.match(r"ModuleNotFoundError: No module named '([^']+)'", cause)
    return kind(f"{what}: {cause}{after}", hint=_OWN_MODULE.format(missing_module[1]) if missing_module else None)


def explained(error: BaseException, tables: FailedTables = NO_TABLES) -> Explanation | None:
    """Return the cause of an ``error`` of a query that failed or did not start; None if it is not a known fault."""
    text = evidence(error)
    if broken := broken_constraint(text):
        return broken
    is_of_reader = re.search(r"^\S*RunError: \[MALFORMED_RECORD_IN_PARSING\]", text, re.MULTILINE)
    if "Traceback (most recent call last)" in text and not is_of_reader:
        return None  # the error of Python code needs no further explanation
    explanation = _malformed_row(text, tables) or _no_room(text) or _no_broker(text, tables)
    return explanation or next((explanation for explain in _FAULTS if (explanation := explain(text)) is not None), None)


def _malformed_row(text: str, tables: FailedTables) -> Explanation | None:
    """Explain a line of a source that does not match the table's format and columns."""
    if "[MALFORMED_CSV_RECORD]" not in text and "[MALFORMED_RECORD_IN_PARSING" not in text:
        return None
    match = re.search(r"while reading file (\S+?)\.(?=\s|$)", text)
    file = _local(match[1]) if match else "a file"
    if limit := re.search(r"StreamConstraintsException: (.*?)(?: \(from|, from|\n|$)", text):
        return (
            f"{file} has a line that exceeds the limits of the JSON parser: {limit[1]}",
            f"{_CORRECT}; or set the table's option 'json.ignore-parse-errors' = 'true', which skips the line",
        )
    wrong = tables.wrong_line(file) or WrongLine(format="json.ignore-parse-errors' or 'csv", text="")
    name = wrong.format
    shown = f": {shortened(wrong.text, _SHOWN)}" if wrong.text else ""
    column = f" (column {shortened(wrong.column, _SHOWN)})" if wrong.column else ""
    return (
        f"{file} has a line that does not fit the table{column}{shown}",
        f"{_CORRECT}; or set the table's option '{name}.ignore-parse-errors' = 'true', which replaces values that "
        f"cannot be read with NULL and skips lines that cannot be read at all",
    )


def _no_room(text: str) -> Explanation | None:
    """Explain a full disk or an exceeded quota, below the checkpoint or in Spark's local directory."""
    if not re.search(r"No space left on device|Disk quota exceeded|There is not enough space|DiskOutOfSpace", text):
        return None
    return (
        f"the disk is full{_named(text)}",
        f"make room where the checkpoint is, and below spark.local.dir (/tmp if it is not set), {_RESUME}",
    )


def _long_name(text: str) -> Explanation | None:
    """Explain a partition value that is too long for the name of its directory."""
    match = re.search(r"Mkdirs failed to create \S*?/([^/\s=]+)=[^/\s]{240,}", text)
    if match is None:
        return None
    return (
        f"a value of partition column {unquote(match[1])!r} is too long for the name of a directory",
        "leave such rows out, or take another column in PARTITIONED BY: names have at most 255 bytes, of which each "
        f"character beyond letters and digits may take several; {_RESUME}",
    )


def _not_allowed(text: str) -> Explanation | None:
    """Explain a directory that the user of the run cannot write to, or that is on a read-only disk."""
    match = re.search(
        r"Permission denied|AccessControlException|AccessDeniedException|Read-only file system|Mkdirs failed"
        r"|Operation not permitted|Not a directory",
        text,
    )
    if match is None:
        return None
    reason = {"Mkdirs failed": "a directory cannot be made"}.get(match[0], match[0])
    return (
        f"a file cannot be used: {reason}{_named(text)}",
        f"give the user of the run the right to read and write there, {_RESUME}",
    )


def _damaged_log(text: str) -> Explanation | None:
    """Explain damaged offsets and commits, which are text files of Spark."""
    match = re.search(r"(MALFORMED_LOG_FILE|Incomplete log file|MISSING_METADATA_FILE)[^\n]*", text)
    if match is None:
        return None
    return f"the log of batches in the checkpoint is damaged: {match[0]}", _RESTORE


def _another_run(text: str) -> Explanation | None:
    if "CONCURRENT_STREAM_LOG_UPDATE" not in text:
        return None
    return (
        "another run uses the same checkpoint, and has committed this batch",
        "stop one of them; a checkpoint has one run at a time",
    )


def _no_topic(text: str) -> Explanation | None:
    if "UnknownTopicOrPartitionException" not in text:
        return None
    return (
        "a topic that the plan reads or writes is not on its servers",
        "create it, or correct the table's option 'topic', " + _RESUME,
    )


def _no_messages(text: str) -> Explanation | None:
    if not re.search(r"KAFKA_DATA_LOSS|data may have been lost because they are not available in Kafka", text):
        return None
    return (
        "messages that the checkpoint continues with are not on the servers of the topic",
        "if a table names another topic now, or the broker has deleted messages before they were read, begin with a "
        "new checkpoint; otherwise correct the table",
    )


def _no_broker(text: str, tables: FailedTables) -> Explanation | None:
    if not re.search(
        r"Timed out waiting for a node assignment|No resolvable bootstrap urls|not present in metadata", text
    ):
        return None
    return (
        "the servers of a topic do not answer"
        + (f": the servers of {first_of(tables.brokers, _NAMED)}" if tables.brokers else ""),
        "check that they run, and that the table's 'properties.bootstrap.servers' and their advertised.listeners can "
        "be reached from here and from the workers, " + _RESUME,
    )


def _another_protocol(text: str) -> Explanation | None:
    # Kafka's client takes the first bytes of such a response for its length, and runs out of memory.
    if not re.search(
        r"AdminClient thread has exited|InvalidReceiveException|kafka-producer-network-thread.*OutOf", text
    ):
        return None
    return (
        "the servers of a topic do not speak the protocol that the table sets",
        "check that 'properties.bootstrap.servers' has the port of a broker, and that 'properties.security.protocol' "
        "is the protocol of that port: SSL or SASL_SSL if it is encrypted, " + _RESUME,
    )


def _of_s3(text: str) -> Explanation | None:
    """Explain permanent errors of S3; without keys, the client sends no request."""
    if re.search(r"NoAuthWithAWS|NoAwsCredentials|Unable to load credentials", text):
        return (
            f"there are no keys for S3{_named(text)}",
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role, " + _RESUME,
        )
    if re.search(r"NoSuchBucket|UnknownStoreException", text):
        bucket = re.search(r"s3a://[^/\s:,]+", text)
        return (
            f"the bucket {bucket[0] if bucket else 'of a table, or of the checkpoint,'} does not exist",
            "create it, or correct the path; AWS_ENDPOINT_URL sets the server, " + _RESUME,
        )
    if refused := re.search(r"\(Service: S3, Status Code: 403", text):
        return (
            f"the server of S3 refuses it{_named(text[: refused.start()])}",
            "see that the keys are right, and may list, read, write and delete there, " + _RESUME,
        )
    return None


_FAULTS: tuple[Callable[[str], Explanation | None], ...] = (
    _damaged_log,
    _another_run,
    _no_messages,
    _no_topic,
    _another_protocol,
    _of_s3,
    _long_name,
    _not_allowed,
)


def _named(text: str) -> str:
    """Return the first file that the text mentions after an error, in parentheses; empty if there is none."""
    match = re.search(rf"(?:Exception|Error|denied|failed)\b[^\n/]*?{_URL}((?:\w+:(?=//))?/[^\s:,()\]]+)", text)
    return f" ({_local(match[1])})" if match else ""


def _local(url: str) -> str:
    return unquote(re.sub(r"^file:(//)?", "", url))
