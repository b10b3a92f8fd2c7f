"""A broker for the tests of topics: it is started by the first test that asks, and stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.messages.broker import Broker, running_broker
from tests.connectors.messages.registry import running_registry

PROTOS = Path(__file__).parent / "protobuf"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The descriptor set of the messages in ``PROTOS``."""
    from grpc_tools import protoc

    found, files = tmp_path_factory.mktemp("protobuf") / "orders.desc", [path.name for path in PROTOS.glob("*.proto")]
    assert protoc.main(["", f"-I{PROTOS}", "--include_imports", f"--descriptor_set_out={found}", *files]) == 0
    return found


@pytest.fixture
def registry() -> Iterator[str]:
    with running_registry() as url:
        yield url


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        if found is None:
            pytest.skip("the jars of Kafka are not there; fetch them with make kafka")
        yield found
