"""Lookups over HTTP: ``'connector' = 'http'``, a GET with the key in its path or query and an answer in JSON.

A JSON object is one row; an array of objects is several rows. Status 404 or 410 means that there is no row. Connections
are kept alive. Redirects must stay on the same host. ``timeout`` limits a whole lookup, however slowly the answer
arrives. Proxies and credentials from the worker's environment are not used.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from hintplan.plans.connectors.http import HEADER
from hintplan.plans.connectors.reach import HostPlace, http_host
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row
from hintplan.runtime.lookup.sources.addressing import address_parts, addressed_columns
from hintplan.runtime.lookup.sources.decoding import Decoder, json_decoder, key_text, parse_json
from hintplan.runtime.lookup.sources.failures import SourceUnavailable, redacted
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.lookup.sources.matching import RowShape
from hintplan.runtime.secrets import resolve

_REDIRECTS = 5
_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_NOTHING = frozenset((204, 404, 410))
_LENGTHS = frozenset(("content-length", "transfer-encoding"))


class HttpLookup(LookupFunction):
    """Answers a key while the caller waits."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def open(self, context: LookupContext) -> None:
        # Only an event loop can end a request that never finishes.
        self._runner = asyncio.Runner()
        self._source = AsyncHttpLookup()
        self._runner.run(self._source.open(context))

    def lookup(self, key: Key) -> list[Row]:
        return self._runner.run(self._source.lookup(key))

    def close(self) -> None:
        self._runner.run(self._source.close())
        self._runner.close()


class AsyncHttpLookup(AsyncLookupFunction):
    """Answers keys on up to ``connection.pool-size`` connections."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    async def open(self, context: LookupContext) -> None:
        self._service = _service(context)
        origin = self._service.origin
        refuse_link_local(origin.host, origin.port or origin.usual, path=f"tables.{context.table}.options.url")
        self._client = httpx.AsyncClient(**_settings(context))

    async def lookup(self, key: Key) -> list[Row]:
        service = self._service
        url = service.url(key)
        if url is None:
            return []
        with service.failures():
            async with asyncio.timeout(service.timeout):
                return await self._answer(service, key, url)

    async def _answer(self, service: _Service, key: Key, url: str) -> list[Row]:
        for _ in range(1 + _REDIRECTS):
            async with self._client.stream("GET", url) as response:
                target = service.redirect(response)
                if target is None:
                    return service.rows(key, response, await service.joined(response.aiter_raw()))
                url = target
        raise service.error("the server redirects in circles")

    async def close(self) -> None:
        await self._client.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """Converts keys to urls, and responses to rows."""

    context: LookupContext
    shape: RowShape
    addressed: tuple[str, ...]
    parts: tuple[str | int, ...]
    origin: HostPlace
    timeout: float
    empty_segments: int
    decoders: Mapping[str, Decoder]
    pointer: tuple[str, ...]
    max_bytes: int

    def url(self, key: Key) -> str | None:
        """Return the url of ``key``; None for a key that would change the path and so address another resource."""
        text = ""
        for part in self.parts:
            if isinstance(part, str):
                text += part
            else:
                text += quote(key_text(self.context.keys[part].type, key[part]), safe="")
        segments = _segments(text)
        return None if "." in segments or ".." in segments or segments.count("") > self.empty_segments else text

    def redirect(self, response: httpx.Response) -> str | None:
        """Return the target of a redirect, or None if there is none; raise RunError if it leaves the host."""
        if not response.has_redirect_location:
            return None
        try:
            target = str(response.url.join(response.headers["location"]))
            is_same_host = http_host("url", target) == self.origin
        except (ValueError, httpx.InvalidURL):
            raise self.error("the server redirects to an invalid url") from None
        if not is_same_host:
            raise self.error(
                "the server redirects to another host, scheme or port", hint="write the final address as the 'url'"
            )
        return target

    async def joined(self, chunks: AsyncIterator[bytes]) -> bytes:
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > self.max_bytes:
                raise self.error(
                    f"the response has more than {self.max_bytes} bytes",
                    hint="raise 'response.max-bytes' if that is right",
                )
        return bytes(body)

    def rows(self, key: Key, response: httpx.Response, body: bytes) -> list[Row]:
        """Return the rows in a complete response."""
        status = response.status_code
        if status in _NOTHING:
            return []
        if status in _PASSING:
            raise SourceUnavailable(f"the server answered {_status(response)}", path=self._path)
        if status != 200:
            hint = "check 'authorization'" if status in (401, 403) else "check 'url'"
            raise self.error(f"the server answered {_status(response)}", hint=hint)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.error("the server sent a compressed response without a request for one")
        try:
            value = parse_json(body)
        except ValueError as error:
            if not response.headers.keys() & _LENGTHS:  # without a length, the connection may have ended early
                text = redacted(f"the response is cut off, or not JSON ({error})", self.context.options)
                raise SourceUnavailable(text, path=self._path) from None
            raise self.error(f"the response is not JSON ({error})") from None
        value = self._pointed(value)
        items = [self._values(item) for item in (value if isinstance(value, list) else [value]) if item is not None]
        return [row for values in items if (row := self.shape.row(key, values, self.addressed)) is not None]

    def _pointed(self, value: object) -> Any:
        for step in self.pointer:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                raise self.error(
                    f"the response has nothing at {self.context.options['response.pointer']!r}",
                    hint="check 'response.pointer'",
                )
        return value

    def _values(self, item: object) -> dict[str, Any]:
        if not isinstance(item, dict):
            raise self.error("the response is no JSON object and no array of objects", hint="set 'response.pointer'")
        try:
            return {name: decode(item[name]) for name, decode in self.decoders.items() if name in item}
        except ValueError as error:
            raise self.error(f"the response does not fit the table: {error}") from None

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise errors of httpx without the url, which may contain secrets."""
        try:
            yield
        except (httpx.TimeoutException, TimeoutError):
            timeout = self.context.options.get("timeout", "10 s")
            raise SourceUnavailable(f"the server did not answer within {timeout}", path=self._path) from None
        except httpx.InvalidURL as error:
            raise self.error(f"the url is wrong: {error}", hint="check 'url'") from None
        except (httpx.ReadError, httpx.RemoteProtocolError) as error:
            text = redacted(f"the server broke off its answer: {error}", self.context.options)
            raise SourceUnavailable(text, path=self._path) from None
        except httpx.TransportError as error:
            text = redacted(f"the server cannot be reached: {error}", self.context.options)
            raise SourceUnavailable(text, path=self._path) from None

    def error(self, message: str, hint: str | None = None) -> RunError:
        return RunError(redacted(message, self.context.options), hint=hint, path=self._path)

    @property
    def _path(self) -> str:
        return f"tables.{self.context.table}"


