"""What people are told of known faults, for texts as Spark 4.3 words them."""

from __future__ import annotations

import pytest

from runtime.spark.explanation import explained
from runtime.spark.failure import root_cause

READING = "SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/my%20orders/9"

CASES = {
    "json": (
        READING + ".json.  SQLSTATE: KD001\n[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
        "detected in record parsing: [null,null].",
        "/in/my orders/9.json has a line that does not fit the table: a line of ",
        "'json.ignore-parse-errors' = 'true'",
    ),
    "csv": (
        READING + ".csv.  SQLSTATE: KD001\n[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
        "detected in record parsing: [null,1].\n\tat org.apache.spark.sql.catalyst.csv.UnivocityParser.parse",
        "/in/my orders/9.csv has a line that does not fit the table: a line of ",
        "'csv.ignore-parse-errors' = 'true'",
    ),
    "full disk": (
        "java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch.FileDispatcherImpl.write0",
        "there is no room left on the disk",
        "make room where the checkpoint is, and below spark.local.dir",
    ),
    "damaged file": (
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  SQLSTATE: 58030\n"
        "[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED] Checksum verification failed, the file may be corrupted. File: "
        "file:/ck/sink_r/state/0/1/7.changelog\nExpected (file size: 1, checksum: 2)",
        "a file of the checkpoint is damaged: /ck/sink_r/state/0/1/7.changelog",
        "restore it, or the whole checkpoint, from a backup",
    ),
    "missing file": (
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  SQLSTATE: 58030\n"
        "java.io.FileNotFoundException: File file:/ck/sink_r/state/0/1/7.changelog does not exist",
        "a file of the checkpoint is missing: /ck/sink_r/state/0/1/7.changelog",
        "restore it, or the whole checkpoint, from a backup",
    ),
    "permission": (
        "java.io.FileNotFoundException: /ck/sink_r/offsets/.7.tmp (Permission denied)",
        "a file cannot be used: Permission denied (/ck/sink_r/offsets/.7.tmp)",
        "the right to read and write there",
    ),
    "second run": (
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 7.",
        "another run uses the same checkpoint, and has committed this batch",
        "one run at a time",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_known_fault_is_told_with_its_file_and_what_to_do(case: str) -> None:
    text, message, hint = CASES[case]
    found = explained(RuntimeError(text), lambda file: (file.rpartition(".")[2], f"a line of {file}" + "x" * 200))
    assert found is not None
    assert found[0].startswith(message)
    assert len(found[0]) < 200
    assert hint in found[1]


@pytest.mark.parametrize("case", ["damaged file", "missing file"])
def test_a_file_of_state_is_told_with_the_operator_whose_state_it_has(case: str) -> None:
    text = CASES[case][0].replace("/state/0/", "/state/1/")
    found = explained(RuntimeError(text), lambda file: None, ["aggregate_t", "join_o_c"])
    assert found is not None
    assert found[0].endswith("/ck/sink_r/state/1/1/7.changelog (state of join_o_c)")


def test_state_that_cannot_be_decoded_is_that_of_one_of_the_operators_of_the_query() -> None:
    text = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.\nLZ4Exception: Error decoding offset 688"
    found = explained(RuntimeError(text), lambda file: None, ["aggregate_t", "join_o_c", "join_o_c"])
    assert found is not None
    assert found[0].startswith("state of aggregate_t or join_o_c cannot be loaded from the checkpoint")


@pytest.mark.parametrize(
    "text",
    [
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0",
        'Traceback (most recent call last):\n  File "own.py", line 3, in eval\nOSError: No space left on device',
    ],
)
def test_other_errors_and_those_of_python_code_speak_for_themselves(text: str) -> None:
    assert explained(RuntimeError(text), lambda file: None) is None


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
    found = explained(RuntimeError(wrapped), lambda file: (file.rpartition(".")[2], f"a line of {file}"))
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
        ("plans.errors.RunError: SQLite refused to write", "RunError: SQLite refused to write"),
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
