"""Lookups over HTTP, against a server on loopback: urls, responses, limits, and hosts that nobody asks."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.sources.failures import SourceUnavailable
from tests.connectors.lookup_sources.asking import asked, context, opened
from tests.connectors.lookup_sources.servers import free_port

MODES = ("sync", "async")
RATE = {"code": "STRING", "rate": "DECIMAL(10, 4)", "n": "INT"}


class Service:
    """A server that answers from ``answers`` (path and query to status and body) and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, object]] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []
        self.received: list[dict[str, str]] = []
        self.connections: set[tuple[str, int]] = set()
        self.held = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                service.asked.append(self.path)
                service.received.append({name.lower(): value for name, value in self.headers.items()})
                service.connections.add(self.client_address)
                if self.path.startswith("/held"):
                    service.held.wait(10)
                status, body = service.answers.get(self.path, (404, {"error": "none"}))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with suppress(BrokenPipeError):  # a client that has given up
                    self.wfile.write(data)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}"


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield service
    service.held.set()
    service.server.shutdown()
    service.server.server_close()
    thread.join()


@contextmanager
def dribbling(start: bytes) -> Iterator[str]:
    """The url of a server that answers with ``start`` and then a byte every 50 ms, until its client goes."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(start)
            while not ended.wait(0.05):
                connection.sendall(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        listener.close()


@contextmanager
def breaking_off(answer: bytes) -> Iterator[str]:
    """The url of a server that answers each request with ``answer``, and closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1 << 16)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


HALF = b'{"n": 1, "ra'
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def where(service: Service, path: str = "/rates/{code}", *, keys=("code",), declared=RATE, **more: str):
    options = {"connector": "http", "url": service.url + path} | {k.replace("_", "."): v for k, v in more.items()}
    return context(options, declared, keys=keys)


