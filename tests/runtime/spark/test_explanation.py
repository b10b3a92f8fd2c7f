"""What people are told of known faults, for texts as Spark 4.3 words them."""

from __future__ import annotations

import pytest

from hintplan.runtime.spark.explanation import FailedTables, WrongLine, explained, failure_of_spark
from hintplan.runtime.spark.failure import root_cause

READING = "SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/my%20orders/9"

CASES = {
    "a long partition": (
        "java.io.IOException: Mkdirs failed to create file:/out/_temporary/0/attempt_1/day%20of=1/name="
        + "x" * 300
        + " (exists=false, cwd=file:/work)",
        "a value of partition column 'name' is too long for the name of a directory",
        "at most 255 bytes",
    ),
    "json": (
        READING + ".json.  SQLSTATE: KD001\n[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
        "detected in record parsing: [null,null].",
        "/in/my orders/9.json has a line that does not fit the table (column 'v' is INT, and has 3000000000): a line",
        "'json.ignore-parse-errors' = 'true'",
    ),
    "csv": (
        READING + ".csv.  SQLSTATE: KD001\n[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
        "detected in record parsing: [null,1].\n\tat org.apache.spark.sql.catalyst.csv.UnivocityParser.parse",
        "/in/my orders/9.csv has a line that does not fit the table (column 'v' is INT, and has 3000000000): a line",
        "'csv.ignore-parse-errors' = 'true'",
    ),
    "full disk": (
        "java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch.FileDispatcherImpl.write0",
        "the disk is full",
        "make room where the checkpoint is, and below spark.local.dir",
    ),
    "damaged log": (
        "java.lang.IllegalStateException: Incomplete log file in the offset log\n\tat org.apache.spark.sql.execution",
        "the log of batches in the checkpoint is damaged: Incomplete log file",
        "restore it, or the whole checkpoint, from a backup",
    ),
    "permission": (
        "java.io.FileNotFoundException: /ck/sink_r/offsets/.7.tmp (Permission denied)",
        "a file cannot be used: Permission denied (/ck/sink_r/offsets/.7.tmp)",
        "the right to read and write there",
    ),
    "no bucket": (
        "software.amazon.awssdk.services.s3.model.NoSuchBucketException: The specified bucket does not exist (Service: "
        "S3, Status Code: 404, Request ID: 57) (SDK Attempt Count: 1)",
        "the bucket of a table, or of the checkpoint, does not exist",
        "AWS_ENDPOINT_URL sets the server",
    ),
    "no topic": (
        "ExecutionException: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition.\n\tat java.base/java.util.concurrent",
        "a topic that the plan reads or writes is not on its servers",
        "create it, or correct the table's option 'topic'",
    ),
    "no messages": (
        "[KAFKA_DATA_LOSS.START_OFFSET_HAS_CHANGED] Some data may have been lost because they are not there",
        "messages that the checkpoint continues with are not on the servers of the topic",
        "begin with a new checkpoint",
    ),
    "no broker": (
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listTopics",
        "the servers of a topic do not answer: the servers of table o (127.0.0.1:1), table p (a:9092, b:9092)",
        "'properties.bootstrap.servers'",
    ),
    "second run": (
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 7.",
        "another run uses the same checkpoint, and has committed this batch",
        "one run at a time",
    ),
}


def tables(more: str = "") -> FailedTables:
    def wrong_line(file: str) -> WrongLine:
        return WrongLine(
            format=file.rpartition(".")[2], text=f"a line of {file}{more}", column="'v' is INT, and has 3000000000"
        )

    return FailedTables(wrong_line=wrong_line, brokers=("table o (127.0.0.1:1)", "table p (a:9092, b:9092)"))


@pytest.mark.parametrize("case", CASES)
def test_a_known_fault_is_told_with_its_file_and_what_to_do(case: str) -> None:
    text, message, hint = CASES[case]
    found = explained(RuntimeError(text), tables("x" * 200))
    assert found is not None
    assert found[0].startswith(message)
    assert len(found[0]) < 250
    assert hint in found[1]


