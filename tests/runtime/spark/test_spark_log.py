"""What py4j says of calls that were interrupted, or found no JVM, does not reach the terminal."""

from __future__ import annotations

import inspect
import logging
import re

import py4j.java_gateway
import pytest

from hintplan.runtime.spark.quiet import SparkLog


def test_tracebacks_of_calls_into_the_jvm_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    source = inspect.getsource(py4j.java_gateway.GatewayClient.send_command)
    said = re.findall(r"logging\.exception\(\s*\"(.*?)\"\)", source)
    assert len(said) == 2
    filters = list(logging.getLogger().filters)
    log = SparkLog()
    try:
        with log.captured():
            for message in (*said, "another message"):
                logging.exception(message)
    finally:
        log.discard()
        logging.getLogger().filters[:] = filters
    assert [record.msg for record in caplog.records] == ["another message"]
