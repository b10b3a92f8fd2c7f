"""Checks of a table: unknown options, wrong values, the connector's own checks, and METADATA columns.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> table = Table(columns=(TableColumn(name="v", type="INT"),), options={"connector": "print", "print-identifer": "x"})
>>> print(*check_table("result", table))
tables.result.options.print-identifer: the print connector has no option 'print-identifer'
  hint: did you mean 'print-identifier'?
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.connector import COLUMN_OPTIONS, Connector, MetadataKey
from hintplan.plans.connectors.options import bad_value, option
from hintplan.plans.connectors.table import CONNECTORS, connector_of
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.watermark import LATE_ROWS, WATERMARK
from hintplan.plans.text.names import did_you_mean, nearest

_LISTED = 12
"""The maximum number of options that a hint lists."""
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def shown_options(name: str, table: Table) -> dict[str, str]:
    """Return the options to display. A refused value may be a literal secret, so it is hidden."""
    refused = {problem.path for problem in check_table(name, table)}
    return {
        key: "(refused)" if f"tables.{name}.options.{key}" in refused else value for key, value in table.options.items()
    }


def check_table(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Return all problems of table ``name``, with paths such as ``tables.o.options.path`` or ``tables.o.columns.a``."""
    spec = connector_of(table)
    metadata = () if spec is None else _check_metadata(name, table, spec)
    times = () if spec is None else _check_times(name, table, spec)
    options = _check(f"tables.{name}.options", table)
    late = _check_late_rows(f"tables.{name}.options", table)
    return (*options, *late, *metadata, *_check_partitions(f"tables.{name}", table, spec), *times)