@pytest.mark.parametrize("mode", MODES)
class TestLookups:
    def test_an_object_is_a_row_and_404_is_none(self, service, mode):
        service.answers["/rates/EUR"] = 200, b'{"code": "EUR", "rate": 1.0800, "n": 7, "more": []}'
        with asked(mode, where(service)) as ask:
            assert ask(("EUR",), ("none",)) == [[("EUR", Decimal("1.08"), 7)], []]

    def test_what_the_response_does_not_repeat_of_the_key_is_the_key(self, service, mode):
        service.answers["/rates/EUR"] = 200, {"rate": "1.08"}
        with asked(mode, where(service)) as ask:
            assert ask(("EUR",)) == [[("EUR", Decimal("1.08"), None)]]

    def test_an_array_is_several_rows_of_which_those_of_the_key_count(self, service, mode):
        service.answers["/rates?base=EUR"] = 200, [{"n": 1}, {"code": "USD", "n": 2}, {"code": "EUR", "n": 3}, None]
        with asked(mode, where(service, "/rates?base={code}")) as ask:
            assert ask(("EUR",)) == [[("EUR", None, 1), ("EUR", None, 3)]]

    def test_a_pointer_leads_to_the_rows(self, service, mode):
        service.answers["/rates/EUR"] = 200, {"data": {"a/b": [{"items": [{"n": 5}]}]}}
        with asked(mode, where(service, **{"response.pointer": "/data/a~1b/0/items"})) as ask:
            assert ask(("EUR",)) == [[("EUR", None, 5)]]

    def test_empty_answers_are_none(self, service, mode):
        service.answers |= {"/rates/a": (200, []), "/rates/b": (200, None)}
        service.answers |= {"/rates/c": (204, b""), "/rates/d": (410, {})}
        with asked(mode, where(service)) as ask:
            assert ask(("a",), ("b",), ("c",), ("d",)) == [[], [], [], []]

    @pytest.mark.parametrize("key", ["a/b", "a?b=c&d", "é ü", "%2F", "#x", "a+b", "x@evil.org", "..%2f", "\r\nX: y"])
    def test_a_key_stays_one_part_of_the_url_whatever_it_says(self, service, mode, key):
        with asked(mode, where(service, "/rates/{code}/of?q={code}&z=1")) as ask:
            assert ask((key,)) == [[]]
        (path,) = service.asked
        split = urlsplit(path)
        assert [unquote(part) for part in split.path.split("/")] == ["", "rates", key, "of"]
        assert [unquote(part) for part in split.query.split("&")] == [f"q={key}", "z=1"]
        assert split.query.count("&") == 1

    @pytest.mark.parametrize("key", ["", ".", ".."])
    def test_a_key_that_no_path_can_hold_finds_nothing_and_asks_nobody(self, service, mode, key):
        service.answers |= {"/rates/": (200, {"n": 1}), "/": (200, {"n": 2}), "/rates": (200, {"n": 3})}
        with asked(mode, where(service)) as ask:
            assert ask((key,)) == [[]]
        assert service.asked == []

    def test_several_columns_and_types_go_into_the_url(self, service, mode):
        declared = {"d": "DATE", "ok": "BOOLEAN", "p": "DECIMAL(5, 2)", "n": "INT"}
        import datetime as dt

        service.answers["/2024-02-29/true?p=1.50"] = 200, {"n": 1}
        place = where(service, "/{d}/{ok}?p={p}", declared=declared, keys=("p", "d", "ok"))
        with asked(mode, place) as ask:
            day = dt.date(2024, 2, 29)
            assert ask((Decimal("1.50"), day, True)) == [[(day, True, Decimal("1.50"), 1)]]

    def test_headers_and_credentials_come_from_the_environment(self, service, mode, monkeypatch):
        monkeypatch.setenv("RATES_AUTH", "Bearer s3cret-token")
        monkeypatch.setenv("RATES_KEY", "k3y")
        options = {"header.X-Api-Key": "${env:RATES_KEY}", "header.X-Client": "hintplan"}
        options |= {"authorization": "${env:RATES_AUTH}"}
        with asked(mode, where(service, **options)) as ask:
            ask(("EUR",))
        (received,) = service.received
        assert received["authorization"] == "Bearer s3cret-token"
        assert (received["x-api-key"], received["x-client"]) == ("k3y", "hintplan")

    def test_a_credential_with_a_line_break_is_not_repeated(self, service, mode, monkeypatch):
        monkeypatch.setenv("RATES_AUTH", "Bearer s3cret-token\n")
        with pytest.raises(RunError, match="the header authorization would get characters that") as caught:
            asked(mode, where(service, authorization="${env:RATES_AUTH}")).__enter__()
        assert "s3cret" not in str(caught.value)

    def test_connections_are_kept_alive(self, service, mode):
        with asked(mode, where(service)) as ask:
            ask(*((str(i),) for i in range(20)))
        assert len(service.asked) == 20
        assert len(service.connections) == 1

    @pytest.mark.parametrize(
        "address", ["169.254.169.254", "fe80::1%lo", "::ffff:169.254.169.254"], ids=["IPv4", "IPv6", "IPv4 in IPv6"]
    )
    def test_a_name_with_a_link_local_address_is_not_asked(self, service, mode, monkeypatch, address):
        def found(host, port, **more):
            assert host == "rates.example.com"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", port)), (0, 0, 6, "", (address, port))]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        place = context({"connector": "http", "url": "https://rates.example.com/{code}"}, RATE, keys=["code"])
        with pytest.raises(RunError, match=r"the host rates\.example\.com has a link-local address"):
            asked(mode, place).__enter__()

    @pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"])
    def test_a_link_local_address_is_not_asked(self, service, mode, host):
        place = context({"connector": "http", "url": f"http://{host}/{{code}}"}, RATE, keys=["code"])
        with pytest.raises(RunError, match="has a link-local address, which is never allowed"):
            asked(mode, place).__enter__()

    @pytest.mark.parametrize("slow", ["header", "body"])
    def test_a_server_that_answers_byte_by_byte_is_given_up_in_time(self, mode, slow):
        start = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"
        with dribbling(start + b"X: " if slow == "header" else start + b"\r\n") as url:
            options = {"connector": "http", "url": f"{url}/{{code}}", "timeout": "300 ms"}
            with asked(mode, context(options, RATE, keys=["code"])) as ask:
                before = time.monotonic()
                with pytest.raises(SourceUnavailable, match="did not answer within 300 ms"):
                    ask(("EUR",))
                # A byte comes every 50 ms, so each wait of its own is short; 100 of them would take 5 s.
                assert time.monotonic() - before < 3

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (b"", "broke off its answer"),
            (b"HTTP/1.1 20", "broke off its answer"),
            (OK + b"Content-Len", "broke off its answer"),
            (OK + b"Content-Length: 12\r\n\r\n", "broke off its answer"),
            (OK + b"Content-Length: 13\r\n\r\n" + HALF, "broke off its answer"),
            (b"HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n" + HALF, "broke off its answer"),
            (CHUNKED, "broke off its answer"),
            (CHUNKED + b'8\r\n{"n": 1}\r\n', "broke off its answer"),
            (CHUNKED + b'ff\r\n{"n": 1}\r\n', "broke off its answer"),
            (OK + b"\r\n", "the response is cut off, or not JSON"),
            (OK + b"Connection: close\r\n\r\n" + HALF, "the response is cut off, or not JSON"),
        ],
    )
    def test_half_an_answer_is_none_and_may_be_asked_for_again(self, mode, answer, said):
        """Never taken for the row, nor for no row."""
        with breaking_off(answer) as url:
            place = context({"connector": "http", "url": f"{url}/{{code}}"}, RATE, keys=["code"])
            with asked(mode, place) as ask, pytest.raises(SourceUnavailable, match=said):
                ask(("EUR",))

    @pytest.mark.parametrize("head", [b"", b"Connection: close\r\n", b"Content-Length: 8\r\n"])
    def test_an_answer_may_end_with_its_connection(self, mode, head):
        with breaking_off(OK + head + b'\r\n{"n": 1}') as url:
            place = context({"connector": "http", "url": f"{url}/{{code}}"}, RATE, keys=["code"])
            with asked(mode, place) as ask:
                assert ask(("EUR",)) == [[("EUR", None, 1)]]

    def test_a_redirect_on_the_same_host_is_followed(self, service, mode):
        service.answers |= {"/rates/EUR": (302, b""), "/v2/EUR": (200, {"n": 1})}
        service.headers["Location"] = "/v2/EUR"
        # The header is sent with every response; only one of a redirection is one.
        with asked(mode, where(service)) as ask:
            assert ask(("EUR",)) == [[("EUR", None, 1)]]

    @pytest.mark.parametrize("target", ["http://127.0.0.2:9/x", "https://127.0.0.1/x", "//evil.example/x"])
    def test_a_redirect_to_another_host_is_refused(self, service, mode, target):
        service.answers["/rates/EUR"] = 302, b""
        service.headers["Location"] = target
        with asked(mode, where(service)) as ask, pytest.raises(RunError, match="redirects to another host"):
            ask(("EUR",))

    def test_a_circle_of_redirects_ends(self, service, mode):
        service.answers["/rates/EUR"] = 307, b""
        service.headers["Location"] = "/rates/EUR"
        with asked(mode, where(service)) as ask, pytest.raises(RunError, match="redirects in circles"):
            ask(("EUR",))
        assert len(service.asked) == 6

    def test_a_response_that_is_too_large_is_refused(self, service, mode):
        service.answers |= {"/rates/EUR": (200, {"n": 1, "x": "y" * 1000}), "/rates/USD": (200, {"n": 1})}
        with asked(mode, where(service, **{"response.max-bytes": "1000"})) as ask:
            assert ask(("USD",)) == [[("USD", None, 1)]]
            with pytest.raises(RunError, match=r"more than 1000 bytes\n  hint: raise 'response.max-bytes'"):
                ask(("EUR",))

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_a_server_in_trouble_may_be_tried_again(self, service, mode, status):
        service.answers["/rates/EUR"] = status, {}
        with asked(mode, where(service)) as ask:
            with pytest.raises(SourceUnavailable, match=rf"tables\.t: the server answered {status}"):
                ask(("EUR",))
            service.answers["/rates/EUR"] = 200, {"n": 1}
            assert ask(("EUR",)) == [[("EUR", None, 1)]]

    @pytest.mark.parametrize(
        ("status", "body", "message"),
        [
            (401, {}, "the server answered 401 Unauthorized\n  hint: check 'authorization'"),
            (400, {}, "the server answered 400 Bad Request\n  hint: check 'url'"),
            (200, b"<html>", "the response is not JSON"),
            (200, 17, "the response is no JSON object and no array of objects"),
            (200, {"n": "many"}, "the response does not fit the table: 'many' is not INT"),
            (200, {"rate": 1.23456}, "'1.23456' does not fit into DECIMAL(10, 4)"),
        ],
    )
    def test_any_other_answer_is_final(self, service, mode, status, body, message):
        service.answers["/rates/EUR"] = status, body
        with asked(mode, where(service)) as ask:
            with pytest.raises(RunError) as caught:
                ask(("EUR",))
            assert message in str(caught.value)

    def test_a_server_that_hangs_is_given_up_without_repeating_the_url(self, service, mode, monkeypatch):
        monkeypatch.setenv("RATES_TOKEN", "s3cret-token")
        with asked(mode, where(service, "/held/{code}?token=${env:RATES_TOKEN}", timeout="50 ms")) as ask:
            with pytest.raises(SourceUnavailable, match="did not answer within 50 ms") as caught:
                ask(("EUR",))
            assert "s3cret" not in str(caught.value)
        assert service.asked == ["/held/EUR?token=s3cret-token"]

    def test_a_server_that_is_not_there_may_be_tried_again(self, service, mode):
        gone = f"127.0.0.1:{free_port()}"
        options = {"connector": "http", "url": f"http://{gone}/{{code}}"}
        place = context(options, RATE, keys=["code"])
        with asked(mode, place) as ask, pytest.raises(SourceUnavailable, match="the server cannot be reached"):
            ask(("EUR",))

    def test_a_compressed_response_is_refused(self, service, mode):
        service.answers["/rates/EUR"] = 200, {"n": 1}
        service.headers["Content-Encoding"] = "gzip"
        with asked(mode, where(service)) as ask, pytest.raises(RunError, match="compressed"):
            ask(("EUR",))
        assert service.received[0]["accept-encoding"] == "identity"


