"""Records of text files that the workers leave to Spark's parsers, by format.

A worker passes such a record on as it is in the file. Spark's functions ``from_json`` and ``from_csv`` then read it by
the same parser, schema and options as Spark's readers of files. A wrong record fails the run with the same error,
unless the condition of the query drops it, whatever its wrong values mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hintplan.plans.declarations.tables import Table

TEXT, LIMIT = "__text", "__limit"
"""The columns of odd records: the bytes for Spark's parser, and the words about a limit that a record exceeds."""
CORRUPT = "__corrupt"
"""The field of a parsed record that has its text if it is wrong."""

MALFORMED = "[MALFORMED_RECORD_IN_PARSING] Encountered error while reading file "
"""The begin of the error of Spark's readers for a wrong record."""


def if_readable(values: Sequence[Column], is_wrong: Column, row: Column) -> Column:
    """Return ``row`` as Spark's reader does if parse errors are ignored; NULL for a wrong row without any value."""
    is_row = ~is_wrong
    for value in values:
        is_row = is_row | value.isNotNull()
    return F.when(is_row, row)


class OddRecords(ABC):
    """The way of odd records of a format: from a worker to Spark's parser."""

    @abstractmethod
    def reader(self, table: Table, columns: Sequence[str]) -> Callable[[list[bytes]], Mapping[str, pa.Array]]:
        """Return a function for workers that returns records as the columns ``TEXT`` and ``LIMIT``.

        ``columns`` are read from the files.
        """

    @abstractmethod
    def parsed(
        self, text: Column, schema: StructType, options: Mapping[str, str], table: Table, columns: Sequence[str]
    ) -> tuple[Column, Column]:
        """Return a struct with ``columns`` for the record in ``text``, and an array of such structs.

        ``schema`` are all fields of the files of ``table``. ``options`` are the options of Spark's parser.

        At least one of them is NULL, and both are if the record is no row. The struct has NULL for each value that does
        not fit, and the further field ``CORRUPT``. If the table ignores parse errors, this field is always NULL, and a
        record with an error and without any readable value is no row.
        """

    @abstractmethod
    def given(self, wrong: str) -> Set[str] | None:
        """Return the names of the fields that a ``wrong`` record has; None if it is no record of fields."""
