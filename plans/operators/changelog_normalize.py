"""``changelog-normalize``: turns upserts into a complete changelog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.fields import Changelog, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import Neighbour, OperatorKind, WithSettings, any_order, of_input
from hintplan.plans.operators.spec.state import (
    KeysUpserted,
    StateKind,
    States,
    all_facts,
    its_own_ttl,
    stated,
    unbounded,
    waits_for_none,
)
from hintplan.plans.settings.layers import Settings


@frozen
class ChangelogNormalize(WithSettings):
    """Turns rows that replace each other by ``key``, in order of arrival, into a complete changelog.

    Its input is a scan of upserts, or of a changelog that may repeat changes; the ``-U`` rows of the input are dropped.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the table that its input scans.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "changelogNormalizeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(operator: ChangelogNormalize, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_known(operator.key, types_of(inputs[0]), f"{path}.key", "key column")


def _check_place(
    operator: ChangelogNormalize, inputs: Sequence[Neighbour], readers: Sequence[Neighbour], plan: Declared, path: str
) -> Iterator[Diagnostic]:
    (source,) = inputs
    table = plan.tables[source.operator.table] if source.kind.is_source else None
    if plan.mode == "batch":
        message = "a batch plan has no changes, so there is nothing to normalize"
        yield Diagnostic(message=message, path=path, hint="compile the SQL again")
    elif table is None or source_kinds(table) == INSERT_ONLY:
        message = f"a changelog-normalize reads a scan of upserts or changes, '{source.operator.id}' is none"
        yield Diagnostic(message=message, path=f"{path}.inputs", hint="compile the SQL again")
    elif set(operator.key) != set(table.primary_key):
        key = ", ".join(table.primary_key)
        message = f"the key is ({', '.join(operator.key)}), the primary key of '{source.operator.table}' is ({key})"
        yield Diagnostic(message=message, path=f"{path}.key", hint="compile the SQL again")


def _changelog(operator: ChangelogNormalize, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    return UPSERT_KINDS if upserted(operator.key) else ALL_KINDS


def _describe(operator: ChangelogNormalize, plan: Declared) -> str:
    return f"ROW OF EACH {', '.join(operator.key)}"


CHANGELOG_NORMALIZE = OperatorKind(
    op="changelog-normalize",
    cls=ChangelogNormalize,
    title="changelog normalize",
    description="Turns rows that replace each other by key into a whole changelog; keeps the row of each key.",
    state=StateKind(
        names=("changelogNormalizeState",),
        changelog=_changelog,
        facts=all_facts,
        holds="rows",
        grows_by="key",
        bounded=unbounded,
        changes_for=its_own_ttl,
        added_rows_find="what they change",
        waits_as=waits_for_none,
    ),
    columns=of_input,
    check=_check,
    check_place=_check_place,
    takes_upserts=True,
    row_kinds=stated,
    reads_order=any_order,
    describe=_describe,
)
