"""``sink-materialize``: keeps all rows by the key of their sink, and passes on the latest row of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.connectors.table import is_upsert_sink
from hintplan.plans.declarations.fields import Changelog, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import Neighbour, OperatorKind, WithSettings, in_order, of_input
from hintplan.plans.operators.spec.state import (
    KeysUpserted,
    StateKind,
    States,
    all_facts,
    stated,
    unbounded,
    waits_for_none,
)
from hintplan.plans.settings.layers import Settings


@frozen
class SinkMaterialize(WithSettings):
    """Keeps all rows by the ``key`` of the sinks that read it, and passes on the latest remaining row of each key.

    After a retraction of the latest row, it passes on the row before.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the sinks that read it.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "sinkMaterializeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(operator: SinkMaterialize, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_known(operator.key, types_of(inputs[0]), f"{path}.key", "key column")


def _check_place(
    operator: SinkMaterialize, inputs: Sequence[Neighbour], readers: Sequence[Neighbour], plan: Declared, path: str
) -> Iterator[Diagnostic]:
    if plan.mode == "batch":
        message = "a batch plan keeps no rows for a sink"
        yield Diagnostic(message=message, path=path, hint="compile the SQL again")
        return
    for reader in readers:
        sink, table = reader.operator, plan.tables[reader.operator.table] if reader.kind.is_sink else None
        if table is None:
            message = f"a sink-materialize is read by sinks only, '{sink.id}' is of kind {reader.kind.op}"
            yield Diagnostic(message=message, path=f"operators.{sink.id}.inputs", hint="compile the SQL again")
        elif not is_upsert_sink(table) or set(table.primary_key) != set(operator.key):
            key = f"upserts by ({', '.join(table.primary_key)})" if is_upsert_sink(table) else "does not upsert"
            message = f"the key is ({', '.join(operator.key)}), but '{sink.id}' {key}"
            yield Diagnostic(message=message, path=f"{path}.key", hint="compile the SQL again")


def _changelog(operator: SinkMaterialize, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    return ("+I", "+U") if inputs == INSERT_ONLY else UPSERT_KINDS


def _changes_for(operator: SinkMaterialize, lasts: Sequence[float], inputs: Sequence[RowKinds]) -> float:
    return 0  # only sinks read it


def _describe(operator: SinkMaterialize, plan: Declared) -> str:
    return f"LATEST ROW OF EACH {', '.join(operator.key)}"


SINK_MATERIALIZE = OperatorKind(
    op="sink-materialize",
    cls=SinkMaterialize,
    title="sink materialize",
    description="Keeps all rows by the key of a sink, and passes on the latest that is there for each key.",
    state=StateKind(
        names=("sinkMaterializeState",),
        changelog=_changelog,
        facts=all_facts,
        holds="rows",
        grows_by="row",
        bounded=unbounded,
        changes_for=_changes_for,
        added_rows_find="what they change",
        waits_as=waits_for_none,
    ),
    columns=of_input,
    check=_check,
    check_place=_check_place,
    row_kinds=stated,
    reads_order=in_order,
    describe=_describe,
)
