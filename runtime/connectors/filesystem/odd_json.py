r"""JSON records that the workers leave to Spark's parser.

There are two differences between ``from_json`` and the reader of JSON files. The reader knows encodings other than
UTF-8, so :func:`in_utf8` converts a record as its parser does. For a value that is not a text, the reader puts the
characters of the file into a column of texts, and ``from_json`` writes the value again. So :func:`with_exact_texts`
puts these characters in quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import partial
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs lack it

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructType

from hintplan.plans.connectors.files.formats import ignores_parse_errors
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.filesystem.odd_records import CORRUPT, LIMIT, TEXT, OddRecords, if_readable

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MOST_NESTED = _LONGEST_NUMBER = 1000
_ARRAY = r"^[ \t\r\n]*\["
_VALUE = "value"
_DECODER = json.JSONDecoder()
_TEXT_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_ANY_TEXT_OR_BRACKET = re.compile(_TEXT_OR_BRACKET.pattern + rb"|'(?:[^'\\]|\\.)*'", re.DOTALL)
"""The parser accepts texts in single quotes."""
_NUMBER = re.compile(rb"-?[0-9.eE+]{%d,}" % (_LONGEST_NUMBER + 1))


class OddJson(OddRecords):
    """Odd records of JSON files: each is an object, an array of objects, or blank."""

    def reader(self, table: Table, columns: Sequence[str]) -> Callable[[list[bytes]], Mapping[str, pa.Array]]:
        of_numbers = {column.name for column in table.columns if not parse_type(column.type).is_text}
        return partial(_as_texts, of_text=frozenset(columns) - of_numbers, cut=ignores_parse_errors(table))

    def parsed(
        self, text: Column, schema: StructType, options: Mapping[str, str], table: Table, columns: Sequence[str]
    ) -> tuple[Column, Column]:
        if ignores_parse_errors(table):
            return readable_objects_of(text.cast("string"), schema, options, columns)
        return objects_of(text.cast("string"), StructType([schema[column] for column in columns]), options)

    def given(self, wrong: str) -> Set[str] | None:
        try:
            fields = json.loads(wrong, object_pairs_hook=lambda pairs: {n for n, value in pairs if value is not None})
        except (ValueError, RecursionError):
            return None
        return fields if isinstance(fields, set) else None


ODD_JSON = OddJson()


def _as_texts(records: list[bytes], of_text: Collection[str], *, cut: bool) -> Mapping[str, pa.Array]:
    texts = [with_exact_texts(in_utf8(record.rstrip(b"\r\n")), of_text) for record in records]
    if cut:
        texts = [_without_rest(text) if text.lstrip().startswith(b"[") else text for text in texts]
    return {TEXT: pa.array(texts, pa.binary()), LIMIT: pa.array(map(exceeded_limit, texts), pa.string())}


def objects_of(text: Column, schema: StructType, options: Mapping[str, str]) -> tuple[Column, Column]:
    """Return the object in the JSON ``text``, or the objects of the array in it; both are NULL for a text of blanks.

    The object has a further field, which is not NULL if the text does not fit ``schema``. Such an array fails the run.
    """
    whole = StructType([*schema.fields]).add(CORRUPT, StringType())
    permissive = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    many = F.from_json(text, ArrayType(schema), {**options, "mode": "FAILFAST"})
    is_array = F.rlike(text, F.lit(_ARRAY))
    return F.when(~is_array, F.from_json(text, whole, permissive)), F.when(is_array, many)


def readable_objects_of(
    text: Column, schema: StructType, options: Mapping[str, str], columns: Sequence[str]
) -> tuple[Column, Column]:
    """Return what :func:`objects_of` does, but with ``columns`` of the objects that count if errors are ignored.

    An error in one object of an array is an error in each. Only ``from_json`` for an object reports errors, so the
    array is read twice, once as a value of an object. The first reading is NULL if the text is no array of objects.
    """
    whole = StructType([*schema.fields]).add(CORRUPT, StringType())
    in_object = StructType().add(_VALUE, ArrayType(schema)).add(CORRUPT, StringType())
    permissive = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    is_array = F.rlike(text, F.lit(_ARRAY))

    def values(found: Column) -> list[Column]:
        return [found[name] for name in schema.names]

    def row(found: Column, *more: Column) -> Column:
        return F.struct(*(found[name].alias(name) for name in columns), *more)

    def one(found: Column) -> Column:
        is_wrong = found.isNull() | found[CORRUPT].isNotNull()
        return if_readable(values(found), is_wrong, row(found, F.lit(None).cast("string").alias(CORRUPT)))

    def many(both: Column) -> Column:
        found, is_wrong = both["found"], both["wrong"]
        are_rows = F.filter(found, lambda each: if_readable(values(each), is_wrong, F.lit(True)))
        is_whole = ~F.exists(found, lambda each: each.isNull())
        return F.when(is_whole, F.transform(are_rows, lambda each: row(each)))

    again = F.from_json(F.concat(F.lit(f'{{"{_VALUE}":'), text, F.lit("}")), in_object, permissive)
    twice = F.struct(
        F.from_json(text, ArrayType(schema), permissive).alias("found"), again[CORRUPT].isNotNull().alias("wrong")
    )
    objects = F.when(~is_array, F.array(F.from_json(text, whole, permissive)))
    arrays = F.when(is_array, F.array(twice))
    return F.transform(objects, one)[0], F.transform(arrays, many)[0]


def exceeded_limit(record: bytes) -> str:
    """Return the words of Spark's JSON parser about a ``record`` beyond its limits, or an empty text.

    >>> exceeded_limit(b'{"a": 1}')
    ''
    """
    if len(record) <= _MOST_NESTED:
        return ""
    if number := _NUMBER.search(record):
        found = f"Number value length ({len(number[0])}) exceeds the maximum allowed ({_LONGEST_NUMBER}, from"
        return f"StreamConstraintsException: {found} `StreamReadConstraints.getMaxNumberLength()`)"
    depth = 0
    for match in _TEXT_OR_BRACKET.finditer(record):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        if depth > _MOST_NESTED:
            found = f"Document nesting depth ({depth}) exceeds the maximum allowed ({_MOST_NESTED}, from"
            return f"StreamConstraintsException: {found} `StreamReadConstraints.getMaxNestingDepth()`)"
    return ""


def in_utf8(record: bytes) -> bytes:
    """Return ``record`` in UTF-8, as Spark's JSON parser decodes the lines of a file.

    The parser fails at bytes that are not UTF-8. The result then ends before them, and is an incomplete text.

    >>> in_utf8('{"a": 1}'.encode("utf-16-le"))
    b'{"a": 1}'
    """
    record = record.removeprefix(_BYTE_ORDER_MARK)
    if (encoding := _wide_encoding(record[:4])) is not None:
        record = record.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
    try:
        record.decode("utf-8")
        return record
    except UnicodeDecodeError:
        return _loosely_decoded(record)


def with_exact_texts(record: bytes, columns: Collection[str]) -> bytes:
    """Return the JSON ``record`` with each value of the text ``columns`` as a text; a wrong record is not changed.

    >>> with_exact_texts(b'{"s": [1.50], "n": 2}', {"s"})
    b'{"s": "[1.50]", "n": 2}'
    """
    if not columns or exceeded_limit(record):
        return record
    text = record.decode("utf-8")
    pieces, end = [], 0
    try:
        for start, stop in _values(text, columns):
            pieces += [text[end:start], json.dumps(text[start:stop])]
            end = stop
    except (ValueError, IndexError, RecursionError):
        return record
    return "".join([*pieces, text[end:]]).encode("utf-8")


def _without_rest(record: bytes) -> bytes:
    """Return ``record`` without what is behind its array, which the parser does not read.

    >>> _without_rest(b'[{"a": "]"}] x')
    b'[{"a": "]"}]'
    """
    depth = 0
    for match in _ANY_TEXT_OR_BRACKET.finditer(record):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        if depth == 0:
            return record[: match.end()]
    return record


def _values(text: str, columns: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of the values of ``columns`` that are neither texts nor NULL."""
    at = _behind_blanks(text, 0)
    if text[at] == "{":
        yield from _values_of_object(text, at, columns)
        return
    if text[at] != "[":
        raise ValueError("neither an object nor an array")
    at = _behind_blanks(text, at + 1)
    while text[at] == "{":
        end = _DECODER.raw_decode(text, at)[1]
        yield from _values_of_object(text, at, columns)
        end = _behind_blanks(text, end)
        at = _behind_blanks(text, end + 1) if text[end] == "," else end