def test_many_lookups_run_at_once_on_the_connections_of_the_pool(service):
    import asyncio

    place = where(service, "/held/{code}", **{"connection.pool-size": "4"})

    async def main():
        source = opened("async", place)
        await source.open(place)
        tasks = [asyncio.create_task(source.lookup((str(i),))) for i in range(8)]
        while len(service.asked) < 4:
            await asyncio.sleep(0.001)
        waiting = len(service.asked)
        service.held.set()
        await asyncio.gather(*tasks)
        await source.close()
        return waiting

    assert asyncio.run(main()) == 4
    assert len(service.asked) == 8


def test_the_driver_refuses_what_would_fail_in_a_worker(monkeypatch):
    from hintplan.runtime.connectors.table import lookup_source

    monkeypatch.delenv("ONLY_IN_WORKERS", raising=False)

    def checked(url: str) -> None:
        place = context({"connector": "http", "url": url}, RATE, keys=("code",))
        lookup_source(place.options).check("sync", place)

    checked("https://example.com/${env:ONLY_IN_WORKERS}/{code}")
    with pytest.raises(RunError, match=r"'url' needs code, n\n  hint: join ON n = \.\.\. as well"):
        checked("https://example.com/{code}/{n}")


def test_without_httpx_the_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "httpx", None)
    place = context({"connector": "http", "url": "http://h/{code}"}, RATE, keys=["code"])
    with pytest.raises(RunError, match=r"pip install 'hintplan\[http\]'"):
        opened("async", place)
