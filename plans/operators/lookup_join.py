"""``lookup-join``: joins each row with a table's current rows for its keys, at processing time (FLIP-221, FLIP-234)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.fields import Expression, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import physical_columns
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import operand_of_and, shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.asking.lookup_text import settings_text
from hintplan.plans.operators.asking.lookups import LOOKUPS
from hintplan.plans.operators.spec.columns import (
    check_known,
    check_names,
    check_output,
    output_columns,
    same_type,
    types_of,
    unknown_table,
)
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order, unchanged
from hintplan.plans.operators.spec.output import JoinOutput
from hintplan.plans.operators.table import shown_connector
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.lookup import LOOKUP_GROUPS
from hintplan.plans.settings.views import AsyncSettings, RetrySettings, settings_view


@frozen
class LookupKey:
    """One equality of a lookup: ``column`` of the table equals an input column or a constant.

    Exactly one of ``left`` and ``constant`` is set; ``constant`` is a literal in Spark SQL, such as ``'EUR'``.
    """

    SCHEMA: ClassVar[Mapping[str, Any]] = {"minProperties": 2, "maxProperties": 2}

    left: Annotated[Name | None, "A column of the input."] = None
    constant: Annotated[Expression | None, "A literal in Spark SQL."] = None
    column: Annotated[Name, "A column of the table."]


@frozen
class LookupJoin(WithSettings):
    """Looks up every input row in ``table`` by ``keys`` at processing time; row kinds pass through.

    The operator fetches ``columns`` of the table. In a left join, rows for which ``pre_filter`` (over the input) is not
    true are not looked up. ``filter`` (over ``columns``) and ``condition`` (over ``l.column`` and ``r.column``) drop
    fetched rows.
    """

    id: OperatorId
    inputs: OneInput
    table: Annotated[Name, "The table to look up in."]
    join_type: Annotated[Literal["inner", "left"], "Whether rows that found nothing are dropped or padded with NULL."]
    keys: Annotated[
        tuple[LookupKey, ...],
        "The equalities by which rows are found: a column of the table with one of the input, or with a constant.",
        {"minItems": 1},
    ]
    columns: Annotated[
        Names, "The physical columns of the table that are fetched.", {"minItems": 1, "uniqueItems": True}
    ]
    pre_filter: Annotated[
        Expression | None,
        "Over the input: rows for which it is not true are not looked up. Only in a left join; null if nothing.",
    ]
    filter: Annotated[
        Expression | None, "Over the fetched columns: what was found and is not true is dropped; null if nothing."
    ]
    condition: Annotated[
        Expression | None,
        "Over l.<column> and r.<column>: what was found and is not true is dropped; null if nothing.",
    ]
    output: JoinOutput
    settings: Mapping[str, Settings]

    @property
    def async_(self) -> AsyncSettings:
        """The settings for waiting lookups."""
        return settings_view(AsyncSettings, self.settings["async"].values)

    @property
    def retry(self) -> RetrySettings | None:
        """The settings for retries of lookups without a match; None if there are no retries."""
        retries = self.settings.get("retry")
        return None if retries is None else settings_view(RetrySettings, retries.values)

    @property
    def cache(self) -> Settings:
        """The ``lookup.*`` options in force (FLIP-221): only options that apply to the chosen ``lookup.cache``."""
        return self.settings["cache"]


def _columns(lookup: LookupJoin, inputs: Sequence[Columns], plan: Declared) -> Columns:
    return output_columns(lookup.output)


def _check(lookup: LookupJoin, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    left = inputs[0]
    if lookup.table not in plan.tables:
        yield unknown_table(lookup.table, plan.tables, path)
        return
    physical = physical_columns(plan.tables[lookup.table])
    noun = f"column of table '{lookup.table}'"
    unknown = list(check_known(lookup.columns, types_of(physical), f"{path}.columns", noun))
    yield from unknown
    yield from check_names(lookup.columns, path, "columns")
    if unknown:
        return
    wanted = set(lookup.columns)
    fetched = tuple(column for column in physical if column.name in wanted)
    yield from _check_keys(lookup, types_of(left), types_of(fetched), path)
    yield from check_output(lookup.output, left, fetched, "the table that is fetched (see 'columns')", path)


def _check_keys(
    lookup: LookupJoin, left: Mapping[str, str], fetched: Mapping[str, str], path: str
) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, key in enumerate(lookup.keys):
        here = f"{path}.keys[{index}]"
        if key.column in seen:
            yield Diagnostic(message=f"column '{key.column}' is a key twice", path=f"{here}.column")
        seen.add(key.column)
        bad = list(check_known([key.column], fetched, f"{here}.column", "fetched column (see 'columns')"))
        if key.left is not None:
            bad += check_known([key.left], left, f"{here}.left", "column of the input")
        yield from bad
        if not bad and key.left is not None and not same_type(left[key.left], fetched[key.column]):
            pair = f"'{key.left}' is {left[key.left]}, '{key.column}' is {fetched[key.column]}"
            yield Diagnostic(message=f"the columns of a lookup key must have the same type: {pair}", path=here)


def _check_mode(lookup: LookupJoin, plan: Declared, path: str) -> Iterator[Diagnostic]:
    if lookup.table in plan.tables and source_kinds(plan.tables[lookup.table]) != INSERT_ONLY:
        message = f"table '{lookup.table}' is a changelog, which cannot be looked up"
        options = f"tables.{lookup.table}.options.source.changelog"
        yield Diagnostic(message=message, path=options, hint="look up a table of current rows")
    for column in physical_columns(plan.tables[lookup.table]) if lookup.table in plan.tables else ():
        if "TIME" in column.type and parse_type(column.type).contains("TIME"):
            message = f"table '{lookup.table}' is looked up, and column '{column.name}' is {column.type}"
            where = f"tables.{lookup.table}.columns.{column.name}"
            yield Diagnostic(message=message, path=where, hint="declare it STRING, and CAST it in the query")


def _expressions(lookup: LookupJoin) -> Iterator[tuple[str, str | None]]:
    yield from ((f"keys.{key.column}", key.constant) for key in lookup.keys)
    yield from (("pre-filter", lookup.pre_filter), ("filter", lookup.filter), ("condition", lookup.condition))


def _describe(lookup: LookupJoin, plan: Declared) -> str:
    connector = shown_connector(plan.tables.get(lookup.table))
    operands = (key.left if key.left is not None else shown_expression(key.constant or "") for key in lookup.keys)
    conditions = [f"{lookup.table}.{key.column} = {value}" for key, value in zip(lookup.keys, operands, strict=True)]
    filters = [text for text in (lookup.pre_filter, lookup.filter, lookup.condition) if text is not None]
    conditions += [operand_of_and(text, {"l": "", "r": lookup.table}) for text in filters]
    kind = "LEFT " if lookup.join_type == "left" else ""
    return f"{kind}LOOKUP JOIN {lookup.table} ({connector}) ON {' AND '.join(conditions)}"


LOOKUP_JOIN = OperatorKind(
    op="lookup-join",
    cls=LookupJoin,
    title="lookup join",
    description="Looks every input row up in a table when it is processed; row kinds pass through.",
    groups=(*LOOKUP_GROUPS, CACHED),
    asks=LOOKUPS,
    table="looks up",
    columns=_columns,
    check=_check,
    row_kinds=unchanged,
    reads_order=any_order,
    check_mode=_check_mode,
    expressions=_expressions,
    settings_text=settings_text,
    describe=_describe,
)
