"""Which hosts a lookup over HTTP may ask: those that whoever starts the run allows, ``--allow-host``.

A plan is a file from a pull request, and a host in it must not be a way into the network of the workers.

>>> is_allowed(origin("https://rates.example.com/v1/EUR"), ("rates.example.com",))
True
>>> is_allowed(origin("http://rates.example.com:8080/EUR"), ("rates.example.com", "other:8080"))
False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from plans.errors import RunError
from plans.key_pattern import Text, parse_pattern
from runtime.lookup.api import LookupContext
from runtime.lookup.sources.failures import redacted
from runtime.secrets import resolve

__all__ = ["Origin", "allowed_origin", "is_allowed", "is_known", "origin"]

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """What must be the same for two urls to be of one host."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return self.host if self.port == _PORTS.get(self.scheme) else f"{self.host}:{self.port}"


def origin(url: str) -> Origin:
    """The origin of an absolute url; ValueError if its port is none."""
    split = urlsplit(url)
    scheme = split.scheme.lower()
    return Origin(scheme, (split.hostname or "").lower(), split.port or _PORTS.get(scheme, 0))


def is_allowed(asked: Origin, hosts: Sequence[str]) -> bool:
    """Whether one of ``hosts`` is the one asked: ``HOST``, on the port of its scheme, or ``HOST:PORT``."""
    for host in hosts:
        split = urlsplit(f"//{host}")
        if (split.hostname or "").lower() == asked.host and (split.port or _PORTS.get(asked.scheme)) == asked.port:
            return True
    return False


def is_known(context: LookupContext) -> bool:
    """Whether the table's url names its host itself, and not a variable of the workers' environment."""
    first = parse_pattern(context.options["url"])[0]
    return isinstance(first, Text) and "$" not in first.text.partition("://")[2].partition("/")[0]


def allowed_origin(context: LookupContext) -> Origin:
    """The origin in the table's url; RunError, with what would allow it, if it may not be asked."""
    first = parse_pattern(context.options["url"])[0]
    path = f"tables.{context.table}.options.url"
    try:
        text = first.text if isinstance(first, Text) else ""
        asked = origin(text if is_known(context) else resolve(text))
    except ValueError as error:
        raise RunError(f"the url is wrong: {redacted(str(error), context.options)}", path=path) from None
    if not is_allowed(asked, context.allowed_hosts):
        shown = redacted(str(asked), context.options)
        raise RunError(
            f"the host {shown} is not allowed to be asked",
            hint=f"whoever starts the run can allow it: --allow-host {shown}",
            path=path,
        )
    return asked
