"""A schema registry, as Confluent's: a message says the number of its schema, and the registry has the schema.

    0 | number of the schema, 4 bytes | Avro

A number means one schema for ever, so each worker asks once for each. A sink registers its schema when a run starts.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.connectors.reach import http_host
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.avro_values import avro_decoder, avro_encoder, schema_of
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve

Read = TypeVar("Read")

_HEAD = struct.Struct(">bI")
_TIMEOUT = 30.0
_MOST_BYTES = 16 << 20
_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry at ``url``; what logs in is resolved when it is asked."""

    url: str
    user_info: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def schema(self, number: int) -> Any:
        """The schema of a number; RunError if the registry has none, or does not answer."""
        return json.loads(_schema(self, number))

    def register(self, subject: str, schema: Any) -> int:
        """The number of ``schema`` under ``subject``, which is registered if it is not there; RunError as above."""
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        return int(_answer(self, f"/subjects/{quote(subject, safe='')}/versions", body, "id"))


def registry_of(part: Part) -> Registry:
    """The registry that the options of ``part`` name."""
    url = part.option("url")
    assert url is not None
    return Registry(url.rstrip("/"), part.option("basic-auth.user-info"), part.option("bearer-auth.token"))


def confluent_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any]]:
    """What reads a message of any schema that the registry has."""
    return of_any_schema(part, lambda schema: avro_decoder(part, wanted, schema))


def of_any_schema(part: Part, decoder: Callable[[Any], Callable[[bytes], Read]]) -> Callable[[bytes], Read]:
    """What reads a message by what ``decoder`` makes of its schema, which the registry of ``part`` has."""
    registry = registry_of(part)
    decoders: dict[int, Callable[[bytes], Read]] = {}

    def decode(message: bytes) -> Read:
        if len(message) < _HEAD.size or message[0] != 0:
            raise ValueError("it does not begin with the number of a schema")
        number = _HEAD.unpack_from(message)[1]
        found = decoders.get(number)
        if found is None:
            found = decoders[number] = decoder(registry.schema(number))
        return found(message[_HEAD.size :])

    return decode


def confluent_encoder(part: Part, number: int) -> Callable[[Sequence[Any]], bytes]:
    """What writes a message with the schema of ``part``, which is registered under ``number``."""
    head, write = head_of(number), avro_encoder(part, schema_of(part))
    return lambda values: head + write(values)


def head_of(number: int) -> bytes:
    """What a message with the schema that is registered under ``number`` begins with."""
    return _HEAD.pack(0, number)


@lru_cache(maxsize=1024)
def _schema(registry: Registry, number: int) -> str:
    return str(_answer(registry, f"/schemas/ids/{number}", None, "schema"))


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@lru_cache(maxsize=1)
def _opener() -> OpenerDirector:
    return build_opener(ProxyHandler({}), _NoRedirect())


def _answer(registry: Registry, path: str, body: bytes | None, wanted: str) -> Any:
    """What the registry's answer has under ``wanted``."""
    place = http_host("url", registry.url)
    refuse_link_local(place.host, place.port or 0, path="")
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
    except (HTTPException, ValueError, LookupError, TypeError):  # without what came, which may repeat the log-in
        raise RunError(f"{shown} does not answer {path} as a schema registry does") from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"the schema registry at {shown} cannot be asked: {reason}") from None
