"""An S3 server of the tests' own, which tells what it was asked, and fails when it is told to.

    with running_store() as store:
        store.make_bucket("lake")
        subprocess.run([...], env={**os.environ, **store.environment})
        store.asked[0]

It is moto behind a few lines of ours, in a thread of this process, with all that it has in memory.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs

import pyarrow.fs as pafs

__all__ = ["Fault", "ObjectStore", "Request", "running_store"]

ACCESS_KEY = "CANARYACCESSKEY"
SECRET_KEY = "canary-secret-key-of-the-store"

Fault = Literal["503 SlowDown", "500 InternalError", "403 AccessDenied", "drop", "hang"]


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: ``method`` is LIST for a listing, DELETE for each way to remove; ``key`` is below the bucket."""

    method: str
    key: str
    bucket: str = ""


Failing = Callable[[Request], Fault | None]


@dataclass(slots=True, kw_only=True)
class ObjectStore:
    """A server at ``url``, with what it was ``asked`` so far. ``failing`` says which requests fail, and how."""

    url: str
    asked: list[Request] = field(default_factory=list)
    failing: Failing | None = None
    failed: int = 0
    mended: threading.Event = field(default_factory=threading.Event)
    """Until it is set, requests hang that are to hang; they are dropped then."""

    @property
    def environment(self) -> dict[str, str]:
        """What a user of the server has in the environment."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            # So that nothing of this machine's own counts.
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def system(self) -> pafs.S3FileSystem:
        """The whole server as a file system, whose first folders are buckets."""
        return pafs.S3FileSystem(
            endpoint_override=self.url,
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region="us-east-1",
            allow_bucket_creation=True,
            allow_delayed_open=True,
        )

    def make_bucket(self, name: str) -> None:
        self.system().create_dir(name)

    def write(self, path: str, text: str) -> None:
        """An object with ``text``, at a path that begins with its bucket."""
        with self.system().open_output_stream(path) as out:
            out.write(text.encode())

    def keys(self, below: str) -> list[str]:
        """The paths of all objects below a path that begins with a bucket, in order."""
        found = self.system().get_file_info(pafs.FileSelector(below, recursive=True, allow_not_found=True))
        return sorted(info.path for info in found if info.type == pafs.FileType.File)

    def read(self, path: str) -> bytes:
        with self.system().open_input_stream(path) as source:
            return bytes(source.read())


@contextmanager
def running_store() -> Iterator[ObjectStore]:
    """A server on a free port of this machine, for the time of the block."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *arguments: Any) -> None:
            pass

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    application = DomainDispatcherApplication(create_backend_app)
    store = ObjectStore(url="")
    server = make_server("127.0.0.1", 0, _watched(store, application), threaded=True, request_handler=Quiet)
    store.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.mended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _watched(store: ObjectStore, application: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = _request(environ)
        store.asked.append(request)
        fault = None if store.failing is None else store.failing(request)
        if fault is None:
            return application(environ, start_response)
        store.failed += 1
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if fault == "hang":
            store.mended.wait()
        if fault in ("drop", "hang"):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError("dropped as the test wants")
        status, _, code = fault.partition(" ")
        body = f"<Error><Code>{code}</Code><Message>as the test wants</Message></Error>".encode()
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        start_response(f"{status} {code}", headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    return answer


def _request(environ: dict[str, Any]) -> Request:
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    bucket, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
    method = environ["REQUEST_METHOD"]
    if method == "GET" and not key:
        return Request("LIST", query.get("prefix", [""])[0], bucket)
    if method == "POST" and "delete" in query:
        return Request("DELETE", key, bucket)
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return Request("COPY", key, bucket)
    return Request(method, key, bucket)
