"""An S3 server on this machine, for tests of what is behind a URL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.object_store.server import running_store


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of a bucket of a server that speaks S3, and nothing else of this machine's environment."""
    with running_store() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        store.make_bucket("bucket")
        yield "s3a://bucket"