def test_what_a_worker_says_of_damaged_state_is_told_without_the_way_it_came() -> None:
    said = "operator join_o_c cannot read its state: /ck/sink_r/state/join_o_c.1/0/1/7.1.arrow is missing"
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: "
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "runtime/storage/read.py", line 51, in _read\n    found = _part(files, ref)\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/ck/sink_r/state/join_o_c.1/0/1/7.1.arrow'\n\n"
        "The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
        '  File "runtime/engine/process.py", line 90, in _call\n    raise RunError(\n'
        f"hintplan.plans.errors.RunError: {said}\n  hint: restore it\n\n"
        "\tat org.apache.spark.api.python.BasePythonRunner"
    )
    error = failure_of_spark("the query of sink_r failed", RuntimeError(text))
    assert str(error) == f"the query of sink_r failed: RunError: {said}\n  hint: restore it"


@pytest.mark.parametrize(
    "text",
    [
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0",
        'Traceback (most recent call last):\n  File "own.py", line 3, in eval\nOSError: No space left on device',
    ],
)
def test_other_errors_and_those_of_python_code_speak_for_themselves(text: str) -> None:
    assert explained(RuntimeError(text)) is None


CALLBACK = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An exception was raised by the Python Proxy. "
    "Return Message: Traceback (most recent call last):\n"
    '  File "clientserver.py", line 644, in _call_proxy\n    return_value = getattr(self.pool, method)(*params)\n'
    "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
)
"""How an error of a micro-batch comes out of a sink in Python."""

FROM_JAVA = "py4j.protocol.Py4JJavaError: An error occurred while calling o697.getResult.\n: org.apache.spark."


@pytest.mark.parametrize("case", CASES)
def test_a_known_fault_is_told_through_a_sink_in_python_too(case: str) -> None:
    text, message, _ = CASES[case]
    wrapped = (
        f"{CALLBACK}{FROM_JAVA}SparkException: Exception thrown in awaitResult: \n\tat a.b(C.scala:1)\n"
        f"Caused by: {text}"
    )
    found = explained(RuntimeError(wrapped), tables())
    assert found is not None
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            f"{FROM_JAVA}SparkException: Exception thrown in awaitResult: \n\tat a.b(C.scala:1)\n"
            "Caused by: org.apache.spark.SparkArithmeticException: "
            "[DIVIDE_BY_ZERO] Division by zero.\n\tat a.b(C.scala:2)",
            "SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
        ),
        (
            "pyspark.errors.exceptions.captured.SparkRuntimeException: [USER_RAISED_EXCEPTION] a row has the op +X\n\n"
            "JVM stacktrace:\norg.apache.spark.SparkRuntimeException\n",
            "SparkRuntimeException: [USER_RAISED_EXCEPTION] a row has the op +X",
        ),
        ("hintplan.plans.errors.RunError: SQLite refused to write", "RunError: SQLite refused to write"),
        (
            f"{FROM_JAVA}SparkException: Job aborted\n\tat a.b(C.scala:1)\n"
            "Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "own.py", line 3, in eval\n    fail()\nValueError: no such rate\n\n\tat a.b(C.scala:3)',
            "ValueError: no such rate",
        ),
    ],
)
def test_the_root_cause_is_told_through_a_sink_in_python_too(text: str, cause: str) -> None:
    assert root_cause(RuntimeError(CALLBACK + text)) == cause


def test_a_long_traceback_of_a_sink_in_python_is_read_at_once() -> None:
    frames = "".join(f'  File "own.py", line {n}, in step\n{" " * 40}step({n})\n' for n in range(2000))
    assert root_cause(RuntimeError(f"{CALLBACK}{frames}ValueError: no such rate")) == "ValueError: no such rate"