def _service(context: LookupContext) -> _Service:
    options = context.options
    needed, parts = addressed_columns(context, "url"), address_parts(context, "url")
    shape = RowShape.of(context)
    types = {column.name: column.type for column in (*context.keys, *context.columns)}
    pointer = options.get("response.pointer", "")
    return _Service(
        context=context,
        shape=shape,
        addressed=needed,
        parts=parts,
        origin=http_host("url", context.options["url"]),
        timeout=_timeout(context),
        empty_segments=_segments("".join(part if isinstance(part, str) else "x" for part in parts)).count(""),
        decoders={name: json_decoder(types[name]) for name in shape.fetched},
        pointer=tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]),
        max_bytes=int(options.get("response.max-bytes", "1048576")),
    )


def _segments(url: str) -> list[str]:
    """Return the segments of the path of an absolute url."""
    return url.partition("?")[0].split("/")[3:]


def _settings(context: LookupContext) -> dict[str, Any]:
    options = context.options
    size = int(options.get("connection.pool-size", "10"))
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "hintplan"}
    configured = {key.removeprefix(HEADER): value for key, value in options.items() if key.startswith(HEADER)}
    if "authorization" in options:
        configured["authorization"] = options["authorization"]
    for name, value in configured.items():
        headers[name] = resolve(value)
        if not _HEADER_VALUE.fullmatch(headers[name]):
            raise RunError(
                f"the header {name} would get characters that a header cannot have",
                hint="check the environment variable that it refers to, for example for a line break at its end",
                path=f"tables.{context.table}",
            )
    return {
        "headers": headers,
        "timeout": _timeout(context),
        "limits": httpx.Limits(max_connections=size, max_keepalive_connections=size),
        "follow_redirects": False,
        "trust_env": False,
    }


def _timeout(context: LookupContext) -> float:
    """Return the time limit of a whole lookup, in seconds."""
    return parse_duration(context.options.get("timeout", "10 s")) / 1000


def _status(response: httpx.Response) -> str:
    return f"{response.status_code} {response.reason_phrase}".strip()
