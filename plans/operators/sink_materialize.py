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
from hintplan.plans.operators.contract.columns import check_known, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Neighbours
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.layers import Settings


@frozen
class SinkMaterialize(Stateful):
    """Keeps all rows by the ``key`` of the sinks that read it, and passes on the latest remaining row of each key.

    After a retraction of the latest row, it passes on the row before.
    """

    op = "sink-materialize"
    title = "sink materialize"
    description = "Keeps all rows by the key of a sink, and passes on the latest row of each key."
    state_names = ("sinkMaterializeState",)
    state_holds = "rows"
    state_grows_by = "row"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The primary key of the sinks that read it.", {"minItems": 1, "uniqueItems": True}]
    changelog: Changelog
    state: Annotated[States, "sinkMaterializeState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        yield from check_known(self.key, types_of(inputs.only), f"{self.path}.key", "key column")

    def check_neighbours(self, neighbours: Neighbours) -> Iterator[Diagnostic]:
        if neighbours.plan.mode == "batch":
            message = "a batch plan keeps no rows for a sink"
            yield Diagnostic(message=message, path=self.path, hint="compile the SQL again")
            return
        for reader in neighbours.readers:
            table = neighbours.plan.tables[reader.table] if reader.is_sink and reader.table is not None else None
            if table is None:
                message = f"a sink-materialize is read by sinks only, '{reader.id}' is of kind {reader.op}"
                yield Diagnostic(message=message, path=f"{reader.path}.inputs", hint="compile the SQL again")
            elif not is_upsert_sink(table) or set(table.primary_key) != set(self.key):
                key = f"upserts by ({', '.join(table.primary_key)})" if is_upsert_sink(table) else "does not upsert"
                message = f"the key is ({', '.join(self.key)}), but '{reader.id}' {key}"
                yield Diagnostic(message=message, path=f"{self.path}.key", hint="compile the SQL again")

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        return ("+I", "+U") if inputs == INSERT_ONLY else UPSERT_KINDS

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return 0  # only sinks read it

    def describe(self, plan: Declared) -> str:
        return f"LATEST ROW OF EACH {', '.join(self.key)}"