def _check_late_rows(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield a problem if a table without a watermark sends late rows to another."""
    option = WATERMARK.settings[LATE_ROWS].option
    if option in table.options and table.watermark is None:
        message = f"'{option}' needs a WATERMARK: without one, no row is late"
        yield Diagnostic(
            message=message, hint="declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", path=f"{path}.{option}"
        )


def check_given(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Check each option of table ``name`` on its own. Ignore columns and missing options."""
    spec = connector_of(table)
    path = f"tables.{name}.options"
    return () if spec is None else tuple(_check_given(path, table, spec))


def _check_times(name: str, table: Table, connector: Connector) -> Iterator[Diagnostic]:
    """Yield a problem for each TIME column that the connector, or the table's format, cannot hold."""
    formats = {table.options[key] for key in ("format", "key.format", "value.format") if key in table.options}
    holds_texts = connector.times == "always" or (connector.times == "in texts" and formats <= {"csv", "json"})
    for column in table.columns:
        try:
            kind = parse_type(column.type)
        except ValueError:
            continue  # The column's own check reports a wrong type.
        if not kind.contains("TIME") or column.expression is not None:
            continue
        where = f"the {connector.name} connector" + (
            f" with the format {', '.join(sorted(formats))}" if formats else ""
        )
        if column.name in table.partitioned_by:
            where = "a partition column"
        elif connector.times == "always" or (holds_texts and kind.root == "TIME"):
            continue
        elif holds_texts:
            where = f"the contents of a value of the {connector.name} connector"
        yield Diagnostic(
            message=f"column {column.name!r} is {column.type}, and {where} has no TIME",
            hint="write STRING for TIME, and CAST it in the query",
            path=f"tables.{name}.columns.{column.name}",
        )


def _check_partitions(path: str, table: Table, connector: Connector | None) -> Iterator[Diagnostic]:
    if table.partitioned_by and connector is not None and not connector.partitions:
        able = ", ".join(sorted(name for name, other in CONNECTORS.items() if other.partitions))
        yield Diagnostic(
            message=f"a table of the {connector.name} connector has no PARTITIONED BY",
            hint=f"remove PARTITIONED BY; it is for {able}",
            path=f"{path}.partitioned-by",
        )


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    connector = table.options.get("connector")
    spec = connector_of(table)
    if spec is None:
        names = ", ".join(sorted(CONNECTORS))
        close = nearest(connector or "", CONNECTORS)
        hint = f"did you mean {close!r}? Supported are {names}" if close else f"write 'connector' = one of {names}"
        replacements = (other.stands_in.get((connector or "").lower()) for other in CONNECTORS.values())
        instead = next((text for text in replacements if text), None)
        yield Diagnostic(
            message=f"there is no connector {connector!r}" if connector else "the table names no connector",
            hint=instead or hint,
            path=f"{path}.connector",
        )
        return
    own_problems = [problem for problem in spec.check(path, table) if not _is_idle(spec, _bare(path, problem))]
    reported = {problem.path for problem in own_problems}
    for problem in _check_given(path, table, spec):
        # Prefer the connector's own problem for an option of a family: it is more specific.
        if problem.path not in reported or not _bare(path, problem).startswith(spec.families):
            yield problem
    for wanted in spec.options:
        if wanted.required and wanted.name not in table.options:
            yield Diagnostic(
                message=f"the {spec.name} connector needs the option {wanted.name!r}",
                hint=f"add '{wanted.name}' = " + (f"one of {', '.join(wanted.choices)}" if wanted.choices else "'...'"),
                path=f"{path}.{wanted.name}",
            )
    unknown = _refused_formats(table, spec)
    yield from (problem for problem in own_problems if not _bare(path, problem).startswith(unknown))


def _bare(path: str, problem: Diagnostic) -> str:
    """Return the name of the option that ``problem`` is about."""
    return (problem.path or "").removeprefix(f"{path}.")


def _is_idle(spec: Connector, key: str) -> bool:
    """Return True for an option that has no effect.

    Compilation removes such options, so a plan contains one only after a manual edit.
    """
    return key not in spec.settings and spec.why_idle(key) is not None


def _refused_formats(table: Table, spec: Connector) -> tuple[str, ...]:
    """Return the option prefixes of unknown formats. The check reports the format only, not its options."""
    formats = {key: spec.settings[key] for key in ("format", "key.format", "value.format") if key in spec.settings}
    wrong = (
        table.options[key]
        for key, format_option in formats.items()
        if bad_value(format_option, table.options.get(key, "json"))
    )
    return tuple(f"{before}{value.lower()}." for value in wrong for before in ("", "key.", "value."))


def _check_given(path: str, table: Table, spec: Connector) -> Iterator[Diagnostic]:
    unknown = _refused_formats(table, spec)
    for key, value in table.options.items():
        if key == "connector" or (spec.column_options and key.startswith(COLUMN_OPTIONS)):
            continue
        if _is_idle(spec, key):
            message = f"{key!r} has no effect: {spec.why_idle(key)}"
            yield Diagnostic(message=message, hint="remove it", path=f"{path}.{key}")
            continue
        setting: Setting | None = spec.settings.get(key)
        if setting is None and any(key.startswith(family) and key != family for family in spec.families):
            setting = option(key, environment=True)
        if setting is None and not key.startswith(unknown):
            yield _unknown(path, spec, key, table)
        elif setting is not None and (problem := bad_value(setting, value)):
            message, hint = problem
            advice = spec.values.get(key, {}).get(value.lower(), hint)
            yield Diagnostic(message=message, hint=advice, path=f"{path}.{key}")


def _unknown(path: str, spec: Connector, key: str, table: Table) -> Diagnostic:
    names = spec.settings
    for refused, reason in spec.refused.items():
        if key == refused or (refused.endswith(".") and key.startswith(refused)):
            message = f"{key!r} is not supported: {reason}"
            return Diagnostic(message=message, hint="remove it", path=f"{path}.{key}")
    close = nearest(key, (name for name in names if name not in table.options))
    if key in spec.instead:
        hint = spec.instead[key]
    elif close:
        hint = f"did you mean {close!r}?"
    elif len(names) > _LISTED:
        hint = f"docs/connectors/{spec.name}.md has its {len(names)} options"
    elif names:
        hint = f"it knows {', '.join(names)}" + (
            f" and {COLUMN_OPTIONS}<column>.<setting>" if spec.column_options else ""
        )
    else:
        hint = "it has no options; remove it"
    return Diagnostic(message=f"the {spec.name} connector has no option {key!r}", hint=hint, path=f"{path}.{key}")


def _check_metadata(name: str, table: Table, connector: Connector) -> Iterator[Diagnostic]:
    """Check the METADATA columns of table ``name`` against the metadata of ``connector``."""
    for column in table.columns:
        path = f"tables.{name}.columns.{column.name}"
        if column.metadata is None:
            if column.virtual:
                message = f"column {column.name!r} is virtual, which only a METADATA column can be"
                yield Diagnostic(message=message, path=path, hint="remove 'virtual'")
        elif column.expression is not None:
            message = f"column {column.name!r} is computed, and a METADATA column"
            yield Diagnostic(message=message, path=path, hint="remove one of them")
        else:
            yield from _check_key(path, column, column.metadata, connector)


def _check_key(path: str, column: TableColumn, key: str, connector: Connector) -> Iterator[Diagnostic]:
    entry = _keys(connector).get(key)
    if entry is None:
        available = [metadata_key.name for metadata_key in connector.metadata if not metadata_key.absent]
        about = f"the {connector.name} connector has no METADATA" + (f" {key!r}" if available else "")
        hint = did_you_mean(key, available, what="keys") if available else f"remove column '{column.name}'"
        yield Diagnostic(message=about, hint=hint, path=path)
    elif entry.absent:
        message = f"METADATA {key!r} of the {connector.name} connector is not supported: {entry.absent}"
        yield Diagnostic(message=message, hint=f"remove column '{column.name}'", path=path)
    elif not _fits(entry.type, column.type):
        yield Diagnostic(
            message=f"METADATA column {column.name!r} is {column.type}, but {key!r} is {entry.type}",
            hint=f"declare it as {entry.type}, and CAST it in the query",
            path=path,
        )


def _keys(connector: Connector | None) -> dict[str, MetadataKey]:
    return {} if connector is None else {metadata_key.name: metadata_key for metadata_key in connector.metadata}


def _fits(have: str, want: str) -> bool:
    """Return True if every value of type ``have`` fits into type ``want``. A TIMESTAMP_LTZ may become a TIMESTAMP."""
    if have == want.replace(" NOT NULL", ""):
        return True
    try:
        source, target = parse_type(have), parse_type(want)
    except ValueError:
        return True  # The column's own check reports a wrong type.
    if source.root in _INTEGERS and target.root in _INTEGERS:
        return _INTEGERS.index(source.root) <= _INTEGERS.index(target.root)
    if source.root == "TIMESTAMP_LTZ":
        return target.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (source.precision or 0) <= (target.precision or 0)
    return False


def check_written(name: str, table: Table) -> Iterator[Diagnostic]:
    """Yield a problem for each METADATA column that a sink cannot write.

    A sink cannot write a read-only key, and it cannot write a key from two columns.
    """
    keys = _keys(connector_of(table))
    written: set[str] = set()
    for column in table.columns:
        key = keys.get(column.metadata or "")
        if key is not None and not column.virtual and not key.writable:
            yield Diagnostic(
                message=f"METADATA {key.name!r} can only be read, and column {column.name!r} is to be written",
                hint=f"declare it as {column.type} METADATA FROM '{key.name}' VIRTUAL",
                path=f"tables.{name}.columns.{column.name}",
            )
        elif key is not None and not column.virtual:
            if key.name in written:
                yield Diagnostic(
                    message=f"METADATA {key.name!r} is to be written twice, also from column {column.name!r}",
                    hint=f"declare it as {column.type} METADATA FROM '{key.name}' VIRTUAL",
                    path=f"tables.{name}.columns.{column.name}",
                )
            written.add(key.name)
