"""Catalogs of Iceberg and their tables, held to what the options of the run's table say.

Whoever can write to a table or answers for a catalog decides its metadata: its properties can name classes to load and
other servers with credentials for them, its files can be anywhere, and a catalog can send its clients elsewhere. So of
what they say about how a table is read nothing is taken but the prefix of a catalog's paths, and files are read and
written below the place that the options name.
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
"""The property of a catalog that says where files may be, as :func:`plain_place` has it."""

_TAKEN = ("prefix", "namespace-separator")
"""What is taken of the settings that a REST catalog sends: how the paths of its own addresses begin."""


class ConfinedFileIO(PyArrowFileIO):
    """Files below ``ROOT`` alone; ValueError for any other place."""

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
    """A catalog whose tables are read and written with its own properties, whatever theirs are."""

    properties: dict[str, Any]

    def load_table(self, identifier: Any) -> Table:
        """The table; ValueError if a commit to it would load a class, which it does by the table's own properties."""
        table: Table = super().load_table(identifier)  # type: ignore[misc]
        if named := [name for name in table.metadata.properties if name.startswith("write.py-")]:
            raise ValueError(f"it names code to load, by {named[0]}; take that from the table")
        return table

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> ConfinedFileIO:
        return ConfinedFileIO(dict(self.properties))


class ConfinedSqlCatalog(_Own, SqlCatalog):
    """A database of SQLite, which may say of a table only where its metadata is."""


class ConfinedRestCatalog(_Own, RestCatalog):
    """A service that is asked at its own address alone; what it sends elsewhere is an error."""

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
    """True if ``location`` is in the directory or the bucket ``root``, on this machine wherever links lead."""
    place = plain_place(location)
    if not root.startswith("s3://"):
        if place.startswith("s3://") or not place.startswith("/"):
            return False
        place, root = os.path.realpath(place), os.path.realpath(root)
    return place.startswith(f"{root.rstrip('/')}/") and ".." not in place.split("/")


def plain_place(location: str) -> str:
    """A place in an Iceberg table as :class:`~hintplan.runtime.connectors.lakes.storage.Storage` has it."""
    scheme, colon, rest = location.rstrip("/").partition("://")
    if colon and scheme in ("s3", "s3a", "s3n"):
        return f"s3://{rest}"
    return os.path.normpath(rest if colon and scheme == "file" else location.removeprefix("file:"))
