"""``sink-materialize``: all rows by the key of their sink, the latest of which is passed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from plans.errors import Diagnostic
from plans.operators.columns import check_known, types_of
from plans.operators.fields import Changelog, Names, OneInput, OperatorId
from plans.operators.kind import Columns, Declared, KeysUpserted, OperatorKind, WithSettings, of_input
from plans.operators.state import States, stated
from plans.settings.layers import Settings

__all__ = ["SINK_MATERIALIZE", "SinkMaterialize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMaterialize(WithSettings):
    """Keeps all rows by the ``key`` of the sinks that read it, and passes on the latest that is there for each key.

    When the latest is taken back, the one before it comes again.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the sinks that read it.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "sinkMaterializeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(operator: SinkMaterialize, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_known(operator.key, types_of(inputs[0]), f"{path}.key", "key column")


def _changelog(operator: SinkMaterialize, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    return ("+I", "+U") if inputs == INSERT_ONLY else ("+I", "+U", "-D")


def _reads_order(operator: SinkMaterialize) -> bool:
    return True


def _describe(operator: SinkMaterialize, plan: Declared) -> str:
    return f"LATEST ROW OF EACH {', '.join(operator.key)}"


SINK_MATERIALIZE = OperatorKind(
    op="sink-materialize",
    cls=SinkMaterialize,
    title="sink materialize",
    description="Keeps all rows by the key of a sink, and passes on the latest that is there for each key.",
    states=("sinkMaterializeState",),
    columns=of_input,
    check=_check,
    row_kinds=stated,
    changelog=_changelog,
    reads_order=_reads_order,
    describe=_describe,
)
