"""What state asks a server of S3 that fails for a while: it is asked again; what it refuses for good is told."""

from __future__ import annotations

from collections import Counter

import pytest

from hintplan.runtime.storage.remote_files import RemoteFiles, remote_files
from tests.connectors.object_store.server import Fault, ObjectStore, Request

pytestmark = pytest.mark.part(of=2)

TIMES = 2
"""How often each kind of request fails. Arrow waits half a second before it asks again, then twice as long."""


@pytest.fixture
def files(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> RemoteFiles:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    store.system().create_dir("failing")
    return remote_files("s3a://failing/state")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["503 SlowDown", "500 InternalError", "drop"])
def test_each_kind_of_request_is_made_again(fault: Fault, files: RemoteFiles, store: ObjectStore) -> None:
    seen: Counter[str] = Counter()

    def failing(request: Request) -> Fault | None:
        seen[request.method] += 1
        return fault if seen[request.method] <= TIMES else None

    store.failing, store.failed = failing, 0
    assert files.publish(f"{fault}/1.7.manifest", b"one")
    assert bytes(files.read(f"{fault}/1.7.manifest")) == b"one"
    assert files.names(fault) == ["1.7.manifest"]
    files.remove(f"{fault}/1.7.manifest")
    assert store.failed == 5 * TIMES, "HEAD, PUT, GET, LIST and DELETE"
    store.failing = None
    assert [name for name in files.names(fault) if name] == []


def test_what_is_refused_for_good_is_said(files: RemoteFiles, store: ObjectStore) -> None:
    store.failing = lambda request: "403 AccessDenied"
    with pytest.raises(OSError, match=r"ACCESS_DENIED|AccessDenied|Access Denied"):
        files.names("0")
