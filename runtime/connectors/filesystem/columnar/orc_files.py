"""ORC files, read by the Python workers instead of Spark, as Parquet files are.

Spark's reader converts the values of a file that has other types than the table. Here, an integer that its column
cannot hold is NULL, as in Spark, and a type that does not fit is refused. Spark reads columns named ``_col0``,
``_col1``, ... by position, so such files are refused, too. Workers read neither TIMESTAMP nor DATE, whose
values depend on calendars.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.columnar.conversion import converted, is_fitting, logical_type
from hintplan.runtime.connectors.filesystem.file_systems import opened
from hintplan.runtime.storage.remote_files import patiently

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile


def read_orc(path: str, schema: pa.Schema, name: str) -> Iterator[tuple[pa.Table, int]]:
    """Yield the rows of a file, one table per stripe, and their number, which a table without columns lacks.

    ``path`` is a local path, or a URL as Hadoop writes it. Raise RunError with the name of the table on failure.
    """
    path = path.removeprefix("file:")
    system, inner = opened(path) if "://" in path else (pafs.LocalFileSystem(), path)
    try:
        with _open(system, inner) as file:
            if file is None:
                return
            if (problem := misfit(file, schema)) is not None:
                raise RunError(
                    f"table {name}: {problem[0]} of {path} {problem[1]}",
                    hint="declare the column with the type that the files have, and cast it in the query",
                )
            found = {field.name: logical_type(field.type) for field in file.schema}
            read = [column for column in schema.names if column in found] or file.schema.names[:1]
            for stripe in range(file.nstripes):
                rows = pa.Table.from_batches([patiently(partial(file.read_stripe, stripe, read))])
                columns = [
                    _as_declared(rows[field.name], found[field.name], field.type)
                    if field.name in found
                    else pa.nulls(rows.num_rows, field.type)
                    for field in schema
                ]
                yield pa.table(columns, schema=schema), rows.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"table {name}: {path} cannot be read as ORC: {error}") from error


def has_orc() -> bool:
    """Return True if pyarrow can read ORC."""
    return find_spec("pyarrow._orc") is not None


def misfit(file: ORCFile, schema: pa.Schema) -> tuple[str, str] | None:
    """Return the first column that cannot be read from ``file`` with ``schema``, and the reason; None if all can."""
    names = file.schema.names
    if names and all(column.startswith("_col") for column in names):
        return f"column {names[0]}", "has no name of its own, and goes by its position"
    for field in schema:
        if field.name not in names:
            continue
        if names.count(field.name) > 1:
            return f"column {field.name}", "is there twice"
        found = logical_type(file.schema.field(field.name).type)
        if not (_is_fitting(found, field.type) or _is_narrower(found, field.type)):
            return f"column {field.name}", f"is of type {found}, which cannot be read as {field.type}"
    return None


def misfit_of_file(system: pafs.FileSystem, path: str, schema: pa.Schema) -> str | None:
    """Return the reason why the file at ``path`` cannot be read with ``schema``, or None."""
    file_name = path.rpartition("/")[2]
    try:
        with _open(system, path) as file:
            problem = None if file is None else misfit(file, schema)
    except (pa.ArrowException, OSError):
        return f"Arrow cannot open {file_name}"
    return None if problem is None else f"{problem[0]} of {file_name} {problem[1]}"


@contextmanager
def _open(system: pafs.FileSystem, path: str) -> Iterator[ORCFile | None]:
    """Open a file; None for a file of no bytes, which Spark ignores."""
    from pyarrow.orc import ORCFile  # not all builds of pyarrow have it

    is_local = isinstance(system, pafs.LocalFileSystem)
    if system.get_file_info(path).size == 0:
        yield None
        return
    with pa.memory_map(path) if is_local else system.open_input_file(path) as source:
        yield patiently(lambda: ORCFile(source))


_is_fitting = partial(is_fitting, texts_are_bytes=False)  # Spark reads bytes as a text of hexadecimal digits


def _is_narrower(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(found) and pa.types.is_signed_integer(wanted))


def _as_declared(column: pa.ChunkedArray, found: pa.DataType, wanted: pa.DataType) -> pa.ChunkedArray:
    if _is_fitting(found, wanted):
        return converted(column, found, wanted)
    largest = 2 ** (wanted.bit_width - 1) - 1
    is_held = pc.and_(pc.greater_equal(column, -largest - 1), pc.less_equal(column, largest))
    return pc.if_else(is_held, column, None).cast(wanted)
