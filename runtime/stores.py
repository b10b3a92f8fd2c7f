"""File systems behind URLs, opened with pyarrow in any process: a worker, or a process that Spark starts.

    s3://bucket/path (also s3a://)   hdfs://host:port/path   gs://bucket/path   abfs[s]://container@account.../path

:mod:`hintplan.runtime.s3` configures S3. The package hdfs-native accesses HDFS in Hadoop's own protocol. It reads the
configuration in ``HADOOP_CONF_DIR``, and needs neither a JVM nor Hadoop's libraries. Modules that are pickled by value
may use this module, because it imports nothing else of hintplan.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hintplan.runtime import s3

if TYPE_CHECKING:
    import pyarrow.fs as pafs


_PORTS = {"http": 80, "https": 443}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_CONNECT_SECONDS = 10.0


def silence(url: str) -> str | None:
    """Return the reason why no server listens at ``url``; None if one does, or if that is unknown.

    Clients repeat requests to a missing server for minutes before they report it.
    """
    server = s3.endpoint(os.environ) if s3.is_s3(url) else url if url.startswith("hdfs:") else None
    if server is None or any(os.environ.get(name) for name in _PROXIES):
        return None
    split = urlsplit(server if "://" in server else f"https://{server}")
    try:
        if (port := split.port or _PORTS.get(split.scheme)) is None:
            return None  # a logical name for several servers
        socket.create_connection((split.hostname or "", port), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        return f"no server answers at {server}: {error}"
    return None


def open_store(url: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of ``url``, and the path in it; ValueError, OSError or ArrowException if that fails.

    ImportError if a package is missing.
    """
    import pyarrow.fs as pafs

    if s3.is_s3(url):
        return s3.s3_system(), url.partition("://")[2]
    split = urlsplit(url)
    if split.scheme == "hdfs":
        # Create a new instance each time: fsspec would reuse an open one, even after a fork.
        system = _hdfs()(split.hostname, split.port, skip_instance_cache=True)
        return pafs.PyFileSystem(pafs.FSSpecHandler(system)), split.path
    system, path = pafs.FileSystem.from_uri(url)
    return system, path


def _hdfs() -> type[Any]:
    """Return fsspec's class of HDFS, changed to take a path as it is: its own would cut the path at ? or #."""
    from hdfs_native.fsspec import HdfsFileSystem

    class Hdfs(HdfsFileSystem):
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            if path.startswith("hdfs://"):
                path = "/" + "/".join(path.split("/")[3:])
            return path or "/"

    return Hdfs


def move_onto(system: pafs.FileSystem, source: str, target: str) -> None:
    """Rename a file to ``target``, and replace an existing file there, where a plain rename would fail."""
    import pyarrow.fs as pafs

    if isinstance(system, pafs.PyFileSystem):
        system.handler.fs.mv(source, target, overwrite=True)
    else:
        system.move(source, target)