def _values_of_object(text: str, at: int, columns: Collection[str]) -> Iterator[tuple[int, int]]:
    at = _behind_blanks(text, at + 1)
    while text[at] == '"':
        name, at = scanstring(text, at + 1)
        at = _behind_blanks(text, at)
        if text[at] != ":":
            raise ValueError("a name without a value")
        at = _behind_blanks(text, at + 1)
        end = _DECODER.raw_decode(text, at)[1]
        if name in columns and text[at] not in '"n':
            yield at, end
        at = _behind_blanks(text, end)
        if text[at] == ",":
            at = _behind_blanks(text, at + 1)


def _behind_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _wide_encoding(head: bytes) -> str | None:
    """Return the encoding of a text with two or four bytes a character, by its first bytes."""
    zeros = tuple(byte == 0 for byte in head)
    if head[:2] in (b"\xfe\xff", b"\xff\xfe"):
        order = "be" if head[:1] == b"\xfe" else "le"
        return f"utf-32-{order}" if head[2:4] == b"\0\0" and order == "le" else f"utf-16-{order}"
    match zeros:
        case (True, True, _, False):
            return "utf-32-be"
        case (False, True, True, True):
            return "utf-32-le"
    match zeros[:2]:
        case (True, False):
            return "utf-16-be"
        case (False, True):
            return "utf-16-le"
    return None


def _loosely_decoded(record: bytes) -> bytes:
    """Return ``record`` up to the first bytes that the parser refuses.

    The parser checks only that the right number of bytes continues a character.
    """
    characters: list[str] = []
    at = 0
    while at < len(record):
        first = record[at]
        size = 1 if first < 0x80 else 2 if first >> 5 == 6 else 3 if first >> 4 == 14 else 4 if first >> 3 == 30 else 0
        if size == 0 or len(record) < at + size or any(byte >> 6 != 2 for byte in record[at + 1 : at + size]):
            break
        code = first if size == 1 else first & (0x7F >> size)
        for byte in record[at + 1 : at + size]:
            code = code << 6 | byte & 0x3F
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            break
        # The parser takes such bytes for a character of a text, never for a quote or a blank between values.
        characters.append(f"\\u{code:04x}" if size > 1 and code < 0x80 else chr(code))
        at += size
    return "".join(characters).encode("utf-8")
