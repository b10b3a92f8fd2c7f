"""What Spark says when the workers' Python lacks something, and what a user is told; texts are of Spark 4.3."""

from __future__ import annotations

import pytest

from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.spark.worker_faults import is_late_worker, worker_fault

MISMATCH = (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    "version: 3.10 than that in driver: 3.11, PySpark cannot run with different minor versions."
)
PYARROW = "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not found."
PANDAS = "[PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0 must be installed; however, it was not found."


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        (MISMATCH, "the workers have Python 3.10, the driver has Python 3.11", "install Python 3.11 on every worker"),
        ('java.io.IOException: Cannot run program "python3.12": error=2, No such file', "python3.12, is not there", ""),
        ("ModuleNotFoundError: No module named 'pyarrow'", "has no 'pyarrow'", "pip install numpy pyarrow"),
        (PYARROW, "has no 'pyarrow'", "on every worker"),
        (PANDAS, "has no 'pandas'", "where the Spark Connect server runs"),
        ("ModuleNotFoundError: No module named 'google'", "has no 'protobuf'", "where the Spark Connect server runs"),
        ("ImportError: cannot import name 'descriptor' from 'google.protobuf' (unknown location)", "'protobuf'", ""),
        ("ModuleNotFoundError: No module named 'grpc'", "has no 'grpcio'", "where the Spark Connect server runs"),
        ("ModuleNotFoundError: No module named 'hintplan'", "has no 'hintplan'", "PYSPARK_PYTHON"),
        ("pyarrow.lib.ArrowMemoryError: malloc of size 64 failed", "no memory left", "spark.executor.pyspark.memory"),
        ("MemoryError", "no memory left", "spark.executor.pyspark.memory"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB", "no memory left", "fewer rows"),
    ],
)
def test_what_workers_lack_is_named_with_what_mends_it(text: str, cause: str, hint: str) -> None:
    found = worker_fault(f"Traceback (most recent call last):\n  File x\n{text}\n SQLSTATE: 38000\n\tat org.apache")
    assert found is not None
    assert cause in found[0]
    assert hint in found[1]


LATE = (
    "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back",
    "org.apache.spark.SparkException: Python worker failed to connect back.",
)


@pytest.mark.parametrize("text", LATE)
def test_a_worker_that_starts_too_late_is_named_with_where_to_look(text: str) -> None:
    assert is_late_worker(text)
    of_server, of_worker = worker_fault(text, connected=True), worker_fault(text)
    assert of_server is not None
    assert of_worker is not None
    assert of_server[0] == "Python did not start within 10 s on the Spark Connect server"
    assert of_worker[0] == "Python did not start within 10 s for a worker"
    assert "the log of the server" in of_server[1]
    assert "the log of Spark" in of_worker[1]


@pytest.mark.parametrize("text", ["ValueError: a MemoryError was expected", "shop.OutOfMemoryErrors: none"])
def test_a_text_about_memory_is_no_lack_of_it(text: str) -> None:
    assert worker_fault(f"Traceback (most recent call last):\n  File x\n{text}\n") is None


def test_a_module_of_the_users_is_named_with_how_to_send_it() -> None:
    text = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'shop'\n"
    assert worker_fault(text) is None
    error = failure_of_spark("the query of s failed", RuntimeError(text))
    assert "No module named 'shop'" in str(error)
    assert "Policy(modules=...) sends the package along" in str(error)
