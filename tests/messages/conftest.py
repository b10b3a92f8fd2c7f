"""A broker for the tests of topics: it is started by the first test that asks, and stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.messages.broker import Broker, running_broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        if found is None:
            pytest.skip("the jars of Kafka are not there; fetch them with make kafka")
        yield found
