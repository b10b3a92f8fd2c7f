"""``changelog-normalize``: turns upserts into a complete changelog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.fields import Changelog, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Neighbours
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.layers import Settings


@frozen
class ChangelogNormalize(Stateful):
    """Turns rows that replace each other by ``key``, in order of arrival, into a complete changelog.

    Its input is a scan of upserts, or of a changelog that may repeat changes; the ``-U`` rows of the input are dropped.
    The watermark of the table may lie between the two, because rows that are replaced move it, too.
    """

    op = "changelog-normalize"
    title = "changelog normalize"
    description = "Turns rows that replace each other by key into a whole changelog; keeps the row of each key."
    takes_upserts = True
    normalizes_changes = True
    passes_columns = True
    passes_watermark = True
    state_names = ("changelogNormalizeState",)
    state_holds = "rows"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the table that its input scans.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "changelogNormalizeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        yield from check_known(self.key, types_of(inputs.only), f"{self.path}.key", "key column")

    def check_neighbours(self, neighbours: Neighbours) -> Iterator[Diagnostic]:
        (source,) = neighbours.below_watermark
        table = neighbours.plan.tables[source.table] if source.is_source and source.table is not None else None
        if neighbours.plan.mode == "batch":
            message = "a batch plan has no changes, so there is nothing to normalize"
            yield Diagnostic(message=message, path=self.path, hint="compile the SQL again")
        elif table is None or source_kinds(table) == INSERT_ONLY:
            message = f"a changelog-normalize reads a scan of upserts or changes, '{source.id}' is none"
            yield Diagnostic(message=message, path=f"{self.path}.inputs", hint="compile the SQL again")
        elif set(self.key) != set(table.primary_key):
            key = ", ".join(table.primary_key)
            message = f"the key is ({', '.join(self.key)}), the primary key of '{source.table}' is ({key})"
            yield Diagnostic(message=message, path=f"{self.path}.key", hint="compile the SQL again")

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        return UPSERT_KINDS if upserted(self.key) else ALL_KINDS

    def describe(self, plan: Declared) -> str:
        return f"ROW OF EACH {', '.join(self.key)}"
