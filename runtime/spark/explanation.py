"""What a failed query means to the person who runs it: the file or sink at fault, and what mends it.

Spark says what happened in nested exceptions of its own classes; here are those that people can do something about.
Everything else keeps its root cause (:mod:`hintplan.runtime.spark.failure`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from hintplan.plans.errors import RunError, Unavailable
from hintplan.plans.text.counts import first_of, shortened
from hintplan.runtime.spark.failure import evidence, is_of_server, is_transient, root_cause
from hintplan.runtime.spark.function_failed import told_failure
from hintplan.runtime.spark.worker_faults import worker_fault

Explanation = tuple[str, str]
"""What is wrong, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLine:
    """The first line of a file of a ``format`` that cannot be read; ``column`` says in which column, if that is known.

    >>> WrongLine(format="json", text='{"v": 300}', column="'v' is TINYINT, and has 300").format
    'json'
    """

    format: str
    text: str
    column: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTables:
    """What Spark does not tell of the tables of a plan that failed.

    ``wrong_line`` finds that of a file; ``brokers`` are the tables of topics, each with its servers, as people read it.
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


def failed(what: str, error: BaseException, tables: FailedTables = NO_TABLES, after: str = "") -> RunError:
    """The error that a user gets for one of Spark's: ``what`` failed, of what, ``after`` it, and what mends it.

    It is Unavailable if another attempt may help. A function of the user's that failed is named instead of ``what``.
    """
    kind = Unavailable if is_transient(error) else RunError
    if (own := told_failure(error)) is not None:
        (found,) = own.diagnostics
        told = kind(f"{found.message}{after}", hint=found.hint)
        told.__cause__ = own.__cause__ or error
        return told
    if known := explained(error, tables) or worker_fault(evidence(error), connected=is_of_server(error)):
        cause, hint = known
        return kind(f"{what}: {cause}{after}", hint=hint)
    cause = root_cause(error)
    own = re.match(r"ModuleNotFoundError: No module named '([^']+)'", cause)
    return kind(f"{what}: {cause}{after}", hint=_OWN_MODULE.format(own[1]) if own else None)


def explained(error: BaseException, tables: FailedTables = NO_TABLES) -> Explanation | None:
    """What ``error`` of a query that ended or did not start comes from; None if it is none of the known faults."""
    text = evidence(error)
    if "Traceback (most recent call last)" in text:
        return None  # from Python code, whose own error says it best
    found = _malformed_row(text, tables) or _no_room(text) or _no_broker(text, tables)
    return found or next((found for explain in _FAULTS if (found := explain(text)) is not None), None)


def _malformed_row(text: str, tables: FailedTables) -> Explanation | None:
    """A line of a source that is not what its format and columns say."""
    if "[MALFORMED_CSV_RECORD]" not in text and "[MALFORMED_RECORD_IN_PARSING" not in text:
        return None
    found = re.search(r"while reading file (\S+?)\.(?=\s|$)", text)
    file = _local(found[1]) if found else "a file"
    if limit := re.search(r"StreamConstraintsException: (.*?)(?: \(from|, from|\n|$)", text):
        return (
            f"{file} has a line that is too much for the parser of JSON: {limit[1]}",
            f"{_CORRECT}; or set the table's option 'json.ignore-parse-errors' = 'true', which skips the line",
        )
    wrong = tables.wrong_line(file) or WrongLine(format="json.ignore-parse-errors' or 'csv", text="")
    name = wrong.format
    shown = f": {shortened(wrong.text, _SHOWN)}" if wrong.text else ""
    column = f" (column {shortened(wrong.column, _SHOWN)})" if wrong.column else ""
    return (
        f"{file} has a line that does not fit the table{column}{shown}",
        f"{_CORRECT}; or set the table's option '{name}.ignore-parse-errors' = 'true', which makes "
        "NULL of what cannot be read and skips lines of which nothing can",
    )


def _no_room(text: str) -> Explanation | None:
    """A full disk or a used-up quota, below the checkpoint or where Spark keeps its own files."""
    if not re.search(r"No space left on device|Disk quota exceeded|There is not enough space|DiskOutOfSpace", text):
        return None
    return (
        f"there is no room left on the disk{_named(text)}",
        f"make room where the checkpoint is, and below spark.local.dir (/tmp if it is not set), {_RESUME}",
    )


def _long_name(text: str) -> Explanation | None:
    """A value of a partition, which a directory is named after, that is longer than names may be."""
    found = re.search(r"Mkdirs failed to create \S*?/([^/\s=]+)=[^/\s]{240,}", text)
    if found is None:
        return None
    return (
        f"a value of partition column {unquote(found[1])!r} is too long for the name of a directory",
        "leave such rows out, or take another column in PARTITIONED BY: names have at most 255 bytes, of which each "
        f"character beyond letters and digits may take several; {_RESUME}",
    )


def _not_allowed(text: str) -> Explanation | None:
    """Directories that the user of the run may not write to, or that are on a disk that nobody can."""
    found = re.search(
        r"Permission denied|AccessControlException|AccessDeniedException|Read-only file system|Mkdirs failed"
        r"|Operation not permitted|Not a directory",
        text,
    )
    if found is None:
        return None
    reason = {"Mkdirs failed": "a directory cannot be made"}.get(found[0], found[0])
    return (
        f"a file cannot be used: {reason}{_named(text)}",
        f"give the user of the run the right to read and write there, {_RESUME}",
    )


def _damaged_log(text: str) -> Explanation | None:
    """Offsets and commits, which are text files of Spark's."""
    found = re.search(r"(MALFORMED_LOG_FILE|Incomplete log file|MISSING_METADATA_FILE)[^\n]*", text)
    if found is None:
        return None
    return f"the log of batches in the checkpoint is damaged: {found[0]}", _RESTORE


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
        "messages that the checkpoint goes on with are not on the servers of the topic",
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
        + (f": those of {first_of(tables.brokers, _NAMED)}" if tables.brokers else ""),
        "see that they run, and that the table's 'properties.bootstrap.servers' and what they call themselves "
        "(advertised.listeners) can be reached from here and from where tasks run, " + _RESUME,
    )


