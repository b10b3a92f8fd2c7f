"""Opens, creates and checks Iceberg tables in a catalog, through pyiceberg.

Runs where batches are committed: on the driver. Knows no Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial

from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, FloatType
from requests.exceptions import RequestException
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from hintplan.plans.connectors.lakes.catalogs import LOCATION, SQLITE_URL, TYPE, URI, WAREHOUSE
from hintplan.plans.connectors.reach import http_host
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.iceberg.confined import (
    ROOT,
    ConfinedFileIO,
    ConfinedRestCatalog,
    ConfinedSqlCatalog,
    plain_place,
)
from hintplan.runtime.connectors.iceberg.types import iceberg_schema, is_same_type
from hintplan.runtime.connectors.jdbc.sqlite import unopened
from hintplan.runtime.connectors.lakes.commits import Changed
from hintplan.runtime.connectors.lakes.divisions import is_known
from hintplan.runtime.connectors.lakes.storage import Storage
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve

_PASSED_ON = ("credential", "token", "oauth2-server-uri", WAREHOUSE)
_CREATED_WITH = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Each version writes a metadata file that lists all snapshots. Without a limit, a stream would leave very many."""
_ELSEWHERE = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_UNOPENED = re.compile(r"Failed to open local file '([^']+)'")
_METADATA = re.compile(r"validation errors? for TableMetadata")
_ERRORS: tuple[type[Exception], ...] = (
    *(kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)),
    RequestException, SQLAlchemyError, ValidationError, OSError, ValueError,
)  # fmt: skip


def open_iceberg_table(target: LakeTarget) -> Table | None:
    """Return the newest version of the table, or None if there is none.

    Raises RunError if the table is not as declared, or if the sink cannot write to it.
    """
    table = loaded(target)
    if table is not None:
        _check(target, table)
    return table


def loaded(target: LakeTarget) -> Table | None:
    """Return the table, or None if there is none; raise RunError if its files are outside the place in its options."""
    target.refuse_lost_place()
    with iceberg_failures(target):
        try:
            table = _catalog_of(target).load_table(_identifier(target))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None
        _refuse_place(target, table)
        return table


def ensure_iceberg_table(target: LakeTarget) -> Table:
    """Return the table, and create it and its database first if they do not exist."""
    table = open_iceberg_table(target)
    if table is not None:
        return table
    with iceberg_failures(target):
        catalog, schema = _catalog_of(target), iceberg_schema(target)
        fields = [
            PartitionField(schema.find_field(name).field_id, 1000 + number, IdentityTransform(), name)
            for number, name in enumerate(target.partitioned_by)
        ]
        # Another writer may create both at the same time.
        database = _identifier(target)[:-1]
        try:
            catalog.create_namespace_if_not_exists(database)
        except (IntegrityError, exceptions.ServerError):
            if not catalog.namespace_exists(database):
                raise
        with suppress(exceptions.TableAlreadyExistsError):
            catalog.create_table(
                _identifier(target), schema, location=_new_location(target), partition_spec=PartitionSpec(*fields),
                properties=_CREATED_WITH,
            )  # fmt: skip
    created = open_iceberg_table(target)
    assert created is not None
    return created


def storage_at(target: LakeTarget, table: Table) -> Storage:
    """Return the storage at the table's location."""
    return Storage(root=plain_place(table.location()), options=target.storage.options)


@contextmanager
def iceberg_failures(target: LakeTarget) -> Iterator[None]:
    """Raise errors of pyiceberg as :class:`Changed` or as RunError, without values from the environment."""
    try:
        yield
    except (exceptions.CommitFailedException, exceptions.ValidationException) as error:
        raise Changed(_message(error, target)) from None
    except _ERRORS as error:
        raise RunError(f"table {target.name}, {target.called}: {_message(error, target)}", path=target.path) from None


def _message(error: Exception, target: LakeTarget) -> str:
    raw, uri = str(error), target.options.get(URI, "")
    if "unable to open database file" in raw and uri.startswith(SQLITE_URL):
        path = uri.removeprefix(SQLITE_URL)
        return f"SQLite cannot open {path}: {unopened(path) or 'unable to open database file'}"
    file = _UNOPENED.search(raw)
    if file is not None and (link := link_to_nowhere(file[1])) is not None:
        return link
    text = redacted(" ".join(raw.split()) or type(error).__name__, target.options)
    return f"it is not the metadata of an Iceberg table: {text}" if _METADATA.search(raw) else text


def _identifier(target: LakeTarget) -> tuple[str, ...]:
    options = target.options
    return (*options["catalog-database"].split("."), options["catalog-table"])


def _catalog_of(target: LakeTarget) -> Catalog:
    return _catalog(tuple(target.options.items()), target.storage.root)


