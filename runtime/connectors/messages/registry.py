"""Confluent's schema registry: a message contains the id of its schema, and the registry has the schema.

    0 | id of the schema, 4 bytes | Avro

An id always refers to the same schema, so each worker requests it only once. A sink registers its schema when a run
starts.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.connectors.reach import http_host
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.avro_values import avro_decoder, avro_encoder, avro_schema
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve

if TYPE_CHECKING:
    from fastavro.types import Schema

Read = TypeVar("Read")

_HEAD = struct.Struct(">bI")
HEAD_BYTES = _HEAD.size
_TIMEOUT = 30.0
_MOST_BYTES = 16 << 20
_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry at ``url``; its credentials are resolved at each request."""

    url: str
    user_info: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def schema(self, number: int) -> Schema:
        """Return the schema with the id ``number``; raise RunError if the registry has none, or does not answer."""
        schema: Schema = json.loads(_schema(self, number))
        return schema

    def register(self, subject: str, schema: Schema) -> int:
        """Return the id of ``schema`` under ``subject``, and register it if needed; raise RunError on failure."""
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        return int(_answer(self, f"/subjects/{quote(subject, safe='')}/versions", body, "id"))


def registry_of(part: Part) -> Registry:
    """Return the registry in the options of ``part``."""
    url = part.option("url")
    assert url is not None
    return Registry(url.rstrip("/"), part.option("basic-auth.user-info"), part.option("bearer-auth.token"))


def confluent_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any]]:
    """Return a function that decodes a message with any schema in the registry."""
    return of_any_schema(part, lambda schema: avro_decoder(part, wanted, schema))


def of_any_schema(part: Part, decoder: Callable[[Schema], Callable[[bytes], Read]]) -> Callable[[bytes], Read]:
    """Return a function that decodes messages with any schema in the registry of ``part``.

    ``decoder`` returns the decoder for a schema.
    """
    registry = registry_of(part)
    decoders: dict[int, Callable[[bytes], Read]] = {}

    def decode(message: bytes) -> Read:
        if len(message) < HEAD_BYTES or message[0] != 0:
            raise ValueError("it does not begin with the number of a schema")
        number = _HEAD.unpack_from(message)[1]
        decode_body = decoders.get(number)
        if decode_body is None:
            decode_body = decoders[number] = decoder(registry.schema(number))
        return decode_body(message[HEAD_BYTES:])

    return decode


def confluent_encoder(part: Part, number: int) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that encodes a message with the schema of ``part``, whose id in the registry is ``number``."""
    head, write = head_of(number), avro_encoder(part, avro_schema(part))
    return lambda values: head + write(values)


def head_of(number: int) -> bytes:
    """Return the first bytes of a message whose schema has the id ``number`` in the registry."""
    return _HEAD.pack(0, number)


@lru_cache(maxsize=1024)
def _schema(registry: Registry, number: int) -> str:
    return str(_answer(registry, f"/schemas/ids/{number}", None, "schema"))


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


@lru_cache(maxsize=1)
def _opener() -> OpenerDirector:
    return build_opener(ProxyHandler({}), _NoRedirect())


def _answer(registry: Registry, path: str, body: bytes | None, wanted: str) -> Any:
    """Return the field ``wanted`` of the registry's answer."""
    server = http_host("url", registry.url)
    refuse_link_local(server.host, server.port or 0, path="")
    headers = {"Accept": _TYPE, "Content-Type": _TYPE}
    if registry.token is not None:
        headers["Authorization"] = f"Bearer {resolve(registry.token)}"
    elif registry.user_info is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(resolve(registry.user_info).encode()).decode()
    shown = urlsplit(registry.url).netloc
    try:
        with _opener().open(Request(registry.url + path, body, headers), timeout=_TIMEOUT) as answer:
            return json.loads(answer.read(_MOST_BYTES))[wanted]
    except HTTPError as error:
        raise RunError(f"the schema registry at {shown} answers {error.code} to {path}") from None
    except (HTTPException, ValueError, LookupError, TypeError):  # without the answer, which may contain the credentials
        raise RunError(f"{shown} does not answer {path} as a schema registry does") from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"the schema registry at {shown} does not respond: {reason}") from None
