"""``lookup-join``: joins each row with a table's current rows for its keys, at processing time (FLIP-221, FLIP-234)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.fields import Expression, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import physical_columns
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import operand_of_and, shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, same_type, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.output import JoinOutput, check_output, joined_columns, names_joined
from hintplan.plans.operators.contract.tables import shown_connector, unknown_table
from hintplan.plans.operators.requests import lookup_settings
from hintplan.plans.operators.requests.lookup_check import check_settings
from hintplan.plans.operators.requests.lookup_text import settings_text
from hintplan.plans.operators.requests.requesting import RequestIdentity, Requesting, Retries, Waits
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.lookup import GROUPS, LOOKUP_GROUPS
from hintplan.plans.settings.setting import Value
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
class LookupJoin(Requesting):
    """Looks up every input row in ``table`` by ``keys`` at processing time; row kinds pass through.

    The operator fetches ``columns`` of the table. In a left join, rows for which ``pre_filter`` (over the input) is not
    true are not looked up. ``filter`` (over ``columns``) and ``condition`` (over ``l.column`` and ``r.column``) drop
    fetched rows.
    """

    op = "lookup-join"
    title = "lookup join"
    description = "Looks every input row up in a table when it is processed; row kinds pass through."
    groups = (*LOOKUP_GROUPS, CACHED)
    table_use = "looks up"
    request_noun = "lookup"
    same_requests_text = "looks {} up by the same columns"

    id: OperatorId
    inputs: OneInput
    table: Annotated[Name, "The table to look up in."]
    join_type: Annotated[Literal["inner", "left"], "inner drops rows without a match, left pads them with NULL."]
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
        "Over the input: rows for which it is not true are not looked up. Only in a left join; null if there is none.",
    ]
    filter: Annotated[
        Expression | None,
        "Over the fetched columns: fetched rows for which it is not true are dropped; null if there is none.",
    ]
    condition: Annotated[
        Expression | None,
        "Over l.<column> and r.<column>: fetched rows for which it is not true are dropped; null if there is none.",
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

    @property
    def reads_order(self) -> bool:
        return False

    @property
    def parks_rows(self) -> bool:
        return lookup_settings.parks_rows(self)

    @property
    def request_identity(self) -> RequestIdentity:
        # A constant may be the condition of only one reader, so lookups with equal columns count as the same requests.
        columns = tuple(key for key in self.keys if key.left is not None)
        return RequestIdentity(target=self.table, key=columns or self.keys)

    @property
    def waits(self) -> Waits | None:
        waits, retry = self.async_, self.retry
        if not waits.enabled:
            return None
        # With deferred retries, rows wait in state, and the timeout covers each attempt alone.
        retries = None
        if retry is not None and retry.mode == "inline":
            retries = Retries(attempts=retry.max_attempts, delay=retry.fixed_delay, timeout=waits.timeout)
        return Waits(capacity=waits.capacity, capacity_name="capacity", retries=retries)

    @property
    def settable(self) -> tuple[str, ...]:
        return GROUPS

    @property
    def nothing_to_set(self) -> str:
        return f"'{self.id}' has nothing to set"

    def config_groups(self, plan: Declared) -> Mapping[str, Group]:
        return {group.name: group for group in LOOKUP_GROUPS}

    def with_setting(self, plan: Declared, path: str, group: str, name: str, value: Value) -> Self:
        return self.with_settings(lookup_settings.with_setting(self, plan, path, group, name, value))

    def with_retry(self, plan: Declared, wanted: tuple[Value, Value] | None) -> Self:
        return self.with_settings(lookup_settings.with_retry(self, plan, wanted))

    def resettled(self, plan: Declared, insert_only: bool | None) -> Self:
        return self.with_settings(lookup_settings.resettled(self, plan, insert_only))

    def check_settings(self, plan: Declared, insert_only: bool | None) -> Iterator[Diagnostic]:
        return check_settings(self, plan, insert_only)

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left = inputs.only
        if self.table not in inputs.plan.tables:
            yield unknown_table(self.table, inputs.plan.tables, self.path)
            return
        physical = physical_columns(inputs.plan.tables[self.table])
        noun = f"column of table '{self.table}'"
        unknown = list(check_known(self.columns, types_of(physical), f"{self.path}.columns", noun))
        yield from unknown
        yield from check_names(self.columns, self.path, "columns")
        if unknown:
            return
        wanted = set(self.columns)
        fetched = tuple(column for column in physical if column.name in wanted)
        yield from _check_keys(self, types_of(left), types_of(fetched))
        yield from check_output(self.output, left, fetched, "the table that is fetched (see 'columns')", self.path)

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if self.table in plan.tables and source_kinds(plan.tables[self.table]) != INSERT_ONLY:
            message = f"table '{self.table}' is a changelog, which cannot be looked up"
            options = f"tables.{self.table}.options.source.changelog"
            yield Diagnostic(message=message, path=options, hint="look up a table of current rows")
        for column in physical_columns(plan.tables[self.table]) if self.table in plan.tables else ():
            if "TIME" in column.type and parse_type(column.type).contains("TIME"):
                message = f"table '{self.table}' is looked up, and column '{column.name}' is {column.type}"
                where = f"tables.{self.table}.columns.{column.name}"
                yield Diagnostic(message=message, path=where, hint="declare it STRING, and CAST it in the query")

    def settings_text(self, group: str) -> Iterator[str]:
        return settings_text(self.settings, group)

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield from ((f"keys.{key.column}", key.constant) for key in self.keys)
        yield from (("pre-filter", self.pre_filter), ("filter", self.filter), ("condition", self.condition))

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return names_joined(self.output, place, column)

    def describe(self, plan: Declared) -> str:
        connector = shown_connector(plan.tables.get(self.table))
        operands = (key.left if key.left is not None else shown_expression(key.constant or "") for key in self.keys)
        conditions = [f"{self.table}.{key.column} = {value}" for key, value in zip(self.keys, operands, strict=True)]
        filters = [text for text in (self.pre_filter, self.filter, self.condition) if text is not None]
        conditions += [operand_of_and(text, {"l": "", "r": self.table}) for text in filters]
        kind = "LEFT " if self.join_type == "left" else ""
        return f"{kind}LOOKUP JOIN {self.table} ({connector}) ON {' AND '.join(conditions)}"


def _check_keys(lookup: LookupJoin, left: Mapping[str, str], fetched: Mapping[str, str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, key in enumerate(lookup.keys):
        here = f"{lookup.path}.keys[{index}]"
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
