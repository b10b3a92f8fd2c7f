"""Iceberg catalogs and tables, confined to the options of the run's table.

Anyone who can write to a table, or who answers for a catalog, controls its metadata. Its properties can name classes to
load, or other servers and credentials for them. Its files can be anywhere, and a catalog can redirect its clients.
Therefore, a catalog may set only the prefix of its own paths. Files are read and written only below the place in the
options.
"""

from __future__ import annotations

import os
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from requests import Session

ROOT = "hintplan.root"
"""The catalog property with the place of all files, in the form of :func:`plain_place`."""

_TAKEN = ("prefix", "namespace-separator")
"""The settings that are accepted from a REST catalog: the prefix of its own paths."""


class ConfinedFileIO(PyArrowFileIO):
    """Reads and writes files below ``ROOT`` only; raises ValueError for any other place."""

    def new_input(self, location: str) -> PyArrowFile:
        return super().new_input(self._held(location))

    def new_output(self, location: str) -> PyArrowFile:
        return super().new_output(self._held(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        super().delete(self._held(location if isinstance(location, str) else location.location))

    def _held(self, location: str) -> str:
        root = self.properties[ROOT]
        if not is_below(location, root):
            raise ValueError(f"it names a file at {location}, which is not in {root}")
        return location


class _Own:
    """A catalog that reads and writes its tables with its own properties, and ignores the tables' properties."""

    properties: dict[str, Any]

    def load_table(self, identifier: Any) -> Table:
        """Return the table; raise ValueError if its properties would make a commit load a class."""
        table: Table = super().load_table(identifier)  # type: ignore[misc]
        if code_names := [name for name in table.metadata.properties if name.startswith("write.py-")]:
            raise ValueError(f"it names code to load, by {code_names[0]}; take that from the table")
        return table

    def _load_file_io(self, properties: object = None, location: str | None = None) -> ConfinedFileIO:
        return ConfinedFileIO(dict(self.properties))


class ConfinedSqlCatalog(_Own, SqlCatalog):
    """An SQLite catalog, which supplies only the place of a table's metadata."""


class ConfinedRestCatalog(_Own, RestCatalog):
    """A REST catalog that is called only at its own address; a redirect is an error."""

    def _fetch_config(self) -> None:
        own, address = dict(self.properties), self.uri
        super()._fetch_config()
        self.properties = {**{name: self.properties[name] for name in _TAKEN if name in self.properties}, **own}
        self.uri = address

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.max_redirects = 0
        return session


def is_below(location: str, root: str) -> bool:
    """Return true if ``location`` is in the directory or bucket ``root``; local links are resolved."""
    place = plain_place(location)
    if not root.startswith("s3://"):
        if place.startswith("s3://") or not place.startswith("/"):
            return False
        place, root = os.path.realpath(place), os.path.realpath(root)
    return place.startswith(f"{root.rstrip('/')}/") and ".." not in place.split("/")


def plain_place(location: str) -> str:
    """Return a place of an Iceberg table in the form of :class:`~hintplan.runtime.connectors.lakes.storage.Storage`."""
    scheme, colon, path = location.rstrip("/").partition("://")
    if colon and scheme in ("s3", "s3a", "s3n"):
        return f"s3://{path}"
    return os.path.normpath(path if colon and scheme == "file" else location.removeprefix("file:"))
