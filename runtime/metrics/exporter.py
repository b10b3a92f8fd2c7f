"""Where metrics go, as a user writes it: at ``prometheus=:9090`` they are asked for, to ``otlp=URL`` they are sent.

>>> destination("prometheus=:9090")
Destination(kind='prometheus', host='127.0.0.1', port=9090, url=None)
>>> destination("otlp=http://collector:4318").url
'http://collector:4318/v1/metrics'
>>> destination("statsd=:8125")
Traceback (most recent call last):
    ...
ValueError: metrics go to prometheus=[HOST]:PORT or otlp=URL, not to 'statsd=:8125'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import urlsplit

_LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?P<host>[^:\[\]/@]*|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_SIGNAL = "/v1/metrics"
"""What OTLP over HTTP adds to the address of a collector."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An address to be asked at, whose port is any free one if it is 0, or the URL that metrics are sent to."""

    kind: Literal["prometheus", "otlp"]
    host: str = _LOOPBACK
    port: int = 0
    url: str | None = None


class Exporter(Protocol):
    """Something that has metrics to give until it is closed; ``place`` is what a user is told of it."""

    @property
    def place(self) -> str: ...

    def close(self) -> None: ...


def destination(text: str) -> Destination:
    """What ``text`` says; ValueError with what is wrong about it."""
    kind, _, where = text.partition("=")
    if kind == "prometheus":
        return _address(where)
    if kind == "otlp":
        return _url(where)
    raise ValueError(f"metrics go to prometheus=[HOST]:PORT or otlp=URL, not to {text!r}")


def _address(text: str) -> Destination:
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"{text!r} is no [HOST]:PORT, such as :9090 for this machine alone, or 0.0.0.0:9090 for all")
    return Destination("prometheus", host=found["host"].strip("[]") or _LOOPBACK, port=int(found["port"]))


def _url(text: str) -> Destination:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{text!r} is no URL of a collector, such as http://localhost:4318")
    if parts.username or parts.password:
        raise ValueError("credentials do not belong in a URL: set OTEL_EXPORTER_OTLP_HEADERS in the environment")
    if parts.query or parts.fragment:
        raise ValueError(f"{text!r} has more than a host and a path")
    path = parts.path.rstrip("/")
    return Destination("otlp", url=parts._replace(path=path if path.endswith(_SIGNAL) else path + _SIGNAL).geturl())
