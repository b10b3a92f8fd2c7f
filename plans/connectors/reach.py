"""What a table reaches: places in file systems, and hosts. Which of them a run may reach is
:mod:`hintplan.plans.connectors.policy`'s.

Everything here is read from the text of the options: environment variables do not stand where places do.

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
    """A path; ``scheme`` is that of its file system, empty if the path has none.

    Of a file that ``is_definition``, the driver alone reads what it needs to know, and tells the workers.
    """

    option: str
    scheme: str
    authority: str
    path: str
    is_definition: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is on a machine's own disks, as far as its text says."""
        return self.scheme in ("", "file") and not self.authority

    @property
    def local_path(self) -> str:
        """The path of a local place, without its scheme."""
        return re.sub(r"^file:(//)?", "", self.path, flags=re.IGNORECASE) if self.scheme else self.path

    def __str__(self) -> str:
        """What ``--allow-scheme`` takes: the scheme, and the authority without a user."""
        return f"{self.scheme}://{self.authority.rpartition('@')[2]}" if self.authority else self.scheme


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A server. ``port`` is None if the environment says it; ``usual`` is the one that nobody has to write."""

    option: str
    host: str
    port: int | None
    usual: int
    scheme: str = ""

    def __str__(self) -> str:
        """What ``--allow-host`` takes: plain HTTP has to be named, since everybody on the way reads along."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port in (None, self.usual) else f":{self.port}"
        return f"{'http://' if self.scheme == 'http' else ''}{host}{port}"


Place = FilePlace | HostPlace


def file_place(option: str, path: str) -> FilePlace:
    """The place that Hadoop's file systems understand ``path`` as (org.apache.hadoop.fs.Path)."""
    before, colon, rest = path.partition(":")
    if not colon or "/" in before:
        return FilePlace(option, "", "", path)
    authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    return FilePlace(option, before.lower(), authority, path)


def local_file(option: str, path: str, *, is_definition: bool = False) -> FilePlace:
    """A path that is never anything but a local file's, whatever it looks like."""
    return FilePlace(option, "", "", path, is_definition)


def http_host(option: str, url: str) -> HostPlace:
    """The server of an absolute url; ValueError if its port is none."""
    split = urlsplit(url)
    scheme = split.scheme.lower()
    usual = _PORTS.get(scheme, 0)
    return HostPlace(option, (split.hostname or "").lower(), split.port or usual, usual, scheme)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine, by its literal address or as ``localhost``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
