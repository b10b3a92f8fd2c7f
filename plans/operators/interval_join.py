"""``interval-join``: a join of rows whose times are at most an interval apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from hintplan.plans.declarations.durations import DurationError, format_duration
from hintplan.plans.declarations.fields import Changelog, Expression, Name, OperatorId, Ref
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.plans.declarations.windows import signed_duration, signed_text
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.output import JoinOutput, joined_columns, names_joined
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_rowtime
from hintplan.plans.operators.join import JoinKey, check_join, describe_join, join_state_facts
from hintplan.plans.settings.layers import Settings

IntervalJoinType = Literal["inner", "left", "right", "full"]


@frozen
class IntervalJoin(Timed):
    """Joins the rows of both inputs that are equal in ``keys``, and whose times are close to each other.

    The time of the left row is from the time of the right row plus ``lower`` to that time plus ``upper``. ``condition``
    is the rest of the ON clause, over ``l.column`` and ``r.column``. The watermark removes rows from state. By
    processing time, the time of a row is the time of its micro-batch, and the clock removes rows.
    """

    op = "interval-join"
    title = "interval join"
    description = (
        "Joins the rows of two inputs whose times are at most an interval apart; keeps a row until the watermark, or "
        "the clock, has passed all times that it can meet."
    )
    state_names = ("leftState", "rightState")
    state_holds = "rows"
    state_grows_by = "row"
    added_rows_find = "matches"
    drops_late_rows = False

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The left, then the right input.", {"minItems": 2, "maxItems": 2}]
    join_type: Annotated[IntervalJoinType, "The treatment of rows without a match."]
    keys: Annotated[
        tuple[JoinKey, ...],
        "The equalities; may be empty. Both columns have the same type, and NULL never matches.",
    ]
    condition: Annotated[
        Expression | None, "The rest of the condition, over l.<column> and r.<column>; null if there is none."
    ]
    left_time: Annotated[Name | None, "The rowtime of the left input; absent with processing time."] = None
    right_time: Annotated[Name | None, "The rowtime of the right input, of the same type; absent with 'left-time'."] = (
        None
    )
    processing_time: Annotated[
        bool, "true: the time of a row is the time of its micro-batch, and the clock removes rows."
    ] = False
    lower: Annotated[str, "The left time minus the right time is at least this long.", Ref("offset")]
    upper: Annotated[str, "The left time minus the right time is at most this long.", Ref("offset")]
    output: JoinOutput
    changelog: Changelog
    state: Annotated[TimedStates, "leftState, then rightState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    @property
    def times(self) -> tuple[str, str] | None:
        """The rowtime columns of both inputs; None by processing time."""
        return None if self.left_time is None or self.right_time is None else (self.left_time, self.right_time)

    @property
    def goes_by_clock(self) -> bool:
        return self.processing_time

    @property
    def wakes(self) -> bool:
        # Without rows to pad, rows only leave the state, and they can do so when others come.
        return self.processing_time and self.join_type != "inner"

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest difference of the left time minus the right time, in ms."""
        return signed_duration(self.lower), signed_duration(self.upper)

    @property
    def reaches(self) -> tuple[int, int]:
        """The time in ms by which a match of a left row, and of a right row, may be later than the row."""
        lower, upper = self.bounds
        return -lower, upper

    @property
    def holds_back(self) -> int:
        """The time in ms by which a row may leave the join after the watermark has passed it.

        A row without a match leaves it one ms after its last possible match.
        """
        lower, upper = self.bounds
        if lower > upper or self.processing_time:  # nothing matches, and all rows leave at once; or no rowtime above
            return 0
        pads_left, pads_right = self.join_type in ("left", "full"), self.join_type in ("right", "full")
        return max(0, -lower + pads_left, upper + pads_right)

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left, right = inputs.columns
        for name in ("lower", "upper"):
            yield from _check_bound(getattr(self, name), f"{self.path}.{name}")
        yield from self._check_times(types_of(left), types_of(right))
        if self.processing_time and inputs.plan.mode == "batch":
            message, path = "in a batch job, no processing time passes", f"{self.path}.processing-time"
            yield Diagnostic(message=message, path=path, hint="compile the SQL with -c execution.runtime-mode=batch")
        yield from check_join(self, left, right)

    def _check_times(self, left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[Diagnostic]:
        for name, time in (("left-time", self.left_time), ("right-time", self.right_time)):
            if (time is None) != self.processing_time:
                message = "an interval join has either the rowtimes of both inputs, or 'processing-time'"
                hint = f"remove '{name}'" if self.processing_time else f"add '{name}', the rowtime of this input"
                yield Diagnostic(message=message, path=f"{self.path}.{name}", hint=hint)
        if self.times is None or self.processing_time:
            return
        sides = left, right
        problems = [
            *check_rowtime(self.times[0], left, f"{self.path}.left-time"),
            *check_rowtime(self.times[1], right, f"{self.path}.right-time"),
        ]
        yield from problems
        if not problems:
            kinds = [parse(types[name]) for types, name in zip(sides, self.times, strict=True)]
            if kinds[0].root != kinds[1].root:
                one, other = (f"'{name}' is {kind}" for name, kind in zip(self.times, kinds, strict=True))
                message = f"both times have the same type, but {one}, and {other}"
                yield Diagnostic(message=message, path=f"{self.path}.right-time", hint="compile the SQL again")

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return join_state_facts(self.join_type, facts)

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "condition", self.condition

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return names_joined(self.output, place, column)

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        if self.times is not None:
            yield 0, "left-time", self.times[0]
            yield 1, "right-time", self.times[1]

    def own_rowtimes(self) -> tuple[str, ...]:
        times = self.times or ()
        return tuple(sorted(name for place, time in enumerate(times) for name in self.names_above(place, time)))

    def kept_until(self, state: str) -> str:
        reach = self.reaches[self.state_names.index(state)]
        return f"{format_duration(max(0, reach))} of {'processing' if self.processing_time else 'event'} time"

    def describe(self, plan: Declared) -> str:
        # The times are bounded, so a join without other conditions is no product of all rows.
        text = describe_join(self).replace("CROSS JOIN", "JOIN ON TRUE").removesuffix(" TRUE")
        left, right = [entry.input for entry in self.state] or self.inputs
        separator = " " if text.endswith(" ON") else ", "
        of_left, of_right = self.times or ("PROCTIME()", "PROCTIME()")
        lower, upper = (_shifted(f"{right}.{of_right}", bound) for bound in self.bounds)
        near = f"= {lower}" if lower == upper else f"BETWEEN {lower} AND {upper}"
        return f"INTERVAL {text}{separator}{left}.{of_left} {near}"


def _shifted(time: str, milliseconds: int) -> str:
    """Return a time plus a duration as text.

    >>> _shifted("p.ts", -3000), _shifted("p.ts", 0)
    ('p.ts - 3 s', 'p.ts')
    """
    if not milliseconds:
        return time
    return f"{time} {'-' if milliseconds < 0 else '+'} {format_duration(abs(milliseconds))}"


def _check_bound(text: str, path: str) -> Iterator[Diagnostic]:
    try:
        milliseconds = signed_duration(text)
    except DurationError as error:
        yield Diagnostic(message=f"bad duration '{text}': {error.reason}", path=path, hint=error.hint)
        return
    if text != signed_text(milliseconds):
        message = f"an interval join has its durations in the shortest form, found '{text}'"
        yield Diagnostic(message=message, path=path, hint=f"write '{signed_text(milliseconds)}'")
