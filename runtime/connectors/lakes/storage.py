"""Access to the files of a data lake table from the processes of a run: a local directory, or a bucket through S3.

>>> where = storage_of({"at": "file:///data/orders"}, "at").here()
>>> where.root, where.is_local
('/data/orders', True)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from hintplan.plans.connectors.reach import file_place, http_host
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The directory or url ``root`` of a table, and the ``options`` of its store, with secrets unresolved."""

    root: str
    options: Mapping[str, str]

    @property
    def is_local(self) -> bool:
        return not self.root.startswith("s3://")

    def here(self) -> Storage:
        """Return the storage, with a relative directory resolved in this process."""
        return replace(self, root=os.path.abspath(self.root)) if self.is_local else self

    def files(self) -> tuple[pafs.FileSystem, str]:
        """Return the file system, and the path of the root in it."""
        if self.is_local:
            return pafs.LocalFileSystem(), self.root
        settings = self.resolved()
        endpoint = urlsplit(settings.get("s3.endpoint", ""))
        options = {
            "region": settings.get("s3.region"),
            "access_key": settings.get("s3.access-key-id"),
            "secret_key": settings.get("s3.secret-access-key"),
            "session_token": settings.get("s3.session-token"),
            "endpoint_override": endpoint.netloc,
            "scheme": endpoint.scheme,
        }
        system = pafs.S3FileSystem(**{name: value for name, value in options.items() if value})
        return system, self.root.removeprefix("s3://")

    def resolved(self) -> dict[str, str]:
        """Return the options of the store, with references to the environment resolved in this process.

        Raises RunError if the store has a link-local address.
        """
        endpoint = self.options.get("s3.endpoint")
        if endpoint is not None:
            host = http_host("s3.endpoint", endpoint)
            refuse_link_local(host.host, host.port or host.usual, path="s3.endpoint")
        return {name: resolve(value) for name, value in self.options.items()}


def storage_of(options: Mapping[str, str], path_option: str) -> Storage:
    """Return the storage of a table with these ``options``."""
    place = file_place(path_option, options[path_option])
    if place.is_local:
        return Storage(root=place.local_path, options={})
    root = f"s3://{place.path.partition('://')[2].rstrip('/')}"
    return Storage(root=root, options={name: value for name, value in options.items() if name.startswith("s3.")})
