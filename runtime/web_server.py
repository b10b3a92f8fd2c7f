"""A small HTTP server of this process. It answers GET and HEAD, and refuses all other methods.

    with serving(answer, ("127.0.0.1", 0), "--health") as url:
        ...

Knows no run, no plan and no Spark: ``answer`` makes the answer to a path.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import urlsplit

from hintplan.plans.errors import RunError

LOOPBACK = "127.0.0.1"
_REQUEST_SECONDS = 5.0
_READING = ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request: its status, its content, and headers besides the type and the length."""

    status: int = 200
    type: str = "application/json"
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(value: object, status: int = 200) -> Answer:
    """Return an answer with ``value`` as JSON.

    >>> json_answer({"status": "ok"}).content
    b'{"status": "ok"}\\n'
    """
    return Answer(status=status, content=json.dumps(value).encode() + b"\n")


def address(text: str) -> tuple[str, int]:
    """Return the host and the port in ``[HOST:]PORT``; ValueError with the problem.

    >>> address("8080"), address("0.0.0.0:8080"), address("[::1]:80")
    (('127.0.0.1', 8080), ('0.0.0.0', 8080), ('::1', 80))
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or (":" in host and "[" not in text):
        raise ValueError(f"expected PORT or HOST:PORT, found '{text}'")
    return host or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach ``host``.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("etl-1")
    (True, True, False, False)
    """
    return ip_address(host).is_loopback if is_address(host) else host.lower() == "localhost"


def is_own_name(host_header: str, names: Collection[str]) -> bool:
    """Return True if a ``Host`` header names this machine: by an address, as ``localhost``, or by one of ``names``.

    Other names may belong to a website that resolves its own name to this machine, to read the answers (DNS rebinding).

    >>> [is_own_name(header, ("etl-1",)) for header in ("127.0.0.1:80", "[::1]:80", "ETL-1", "evil.example:80", "")]
    [True, True, True, False, False]
    """
    try:
        host = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:  # an IPv6 address without its end
        return False
    return is_address(host) or host in {"localhost", *map(str.lower, names)}


def is_address(host: str) -> bool:
    """Return True if ``host`` is an IP address.

    >>> is_address("127.0.0.1"), is_address("::1"), is_address("etl-1")
    (True, True, False)
    """
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@contextmanager
def serving(
    answer: Callable[[str], Answer], where: tuple[str, int], option: str, *, own_names: Collection[str] | None = None
) -> Iterator[str]:
    """Serve at ``where`` during the block, and yield the URL; RunError, which names ``option``, if it is not possible.

    ``answer`` receives the path of a request with its query, in a thread of its own. With ``own_names``, requests for
    other host names are refused (:func:`is_own_name`).
    """

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            if not isinstance(sys.exception(), ConnectionError | TimeoutError):  # a client that has gone is no error
                super().handle_error(request, client_address)  # type: ignore[arg-type]

    try:
        server = Server(where, _handler(answer, own_names))
    except OSError as error:
        raise RunError(
            f"{option} cannot listen on {where[0]} port {where[1]}: {error.strerror}",
            hint="choose another port; an address must be one of this machine's",
        ) from error
    name = f"hintplan-{option.removeprefix('--')}"
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name=name, daemon=True)
    thread.start()
    host = f"[{where[0]}]" if ":" in where[0] else where[0]
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(answer: Callable[[str], Answer], own_names: Collection[str] | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            given = self._answer()
            self.send_response(given.status)
            headers = {"Content-Type": given.type, "Content-Length": str(len(given.content)), **given.headers}
            for name, value in {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(given.content)

        do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

        def _answer(self) -> Answer:
            if own_names is not None and not is_own_name(self.headers.get("Host", ""), own_names):
                words = "this server answers to the addresses and the name of its machine only"
                return json_answer({"error": words}, HTTPStatus.MISDIRECTED_REQUEST)
            if self.command not in _READING:
                refused = json_answer({"error": "this server only answers GET and HEAD"}, HTTPStatus.METHOD_NOT_ALLOWED)
                # The body of the request is unread, so the connection cannot be used for another one.
                self.close_connection = True
                return Answer(status=refused.status, content=refused.content, headers={"Allow": ", ".join(_READING)})
            return answer(self.path)

        def version_string(self) -> str:
            return "hintplan"

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