def _another_protocol(text: str) -> Explanation | None:
    # Kafka's client takes the first bytes of such an answer for its length, for which there is no memory.
    if not re.search(
        r"AdminClient thread has exited|InvalidReceiveException|kafka-producer-network-thread.*OutOf", text
    ):
        return None
    return (
        "what answers at the servers of a topic does not speak the protocol that the table says",
        "see that 'properties.bootstrap.servers' has the port of a broker, and 'properties.security.protocol' what the "
        "broker listens for there: SSL or SASL_SSL if it is encrypted, " + _RESUME,
    )


def _of_s3(text: str) -> Explanation | None:
    """What a server of S3 refuses for good; without keys, nobody is asked."""
    if re.search(r"NoAuthWithAWS|NoAwsCredentials|Unable to load credentials", text):
        return (
            f"there are no keys for S3{_named(text)}",
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role, " + _RESUME,
        )
    if re.search(r"NoSuchBucket|UnknownStoreException", text):
        bucket = re.search(r"s3a://[^/\s:,]+", text)
        return (
            f"the bucket {bucket[0] if bucket else 'of a table, or of the checkpoint,'} is not there",
            "make it, or correct the path; AWS_ENDPOINT_URL says on which server it is, " + _RESUME,
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
    """The first file that the text names beside what went wrong, in words, if it names one."""
    found = re.search(rf"(?:Exception|Error|denied|failed)\b[^\n/]*?{_URL}((?:\w+:(?=//))?/[^\s:,()\]]+)", text)
    return f" ({_local(found[1])})" if found else ""


def _local(url: str) -> str:
    return unquote(re.sub(r"^file:(//)?", "", url))
