r"""CSV records that the workers leave to Spark's parser.

If fields may contain line breaks, Spark's reader parses a file as a whole, and ``from_csv`` takes the end of its text
as the end of the last field. So a record that ends with a line end gets one more field, which ends the last one in the
same way.

Spark's reader accepts too few or too many fields if a query needs only some columns of a file that is read by lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hintplan.plans.connectors.files.csv_marks import may_break_lines
from hintplan.plans.connectors.files.formats import ignores_parse_errors
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.filesystem.csv_blocks import CsvForm
from hintplan.runtime.connectors.filesystem.csv_files import last_column, with_last_as_text
from hintplan.runtime.connectors.filesystem.csv_records import ends_of_records
from hintplan.runtime.connectors.filesystem.odd_records import CORRUPT, LIMIT, TEXT, OddRecords, if_readable
from hintplan.runtime.connectors.filesystem.text_blocks import csv_form

_END = "\ufdd0\ufdd1"
"""The further field: characters that Unicode never assigns, so that no file contains them."""
_BLANKS = bytes(range(ord(" ") + 1))


class OddCsv(OddRecords):
    """Odd records of CSV files: each is a row, or a line that Spark skips."""

    def reader(self, table: Table, columns: Sequence[str]) -> Callable[[list[bytes]], Mapping[str, pa.Array]]:
        return partial(_as_texts, table=table)

    def parsed(
        self, text: Column, schema: StructType, options: Mapping[str, str], table: Table, columns: Sequence[str]
    ) -> tuple[Column, Column]:
        breaks_lines = may_break_lines(table)
        read_names = schema.names if ignores_parse_errors(table) else columns
        is_strict = breaks_lines or len(read_names) == len(schema)
        fields = (with_last_as_text(schema) if breaks_lines else schema).fields
        typed = [field.dataType if field.name in read_names else StringType() for field in fields]
        named = [StructField(f"f{place}", kind) for place, kind in enumerate(typed)]
        plain = [StructField(field.name, StringType()) for field in named]
        read = partial(_fields_of, text.cast("string"), options=options, has_end=breaks_lines)
        typed_row = read(named).alias("typed")
        both = F.array(
            F.struct(typed_row) if ignores_parse_errors(table) else F.struct(typed_row, read(plain).alias("plain"))
        )
        one = F.when(
            text.isNotNull(), F.transform(both, lambda record: _row(record, schema, table, columns, is_strict))[0]
        )
        return one, F.when(F.lit(False), F.array(one))

    def given(self, wrong: str) -> Set[str] | None:
        return frozenset(json.loads(wrong))


ODD_CSV = OddCsv()


def _as_texts(records: list[bytes], table: Table) -> Mapping[str, pa.Array]:
    as_text = _in_a_file_of_lines if not may_break_lines(table) else _in_a_file_as_a_whole
    texts = map(partial(as_text, form=csv_form(table, {}, (), ())), records)
    return {TEXT: pa.array(list(texts), pa.binary()), LIMIT: pa.repeat(pa.scalar(""), len(records))}


def _in_a_file_of_lines(record: bytes, form: CsvForm) -> bytes | None:
    """Return a record for ``from_csv``; None if Spark's reader skips it."""
    if (form.comments and record.startswith(b"#")) or not record.strip(_BLANKS):
        return None
    return record.rstrip(b"\r\n")


def _in_a_file_as_a_whole(record: bytes, form: CsvForm) -> bytes | None:
    """Return a record for ``from_csv``; None if Spark's reader skips it."""
    if (form.comments and record.startswith(b"#")) or record == b"\n":
        return None
    is_ended = record.endswith(b"\n")
    if is_ended and form.quote.encode() in record:
        ends = ends_of_records(record, form)
        is_ended = ends.size > 0 and int(ends[-1]) == len(record)
    return record[:-1] + (form.delimiter + _END).encode() if is_ended else record


def _fields_of(text: Column, fields: list[StructField], *, options: Mapping[str, str], has_end: bool) -> Column:
    """Return a struct of ``fields``, and of ``CORRUPT``, which is NULL for a right record."""
    given = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    corrupt, end = StructField(CORRUPT, StringType()), StructField("end", StringType())
    cut = F.from_csv(text, StructType([*fields, corrupt]).simpleString(), given)
    if not has_end:
        return cut
    whole = F.from_csv(text, StructType([*fields, end, corrupt]).simpleString(), given)
    names = [*(field.name for field in fields), CORRUPT]
    # Spark parses the text again for each field that is taken from `whole` outside a lambda.
    kept = F.transform(F.array(whole), lambda found: F.struct(*(found[name].alias(name) for name in names)))
    return F.when(F.endswith(text, F.lit(_END)), kept[0]).otherwise(cut)


def _row(both: Column, schema: StructType, table: Table, columns: Sequence[str], is_strict: bool) -> Column:
    """Return the ``columns`` and ``CORRUPT`` of a record, which is parsed with types, and as plain texts.

    If the table ignores parse errors, ``CORRUPT`` of the parser shows an error, and there are no plain texts.
    """
    lenient = ignores_parse_errors(table)
    typed = both["typed"]
    plain = typed if lenient else both["plain"]
    last = last_column(schema, table, _text(typed[f"f{len(schema) - 1}"])) if may_break_lines(table) else None
    values: dict[str, Column] = {}
    unknown: list[Column] = []
    # A missing field, and NULL in such a record, are unknown to a condition.
    any_wrong = miscounted = plain[CORRUPT].isNotNull() if is_strict else F.lit(False)
    for place, field in enumerate(schema.fields):
        if field.name not in columns and not lenient:
            continue
        if last is not None and field.name == last.name:
            values[field.name], is_wrong = last.value, last.is_wrong
        else:
            value, is_text = typed[f"f{place}"], isinstance(field.dataType, StringType)
            given = None if lenient and not is_text else _text(plain[f"f{place}"])
            values[field.name] = value if given is None or not is_text else given
            is_wrong = F.lit(False) if given is None else value.isNull() & given.isNotNull()
        unknown.append(F.when(miscounted | is_wrong, F.lit(field.name)))
        any_wrong = any_wrong | is_wrong
    if lenient:
        nothing = F.lit(None).cast("string").alias(CORRUPT)
        row = F.struct(*(values[name].alias(name) for name in columns), nothing)
        return if_readable(list(values.values()), any_wrong, row)
    corrupt = F.when(any_wrong, F.to_json(F.array_compact(F.array(*unknown))))
    return F.struct(*(values[name].alias(name) for name in columns), corrupt.alias(CORRUPT))


def _text(value: Column) -> Column:
    return F.nullif(value, F.lit(_END))
