"""The destinations of metrics as a user writes them: ``prometheus=:9090`` serves them, ``otlp=URL`` sends them.

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

from hintplan.runtime.web_server import LOOPBACK

_ADDRESS = re.compile(r"(?P<host>[^:\[\]/@]*|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_SIGNAL = "/v1/metrics"
"""The path that OTLP over HTTP appends to the address of a collector."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The address of a server for metrics, with port 0 for any free port, or the URL that metrics are sent to."""

    kind: Literal["prometheus", "otlp"]
    host: str = LOOPBACK
    port: int = 0
    url: str | None = None


class Exporter(Protocol):
    """Exports metrics until it is closed; ``place`` is its address, to show to the user."""

    @property
    def place(self) -> str: ...

    def close(self) -> None: ...


def destination(text: str) -> Destination:
    """Parse ``text`` as a destination; ValueError, which names the fault, if it is none."""
    kind, _, target = text.partition("=")
    if kind == "prometheus":
        return _address(target)
    if kind == "otlp":
        return _url(target)
    raise ValueError(f"metrics go to prometheus=[HOST]:PORT or otlp=URL, not to {text!r}")


def _address(text: str) -> Destination:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is no [HOST]:PORT, such as :9090 for this machine alone, or 0.0.0.0:9090 for all")
    return Destination("prometheus", host=match["host"].strip("[]") or LOOPBACK, port=int(match["port"]))


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
