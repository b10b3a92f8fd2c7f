"""The locations that a table reaches: files and hosts. :mod:`hintplan.plans.connectors.policy` decides which are
allowed.

The module reads locations from the text of the options, in which environment variables are not allowed.

>>> file_place("path", "s3a://lake/orders")
FilePlace(option='path', scheme='s3a', authority='lake', path='s3a://lake/orders', is_definition=False)
>>> str(http_host("url", "http://rates.example.com:8080/v1"))
'http://rates.example.com:8080'
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A path and its file system. ``scheme`` is empty if the path has none.

    If ``is_definition`` is set, only the driver reads the file. It sends the contents to the workers.
    """

    option: str
    scheme: str
    authority: str
    path: str
    is_definition: bool = False

    @property
    def is_local(self) -> bool:
        """Return True if the text of the path refers to a local file system."""
        return self.scheme in ("", "file") and not self.authority

    @property
    def local_path(self) -> str:
        """Return the path of a local file without its scheme."""
        return re.sub(r"^file:(//)?", "", self.path, flags=re.IGNORECASE) if self.scheme else self.path

    def __str__(self) -> str:
        """Return the value for ``--allow-scheme``: the scheme, and the authority without a user."""
        return f"{self.scheme}://{self.authority.rpartition('@')[2]}" if self.authority else self.scheme


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A server. ``port`` is None if an environment variable sets it; ``usual`` is the default port."""

    option: str
    host: str
    port: int | None
    usual: int
    scheme: str = ""

    def __str__(self) -> str:
        """Return the value for ``--allow-host``. Plain HTTP is explicit, because others on the network can read it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port in (None, self.usual) else f":{self.port}"
        return f"{'http://' if self.scheme == 'http' else ''}{host}{port}"


Place = FilePlace | HostPlace


def file_place(option: str, path: str) -> FilePlace:
    """Return the location that Hadoop derives from ``path`` (org.apache.hadoop.fs.Path)."""
    before, colon, after_scheme = path.partition(":")
    if not colon or "/" in before:
        return FilePlace(option, "", "", path)
    authority = after_scheme[2:].partition("/")[0] if after_scheme.startswith("//") else ""
    return FilePlace(option, before.lower(), authority, path)


def local_file(option: str, path: str, *, is_definition: bool = False) -> FilePlace:
    """Return the location of ``path``, which is always a local file, even if it looks like a URL."""
    return FilePlace(option, "", "", path, is_definition)


def http_host(option: str, url: str) -> HostPlace:
    """Return the server of an absolute URL. Raise ValueError if its port is invalid."""
    split = urlsplit(url)
    scheme = split.scheme.lower()
    usual = _PORTS.get(scheme, 0)
    return HostPlace(option, (split.hostname or "").lower(), split.port or usual, usual, scheme)


def is_loopback(host: str) -> bool:
    """Return True if ``host`` is this machine: ``localhost`` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