@lru_cache(maxsize=32)
def _catalog(options: tuple[tuple[str, str], ...], root: str) -> Catalog:
    """Return the catalog in a table's options; ignore pyiceberg's own configuration file and variables."""
    settings = dict(options)
    own = {name: resolve(value) for name, value in settings.items() if name in _PASSED_ON or name.startswith("s3.")}
    own |= {"py-io-impl": f"{ConfinedFileIO.__module__}.{ConfinedFileIO.__name__}", ROOT: root}
    if settings[TYPE].lower() == "rest":
        for name in (URI, "oauth2-server-uri"):
            if name in settings:
                host = http_host(name, settings[name])
                refuse_link_local(host.host, host.port or host.usual, path=name)
        # Tasks write with their own credentials, so the catalog must not delegate any.
        headers = {"header.X-Iceberg-Access-Delegation": ""}
        return ConfinedRestCatalog(settings["catalog-name"], uri=settings[URI], **own, **headers)
    path = os.path.abspath(settings[URI].removeprefix(SQLITE_URL))
    opening = partial(ConfinedSqlCatalog, settings["catalog-name"], uri=f"sqlite:///{path}", **own)
    try:
        return opening()
    except OperationalError:  # another client may be creating the catalog's tables at the same time
        return opening()


def _new_location(target: LakeTarget) -> str | None:
    """Return the location for a table to be created, or None if a REST catalog decides it."""
    options = target.options
    root = target.storage.root if not target.storage.is_local else f"file://{target.storage.root}"
    if LOCATION in options:
        return root
    return None if options[TYPE].lower() == "rest" else "/".join((root, *_identifier(target)))


def _refuse_place(target: LakeTarget, table: Table) -> None:
    """Raise RunError if files of the table are outside the place in its options."""
    root, location = target.storage.root.rstrip("/"), plain_place(table.location())
    elsewhere = [name for name in _ELSEWHERE if name in table.metadata.properties]
    if (location == root or location.startswith(f"{root}/")) and not elsewhere:
        return
    where = table.metadata.properties[elsewhere[0]] if elsewhere else table.location()
    raise RunError(
        f"the Iceberg table {target.called} has files at {where}, which is not in {root}",
        hint=f"write '{LOCATION}' = '{where}'" if not elsewhere else f"take {elsewhere[0]} from the table",
        path=target.path,
    )


def check_iceberg_columns(target: LakeTarget, there: Schema) -> None:
    """Raise RunError unless the table has the declared columns with their types."""
    fields = {field.name: field for field in there.fields}
    types = {column.name: column.type for column in target.columns}
    for wanted in iceberg_schema(target).fields:
        if wanted.name not in fields:
            raise _unfit(target, f"has no column {wanted.name!r}", "add it there, or remove it from CREATE TABLE")
        actual = fields[wanted.name].field_type
        if not is_same_type(actual, wanted.field_type):
            raise _unfit(
                target, f"has column {wanted.name!r} as {actual}, which is {types[wanted.name]} here",
                "declare it as the table has it, or name another table",
            )  # fmt: skip


def _check(target: LakeTarget, table: Table) -> None:
    """Raise RunError if the sink cannot write to the table."""
    schema = table.schema()
    check_iceberg_columns(target, schema)
    for field in schema.fields:
        if field.required and field.name not in target.schema.names:
            raise _unfit(
                target, f"has column {field.name!r}, which must have a value and is not declared",
                "declare it in CREATE TABLE",
            )  # fmt: skip
    if table.metadata.format_version > 2:
        raise _unfit(target, "is of format version 3, which this sink does not write", "write to another table")
    spec = table.spec()
    for part in spec.fields:
        if not is_known(str(part.transform)) or not _divides(schema, part.source_id):
            raise _unfit(target, f"is partitioned by {part}, which this sink cannot reckon", "write to another table")
    partition_columns = [_called(schema, part) for part in spec.fields]
    if target.partitioned_by and list(target.partitioned_by) != partition_columns:
        raise RunError(
            f"the Iceberg table {target.called} is partitioned by {', '.join(partition_columns) or 'nothing'}",
            hint="leave PARTITIONED BY out, or write to another table",
            path=f"{target.path}.partitioned-by",
        )


def _divides(schema: Schema, column: int) -> bool:
    """Return true if the sink can partition by a column: not by a field of a ROW, nor by FLOAT or DOUBLE."""
    top = {field.field_id: field.field_type for field in schema.fields}
    return column in top and not isinstance(top[column], (FloatType, DoubleType))


def _called(schema: Schema, field: PartitionField) -> str:
    column = schema.find_column_name(field.source_id) or ""
    return column if isinstance(field.transform, IdentityTransform) else f"{field.transform} of {column}"


def _unfit(target: LakeTarget, what: str, hint: str) -> RunError:
    return RunError(f"the Iceberg table {target.called} {what}", hint=hint, path=target.path)
