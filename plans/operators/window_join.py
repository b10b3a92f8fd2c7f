"""``window-join``: a join of the rows of two inputs that are in the same window."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any

from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.declarations.fields import Changelog, Expression, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.output import JoinOutput, joined_columns, names_joined
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_of_rowtime, check_window, check_window_columns
from hintplan.plans.operators.join import JoinKey, check_join, describe_join, join_state_facts
from hintplan.plans.settings.layers import Settings


@frozen
class WindowJoin(Timed):
    """Joins the rows of both inputs that are in the same window and equal in ``keys``, when the watermark passes it.

    ``condition`` is the part of the ON clause besides the equalities, over ``l.column`` and ``r.column``.
    """

    op = "window-join"
    title = "window join"
    description = "Joins the rows of two inputs in the same window; keeps both until the watermark passes it."
    state_names = ("leftState", "rightState")
    state_holds = "rows"
    state_grows_by = "row"
    added_rows_find = "matches"

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The left, then the right input.", {"minItems": 2, "maxItems": 2}]
    join_type: Annotated[JoinType, "The treatment of rows without a match."]
    keys: Annotated[
        tuple[JoinKey, ...],
        "The equalities, without the columns of the window; both columns have the same type, and NULL never matches.",
    ]
    condition: Annotated[
        Expression | None, "The rest of the condition, over l.<column> and r.<column>; null if there is none."
    ]
    window: Annotated[Window, "The windows of both inputs."]
    left_window: Annotated[WindowColumns, "The columns of the left input with the window of a row."]
    right_window: Annotated[WindowColumns, "The columns of the right input with the window of a row."]
    output: JoinOutput
    changelog: Changelog
    state: Annotated[TimedStates, "leftState, then rightState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left, right = inputs.columns
        yield from check_window(self.window, self.path)
        yield from check_of_rowtime(self.window, self.path)
        yield from check_window_columns(self.left_window, types_of(left), f"{self.path}.left-window")
        yield from check_window_columns(self.right_window, types_of(right), f"{self.path}.right-window")
        yield from check_join(self, left, right)

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return join_state_facts(self.join_type, facts)

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "condition", self.condition

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return names_joined(self.output, place, column)

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        yield 0, "left-window", self.left_window, self.window
        yield 1, "right-window", self.right_window, self.window

    def describe(self, plan: Declared) -> str:
        # The windows are equal, so a join without other conditions is no product of all rows.
        return f"WINDOW {describe_join(self).replace('CROSS JOIN', 'JOIN').removesuffix(' ON TRUE')}"
