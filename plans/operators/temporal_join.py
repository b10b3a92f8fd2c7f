"""``temporal-join``: a join of each left row with the version of a right row at the time of the left row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from hintplan.plans.connectors.table import is_upsert_source
from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.declarations.fields import Changelog, Expression, Name, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Neighbours
from hintplan.plans.operators.contract.output import JoinOutput, joined_columns, names_joined
from hintplan.plans.operators.contract.stateful import FOREVER, KeysUpserted, MixedStates
from hintplan.plans.operators.contract.timed import Timed, check_rowtime
from hintplan.plans.operators.join import JoinKey, check_join, describe_join
from hintplan.plans.settings.layers import Settings

Versions = Literal["all", "ascending"]
NOT_IN_BATCHES = "FOR SYSTEM_TIME AS OF an event time is for streams: Flink refuses it in batch mode, too"
IN_STREAMS = "run the job in streaming mode: with bounded tables and --once, it ends"


@frozen
class TemporalJoin(Timed):
    """Joins each left row with the right row that is the version of its key at the time of the left row.

    - A left row waits until the watermark reaches ``left_time``.
    - A right row is a version of its key from ``right_time`` on; a deletion ends the version. Of versions with equal
      times, the last one counts.
    - With ``versions`` "ascending", a right row that is earlier than a row before it is no version.
    - ``condition`` is the part of the ON clause besides the equalities, over ``l.column`` and ``r.column``.
    """

    op = "temporal-join"
    title = "temporal join"
    description = (
        "Joins each left row with the version of a right row at its time; keeps left rows until the watermark "
        "passes them, and the versions of each key."
    )
    takes_upserts = True
    state_names = ("leftState", "rightState")
    state_holds = "rows"
    state_grows_by = "key"
    added_rows_find = "matches"

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The left, then the right input.", {"minItems": 2, "maxItems": 2}]
    join_type: Annotated[
        JoinType, "The treatment of left rows without a match: inner or left.", {"enum": ["inner", "left"]}
    ]
    keys: Annotated[
        tuple[JoinKey, ...],
        "The equalities with the key of the versions; both columns have the same type, and NULL never matches.",
        {"minItems": 1},
    ]
    left_time: Annotated[Name, "The rowtime of the left input."]
    right_time: Annotated[Name, "The rowtime of the right input: from then on, a row is the version of its key."]
    versions: Annotated[
        Versions,
        "The right rows that are versions: all, or only ascending ones, which are not earlier than a row before them.",
    ]
    condition: Annotated[
        Expression | None, "The rest of the condition, over l.<column> and r.<column>; null if there is none."
    ]
    output: JoinOutput
    changelog: Changelog
    state: Annotated[MixedStates, "leftState, then rightState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    @property
    def changing_inputs(self) -> tuple[str, ...]:
        return self.inputs[:1]

    def has_ttl(self, state: str) -> bool:
        return state == "rightState"

    def kept_until(self, state: str) -> str:
        return "until the watermark reaches the row"

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left, right = inputs.columns
        yield from check_join(self, left, right)
        columns = [key.right for key in self.keys]
        for index, column in enumerate(columns):
            if column in columns[:index]:
                message = f"'{column}' is twice in the key of the versions"
                hint = "write the other equality into 'condition'"
                yield Diagnostic(message=message, path=f"{self.path}.keys[{index}].right", hint=hint)
        sides = {"left": (self.left_time, types_of(left)), "right": (self.right_time, types_of(right))}
        bad = [
            problem
            for side, (column, types) in sides.items()
            for problem in check_rowtime(column, types, f"{self.path}.{side}-time")
        ]
        yield from bad
        if bad:
            return
        left_kind, right_kind = (types[column] for column, types in sides.values())
        if parse(left_kind).root != parse(right_kind).root:
            times = f"'{self.left_time}' is {left_kind}, '{self.right_time}' is {right_kind}"
            message = f"both times must have the same type: {times}"
            yield Diagnostic(message=message, path=f"{self.path}.right-time", hint="compile the SQL again")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch":
            yield Diagnostic(message=NOT_IN_BATCHES, path=self.path, hint=IN_STREAMS)

    def check_neighbours(self, neighbours: Neighbours) -> Iterator[Diagnostic]:
        left = neighbours.below_watermark[0]
        table = neighbours.plan.tables.get(left.table or "")
        if left.is_source and table is not None and is_upsert_source(table):
            message = f"the left input is a changelog, but '{left.id}' reads upserts"
            yield Diagnostic(message=message, path=f"{self.path}.inputs[0]", hint="compile the SQL again")

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        return inputs

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        # A change of a left row is joined with the version at its time, too.
        return 0.0 if inputs[0] == INSERT_ONLY else FOREVER

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # A row waits for the watermark before the join evaluates its condition.
        return {key: value for key, value in facts.items() if key not in ("output", "condition")}

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "condition", self.condition

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        # As in Flink, the time of a version is no rowtime above the join.
        return names_joined(self.output, place, column) if place == 0 else ()

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        yield 0, "left-time", self.left_time
        yield 1, "right-time", self.right_time

    def describe(self, plan: Declared) -> str:
        left = self.state[0].input if self.state else self.inputs[0]
        return describe_join(self).replace("JOIN ON", f"JOIN AS OF {left}.{self.left_time} ON", 1)
