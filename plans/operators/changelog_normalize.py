"""``changelog-normalize``: upserts made a whole changelog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from plans.declarations.row_kinds import ALL_KINDS, RowKinds
from plans.errors import Diagnostic
from plans.operators.columns import check_known, types_of
from plans.operators.fields import Changelog, Names, OneInput, OperatorId
from plans.operators.kind import Columns, Declared, KeysUpserted, OperatorKind, WithSettings, of_input
from plans.operators.state import States, stated
from plans.settings.layers import Settings

__all__ = ["CHANGELOG_NORMALIZE", "ChangelogNormalize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalize(WithSettings):
    """Turns rows that replace each other by ``key``, in the order in which they arrived, into a whole changelog.

    Reads a scan of upserts, or of a changelog in which changes may come twice; ``-U`` rows of it are dropped.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the table that its input scans.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "changelogNormalizeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(operator: ChangelogNormalize, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_known(operator.key, types_of(inputs[0]), f"{path}.key", "key column")


def _changelog(operator: ChangelogNormalize, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    return ("+I", "+U", "-D") if upserted(operator.key) else ALL_KINDS


def _describe(operator: ChangelogNormalize, plan: Declared) -> str:
    return f"ROW OF EACH {', '.join(operator.key)}"


CHANGELOG_NORMALIZE = OperatorKind(
    op="changelog-normalize",
    cls=ChangelogNormalize,
    title="changelog normalize",
    description="Turns rows that replace each other by key into a whole changelog; keeps the row of each key.",
    states=("changelogNormalizeState",),
    columns=of_input,
    check=_check,
    row_kinds=stated,
    changelog=_changelog,
    describe=_describe,
)
