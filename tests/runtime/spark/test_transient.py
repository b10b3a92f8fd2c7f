"""Which failures are worth another attempt, by what servers, drivers and Spark have said in such cases."""

from __future__ import annotations

import pytest

from hintplan.plans.errors import PlanError, RunError, Unavailable
from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.spark.failure import is_transient

WORKER = "An exception was thrown from the Python worker. Traceback (most recent call last):\n  File ...\n"

PASSES = {
    "a lookup": WORKER
    + "hintplan.plans.errors.Unavailable: operator lookup_r: looking up key (1,) failed 4 times: ...",
    "an older lookup": WORKER + "hintplan.runtime.lookup.sources.failures.SourceUnavailable: the server answered 503",
    "topic": "org.apache.kafka.common.errors.TimeoutException: Topic t not present in metadata after 60000 ms.",
    "admin": "Timed out waiting for a node assignment. Call: describeTopics",
    "leader": "org.apache.kafka.common.errors.NotLeaderOrFollowerException: For requests intended only for the leader",
    "executor": "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited",
    "worker": "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    "late": "org.apache.spark.SparkException: Python worker failed to connect back.",
    "late on a server": "java.net.SocketTimeoutException: Timed out while waiting for the Python worker ...",
    "S3": "software.amazon.awssdk.services.s3.model.S3Exception: Slow Down (Service: S3, Status Code: 503, Request ...",
    "Arrow": "OSError: When reading key 'k' in bucket 'b': AWS Error NETWORK_CONNECTION during HeadObject operation",
    "hdfs": "org.apache.hadoop.ipc.StandbyException: Operation category READ is not supported in state standby",
    "network": "java.net.ConnectException: Call From a to b:8020 failed: Connection refused",
}
STAYS = {
    "data": "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: Connection refused",
    "expression": "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0",
    "state": WORKER
    + "hintplan.runtime.storage.manifest.DamagedFile: 7.1.manifest is cut off; java.net.ConnectException: x",
    "other run": "CONCURRENT_STREAM_LOG_UPDATE ... org.apache.kafka.common.errors.TimeoutException: x",
    "disk": "java.io.IOException: No space left on device",
    "rights": "org.apache.hadoop.security.AccessControlException: Permission denied: user=x",
    "no topic": "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic",
    "password": "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
    "lost messages": "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost; Connection refused",
    "worker's Python": WORKER + "ModuleNotFoundError: No module named 'pyarrow'",
    "code": WORKER + "TypeError: unsupported operand type(s)",
    "a refused row": WORKER
    + "hintplan.plans.errors.RunError: PostgreSQL refused to write to table 't': value too long",
}


@pytest.mark.parametrize("name", PASSES)
def test_what_may_be_over_at_the_next_attempt(name: str) -> None:
    error = failure_of_spark("the query of sink_r failed", Exception(PASSES[name]))
    assert isinstance(error, Unavailable)
    assert is_transient(error)


@pytest.mark.parametrize("name", STAYS)
def test_what_is_for_good(name: str) -> None:
    error = failure_of_spark("the query of sink_r failed", Exception(STAYS[name]))
    assert type(error) is RunError
    assert not is_transient(error)


def test_what_is_wrong_with_a_plan_is_for_good() -> None:
    assert not is_transient(PlanError("unknown operator"))
    assert not is_transient(RunError("the checkpoint is in use"))
