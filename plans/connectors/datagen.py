"""The datagen connector: generated rows. The options ``fields.<column>.<setting>`` configure each column's generator.

``field_specs`` converts the options to one :class:`FieldSpec` per column, with Flink's defaults. The connector's check
finds their problems. The runtime generates the values.

>>> table = Table(columns=(TableColumn(name="id", type="INT"),), options={"fields.id.kind": "sequence",
...     "fields.id.start": "1", "fields.id.end": "9"})
>>> field_specs(table)[0].end
9
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.connector import COLUMN_OPTIONS, Readable
from hintplan.plans.connectors.options import option
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.text.names import nearest

_NUMBER_OF_ROWS = "number-of-rows"
_COLUMN_OPTIONS = (
    option("kind", description="The generator of the column's values: random or sequence."),
    option("min", description="The least random number."),
    option("max", description="The greatest random number."),
    option("length", description="The length of random text and bytes."),
    option("start", description="The first value of a sequence."),
    option("end", description="The last value of a sequence."),
)
_SETTINGS = tuple(column_option.name for column_option in _COLUMN_OPTIONS)
_DEFAULT_LENGTH = 100
_LONGEST = 1_000_000
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LARGEST_FLOAT = {"FLOAT": Decimal("3.4028234663852886E+38"), "DOUBLE": Decimal("1.7976931348623157E+308")}
_BYTES = ("BYTES", "BINARY", "VARBINARY")


@frozen
class FieldSpec:
    """The generator of one column.

    ``minimum`` and ``maximum`` (both included) apply to random numbers, ``length`` to random text and bytes, ``start``
    and ``end`` (both included) to a sequence.
    """

    name: str
    type: str
    kind: Literal["random", "sequence"]
    minimum: Decimal = Decimal(0)
    maximum: Decimal = Decimal(0)
    length: int = 0
    start: int = 0
    end: int = 0


def field_specs(table: Table) -> tuple[FieldSpec, ...]:
    """Return the generators of the physical columns of a checked table, in column order."""
    return tuple(_spec(table, column) for column in table.columns if column.is_physical)


def row_limit(table: Table) -> int | None:
    """Return the number of rows that a checked table generates, or None if it is unbounded.

    The limit is ``number-of-rows`` or the length of the shortest sequence, whichever is less.
    """
    limits = [spec.end - spec.start + 1 for spec in field_specs(table) if spec.kind == "sequence"]
    if _NUMBER_OF_ROWS in table.options:
        limits.append(int(table.options[_NUMBER_OF_ROWS]))
    return min(limits) if limits else None


def _check_column(path: str, table: Table, name: str, data_type: DataType) -> Iterator[Diagnostic]:
    prefix = f"{COLUMN_OPTIONS}{name}."
    if data_type.root in NESTED:
        yield Diagnostic(
            message=f"datagen has no generator for column {name!r} of type {data_type}",
            hint="build it in a view from columns of simple types",
            path=f"{path}.connector",
        )
        return
    kind = table.options.get(f"{prefix}kind", "random")
    if problem := _bad_kind(kind, name, data_type):
        yield Diagnostic(message=problem, hint="write 'random' or 'sequence'", path=f"{path}.{prefix}kind")
        return
    good: dict[str, Decimal] = {}
    for setting in _SETTINGS[1:]:
        value = table.options.get(prefix + setting)
        if value is None:
            if kind == "sequence" and setting in ("start", "end"):
                yield Diagnostic(
                    message=f"a sequence needs '{prefix}{setting}'",
                    hint=f"add '{prefix}{setting}' = '...'",
                    path=f"{path}.{prefix}{setting}",
                )
        elif wrong := _bad_setting(setting, value, kind, data_type):
            yield Diagnostic(
                message=f"'{prefix}{setting}' is {value!r}: {wrong[0]}", hint=wrong[1], path=f"{path}.{prefix}{setting}"
            )
        else:
            good[setting] = Decimal(value)
    for low, high in (("min", "max"), ("start", "end")):
        if low in good and high in good and good[low] > good[high]:
            yield Diagnostic(
                message=f"'{prefix}{high}' is less than '{prefix}{low}'",
                hint="exchange them",
                path=f"{path}.{prefix}{high}",
            )


def _bad_kind(kind: str, name: str, data_type: DataType) -> str | None:
    if kind not in ("random", "sequence"):
        return f"the generator of column {name!r} is {kind!r}, expected random or sequence"
    if kind == "sequence" and not (data_type.is_numeric or data_type.is_text):
        return f"a sequence cannot fill column {name!r} of type {data_type}"
    return None


def _bad_setting(setting: str, value: str, kind: str, data_type: DataType) -> tuple[str, str] | None:
    allowed = _settings_of(kind, data_type)
    if setting not in allowed:
        problem = f"a {kind} generator of type {data_type.as_nullable()} has no {setting!r}"
        return problem, f"it takes {' and '.join(allowed)}" if allowed else "remove it"
    number = _number(value, whole=setting not in ("min", "max") or data_type.is_integer)
    if number is None:
        return "expected a number", "write digits only" if setting in ("length", "start", "end") else "write a number"
    if setting == "length":
        longest = data_type.precision or _LONGEST
        return None if 0 <= number <= longest else (f"expected 0 to {longest}", "write a length that the type can hold")
    low, high = _range(data_type) if data_type.is_numeric else _range(DataType(root="BIGINT"))
    too_long = data_type.is_text and data_type.precision is not None and len(value) > data_type.precision
    if not low <= number <= high or too_long:
        return f"type {data_type} cannot hold it", "write a value that the column can hold"
    return None


def _settings_of(kind: str, data_type: DataType) -> tuple[str, ...]:
    if kind == "sequence":
        return ("start", "end")
    if data_type.is_numeric:
        return ("min", "max")
    if data_type.root in ("STRING", "VARCHAR", "BYTES", "VARBINARY"):
        return ("length",)
    return ()


def _number(text: str, *, whole: bool) -> Decimal | None:
    pattern = r"-?[0-9]{1,19}" if whole else r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?"
    return Decimal(text) if re.fullmatch(pattern, text) else None


def _range(data_type: DataType) -> tuple[Decimal, Decimal]:
    if data_type.is_integer:
        half = 2 ** (_BITS[data_type.root] - 1)
        return Decimal(-half), Decimal(half - 1)
    if data_type.root == "DECIMAL":
        precision, scale = data_type.precision or 0, data_type.scale or 0
        largest = (Decimal(10) ** precision - 1).scaleb(-scale)
        return -largest, largest
    largest = _LARGEST_FLOAT[data_type.root]
    return -largest, largest


def _spec(table: Table, column: TableColumn) -> FieldSpec:
    data_type = parse_type(column.type)
    prefix = f"{COLUMN_OPTIONS}{column.name}."
    settings = {key: table.options[prefix + key] for key in _SETTINGS if prefix + key in table.options}
    if settings.get("kind") == "sequence":
        start, end = int(settings["start"]), int(settings["end"])
        return FieldSpec(name=column.name, type=column.type, kind="sequence", start=start, end=end)
    if data_type.is_numeric:
        low, high = _range(data_type)
        high = Decimal(settings.get("max", high))
        if not data_type.is_integer and high >= 0:
            low = Decimal(0)  # as in Flink, random FLOAT, DOUBLE and DECIMAL are not negative unless 'min' is
        low = Decimal(settings.get("min", low))
        return FieldSpec(name=column.name, type=column.type, kind="random", minimum=low, maximum=high)
    fixed = data_type.precision if data_type.is_text or data_type.root in _BYTES else None
    length = int(settings.get("length", fixed or _DEFAULT_LENGTH))
    return FieldSpec(name=column.name, type=column.type, kind="random", length=length)


class Datagen(Readable):
    """A source of generated rows."""

    name = "datagen"
    description = "A source that makes rows up."
    options = (
        option(
            "rows-per-second",
            "int",
            maximum=1_000_000_000,
            default="10000",
            description="Rows for each second since the query was started.",
        ),
        option(_NUMBER_OF_ROWS, "int", minimum=0, description="The number of rows in all; without end if absent."),
    )
    column_options = _COLUMN_OPTIONS
    bounding_option = _NUMBER_OF_ROWS
    idle: ClassVar[Mapping[str, str]] = {"scan.parallelism": "rows are made by as many tasks as there are cores"}
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("faker", "socket", "values"), "write 'connector' = 'datagen', or put rows into files and read them"
    )

    def is_bounded(self, table: Table) -> bool:
        """Return True if the table has a number of rows, or a sequence. The table may contain errors."""
        if _NUMBER_OF_ROWS in table.options:
            return True
        return any(key.startswith(COLUMN_OPTIONS) and value == "sequence" for key, value in table.options.items())

    def has_last_row(self, table: Table) -> bool:
        return self.is_bounded(table)

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        """Check the ``fields.*`` options, and refuse column types that no generator produces."""
        columns = {column.name: column for column in table.columns if column.is_physical}
        for key in table.options:
            if not key.startswith(COLUMN_OPTIONS):
                continue
            name, _, setting = key.removeprefix(COLUMN_OPTIONS).rpartition(".")
            if name not in columns:
                close = nearest(name, columns)
                yield Diagnostic(
                    message=f"{key!r} names no column of the table that datagen fills",
                    hint=f"did you mean '{COLUMN_OPTIONS}{close}.{setting}'?"
                    if close
                    else f"columns are {', '.join(columns)}",
                    path=f"{path}.{key}",
                )
            elif setting not in _SETTINGS:
                close = nearest(setting, _SETTINGS)
                yield Diagnostic(
                    message=f"the datagen connector has no field setting {setting!r}",
                    hint=f"did you mean '{COLUMN_OPTIONS}{name}.{close}'?"
                    if close
                    else f"settings are {', '.join(_SETTINGS)}",
                    path=f"{path}.{key}",
                )
        for column in columns.values():
            try:
                data_type = parse_type(column.type)
            except ValueError:
                continue  # The column's own check reports a wrong type.
            yield from _check_column(path, table, column.name, data_type)


DATAGEN = Datagen()
