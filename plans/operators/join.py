"""``join``: a regular stream join, with state on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Protocol

from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.declarations.fields import Changelog, Expression, Name, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import operand_of_and
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_read_of_sides, same_type, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.output import JoinColumn, JoinOutput, check_output, joined_columns
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.effects import restarts
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.state import StateEntry


def _limit(side: str) -> Setting:
    return Setting(
        name=side,
        kind="int",
        default=0,
        description=f"The number of newest rows per key in the state of the {side} input; 0 keeps all.",
        effect=restarts(
            "state is kept; rows of a key beyond the limit are dropped when the key gets its next row",
            live="next batch",
        ),
        config="table.exec.join.max-rows-per-key",
        loses=f"the oldest rows of a key of the {side} input are dropped, and find no more matches",
    )


MAX_ROWS_PER_KEY = Group(
    name="max-rows-per-key",
    schema="max-rows-per-key",
    description="The number of rows per key on each side: a guard against hot keys. Streaming only.",
    layers=("default", "config"),
    absent="left out",
    mode="streaming",
    elsewhere="a batch job keeps no state",
    settings=specs(_limit("left"), _limit("right")),
)


@frozen
class JoinKey:
    """One equality ``left.left = right.right``; both columns have the same type, and NULL never matches."""

    left: Annotated[Name, "A column of the left input."]
    right: Annotated[Name, "A column of the right input."]


@frozen
class Join(Stateful):
    """A regular stream join.

    ``condition`` is the part of the ON clause besides the equalities, over ``l.column`` and ``r.column``.
    """

    op = "join"
    title = "join"
    description = "A regular stream join; keeps the rows of both inputs in state."
    groups = (MAX_ROWS_PER_KEY, CACHED)
    state_names = ("leftState", "rightState")
    state_holds = "rows"
    state_grows_by = "row"
    added_rows_find = "matches"

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The left, then the right input.", {"minItems": 2, "maxItems": 2}]
    join_type: Annotated[JoinType, "The treatment of rows without a match."]
    keys: Annotated[tuple[JoinKey, ...], "The equalities; both columns have the same type, and NULL never matches."]
    condition: Annotated[
        Expression | None, "The rest of the condition, over l.<column> and r.<column>; null if there is none."
    ]
    output: JoinOutput
    changelog: Changelog
    state: Annotated[States, "leftState, then rightState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def max_rows_per_key(self) -> tuple[int | None, int | None]:
        """The number of rows per key that the left and the right side keep; None for all."""
        limits = self.settings.get(MAX_ROWS_PER_KEY.name)
        left, right = (int(limits.values[side]) if limits is not None else 0 for side in ("left", "right"))
        return left or None, right or None

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left, right = inputs.columns
        yield from check_join(self, left, right)

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if self.join_type in ("inner", "semi") and inputs == INSERT_ONLY:
            return INSERT_ONLY
        return ("+I", "-D")

    @property
    def waits_as(self) -> str | None:
        return f"{self.join_type} outer join" if self.join_type in ("left", "right", "full") else None

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return join_state_facts(self.join_type, facts)

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        left, right = ttls
        updated = [kinds != INSERT_ONLY for kinds in inputs]
        bounds = [min(left, right)]
        # A row that waits for a match, or is retracted with its match, is in the state of its own side.
        if self.join_type in ("left", "full", "semi", "anti") or updated[1]:
            bounds.append(left)
        if self.join_type in ("right", "full") or updated[0]:
            bounds.append(right)
        return max(bounds)

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "condition", self.condition

    def describe(self, plan: Declared) -> str:
        return describe_join(self)


class Joined(Protocol):
    """The facts that joins of all kinds have."""

    @property
    def path(self) -> str: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def join_type(self) -> JoinType: ...

    @property
    def keys(self) -> tuple[JoinKey, ...]: ...

    @property
    def condition(self) -> str | None: ...

    @property
    def output(self) -> tuple[JoinColumn, ...]: ...

    @property
    def state(self) -> tuple[StateEntry, ...]: ...


def check_join(join: Joined, left: Columns, right: Columns) -> Iterator[Diagnostic]:
    """Yield the problems of the keys, the condition and the output of a join of inputs with these columns."""
    sides = {"left": types_of(left), "right": types_of(right)}
    for index, key in enumerate(join.keys):
        here = f"{join.path}.keys[{index}]"
        unknown = [
            *check_known([key.left], sides["left"], f"{here}.left", "column of the left input"),
            *check_known([key.right], sides["right"], f"{here}.right", "column of the right input"),
        ]
        yield from unknown
        if not unknown and not same_type(sides["left"][key.left], sides["right"][key.right]):
            types = f"'{key.left}' is {sides['left'][key.left]}, '{key.right}' is {sides['right'][key.right]}"
            yield Diagnostic(message=f"the columns of a join key must have the same type: {types}", path=here)
    yield from check_read_of_sides(join.condition, {"l": sides["left"], "r": sides["right"]}, f"{join.path}.condition")
    for column in join.output:
        if join.join_type in ("semi", "anti") and column.side == "right":
            message = f"a {join.join_type} join has no columns of its right input"
            yield Diagnostic(message=message, path=f"{join.path}.output.{column.name}.from")
    yield from check_output(join.output, left, right, "the right input", join.path)


def join_state_facts(join_type: JoinType, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that determine the states of a join, out of all its facts."""
    # An inner join evaluates its condition on pairs of rows, after reading state, so state does not depend on it.
    without = ("output", "condition") if join_type == "inner" else ("output",)
    return {key: value for key, value in facts.items() if key not in without}


def describe_join(join: Joined) -> str:
    """Return the type and the condition of a join in words of SQL."""
    entries = [entry.input for entry in join.state]
    left, right = entries if len(entries) == len(join.inputs) else join.inputs
    conditions = [f"{left}.{key.left} = {right}.{key.right}" for key in join.keys]
    if join.condition is not None:
        conditions.append(operand_of_and(join.condition, {"l": left, "r": right}))
    if not conditions and join.join_type == "inner":
        return "CROSS JOIN"
    kind = "" if join.join_type == "inner" else f"{join.join_type.upper()} "
    return f"{kind}JOIN ON {' AND '.join(conditions) or 'TRUE'}"
