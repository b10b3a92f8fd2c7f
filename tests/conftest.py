"""Fixtures shared by all tests: one local Spark session, started by the first test that asks for it."""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import budget
from tests.connectors.messages.broker import spark_conf
from tests.sample import VARIABLE, mark_rest, seed_text
from tests.spark.quick import quick_jvms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

quick_jvms()


def pytest_configure(config: pytest.Config) -> None:
    budget.register(config)
    # Workers and other processes draw the same samples, even if somebody commits meanwhile.
    os.environ.setdefault(VARIABLE, seed_text())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadgroup":
        return None
    from tests.scheduling import SharedFixtures

    return SharedFixtures(config, log)


@pytest.hookimpl(tryfirst=True)  # before those with some marks are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_rest(items)


def pytest_report_header() -> str:
    return f"samples: of the commit; to draw the same again: {VARIABLE}={seed_text()}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores, started as a run starts its own; two shuffle partitions."""
    from hintplan.runtime.spark.session import start_session

    # As a command does: each error would fetch its stack from the JVM, to be logged.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = start_session(
        "local[2]",
        {
            **spark_conf(),
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()


@pytest.fixture
def worded_for_commands() -> Iterator[None]:
    """Errors name options, as commands show them; to Python they name arguments."""
    from hintplan.plans.python_words import for_a_command

    with for_a_command():
        yield


@pytest.fixture
def connect_port() -> Iterator[None]:
    """For tests that start a Spark Connect server: its port is always the same, so one test at a time has it."""
    with (Path(tempfile.gettempdir()) / "hintplan-tests-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
