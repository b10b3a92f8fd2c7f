"""An S3 server on this machine, for tests of what is behind a URL."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket of a server that speaks S3, and nothing else of this machine's environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    environment = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    try:
        _await(f"{url}/moto-api/", server)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (environment | {"AWS_DEFAULT_REGION": "us-east-1"}).items():
                patch.setenv(name, value)
            pafs.S3FileSystem(endpoint_override=url, allow_bucket_creation=True).create_dir("bucket")
            yield "s3a://bucket"
    finally:
        server.kill()
        server.wait()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert server.poll() is None, "the S3 server has ended"
            assert time.monotonic() < deadline, "the S3 server does not start"
            time.sleep(0.1)  # the server's start is what is waited for
