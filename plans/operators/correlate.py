"""``correlate``: calls a user's function for every row (FLIP-498).

An edit of its settings changes only the value that it names, or also the strategy if it turns retries on or off.

    correlate_locate.retry=off     is     correlate_locate.retry.retry-strategy=no_retry
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from hintplan.plans.declarations.built_in import CLASSES_DRAWN
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.fields import Expression, Name, OneInput, OperatorId
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_argument, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.output import JoinOutput, check_output, joined_columns, names_joined
from hintplan.plans.operators.requests.requesting import RequestIdentity, Requesting, Retries, Waits
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.calls import CALL_GROUPS, NO_RETRY, RETRY_STRATEGY, call_groups, is_async, resolved_call
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings, edits_of, ordered
from hintplan.plans.settings.origin_checks import check_origins
from hintplan.plans.settings.setting import Value
from hintplan.plans.settings.text import setting_text, with_layers_text
from hintplan.plans.settings.views import CallRetry, CallSettings, call_retry, settings_view
from hintplan.plans.text.names import did_you_mean

_OF_RETRY = ("fixed-delay", "max-attempts")


@frozen
class Argument:
    """An argument of a call: an input column, or a literal in Spark SQL, such as ``'$'``; exactly one is set.

    A column has the declared type of the argument; a literal is cast to it.
    """

    SHORT: ClassVar[str] = "column"
    """The field that a plan writes as a bare value if no other field is set."""

    column: Name | None = None
    constant: Annotated[Expression | None, "A literal in Spark SQL, cast to the declared type of the argument."] = None


@frozen
class Correlate(Requesting):
    """Calls ``function`` for every input row and joins the row with the result of the call; row kinds pass through.

    A ``left`` correlate keeps a row whose call returned nothing, padded with NULL. A scalar function returns one row,
    and its correlate is always ``inner``. Only calls of an asynchronous function have settings.
    """

    op = "correlate"
    title = "call"
    description = (
        "Calls a function for every input row, and joins the row with the results of the call; row kinds pass through."
    )
    groups = (*CALL_GROUPS, CACHED)
    request_noun = "call"
    same_requests_text = "calls {} with the same arguments"

    id: OperatorId
    inputs: OneInput
    function: Annotated[Name, "The function to call."]
    join_type: Annotated[
        Literal["inner", "left"], "inner drops rows whose call returns no rows, left pads them with NULL."
    ]
    arguments: Annotated[tuple[Argument, ...], "The arguments of the call: input columns by name, or literals."]
    output: JoinOutput
    settings: Mapping[str, Settings]

    @property
    def async_(self) -> CallSettings | None:
        """The settings for waiting calls; None if the function is synchronous."""
        waits = self.settings.get("async")
        return None if waits is None else settings_view(CallSettings, waits.values)

    @property
    def retry(self) -> CallRetry | None:
        """The settings for retries of failed calls; None if the function is synchronous."""
        retries = self.settings.get("retry")
        return None if retries is None else call_retry(retries.values)

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.function,)

    @property
    def reads_order(self) -> bool:
        return False

    @property
    def request_identity(self) -> RequestIdentity:
        return RequestIdentity(target=self.function, key=self.arguments)

    @property
    def waits(self) -> Waits | None:
        waits, retry = self.async_, self.retry
        if waits is None:
            return None
        retries = None
        if retry is not None:
            attempts = 0 if retry.never else retry.max_attempts
            retries = Retries(attempts=attempts, delay=retry.fixed_delay, timeout=waits.timeout)
        return Waits(capacity=waits.buffer_capacity, capacity_name="buffer-capacity", retries=retries)

    @property
    def settable(self) -> tuple[str, ...]:
        return tuple(group.name for group in CALL_GROUPS if group.name in self.settings)

    @property
    def nothing_to_set(self) -> str:
        return f"'{self.id}' calls '{self.function}', which is synchronous: its calls neither wait nor retry"

    def config_groups(self, plan: Declared) -> Mapping[str, Group]:
        return {group.name: group for group in call_groups(plan.functions[self.function].kind)}

    def with_setting(self, plan: Declared, path: str, group: str, name: str, value: Value) -> Self:
        if group not in self.settings:
            message = f"'{self.function}' is synchronous, so there is no '{name}' to set"
            raise PlanError(message, path=path, hint=f"'{self.id}' has nothing to set")
        settings = self.settings[group]
        if name in _OF_RETRY and settings.values[RETRY_STRATEGY] == NO_RETRY and settings.values[name] != value:
            message = f"'{name}' has no effect here: the '{RETRY_STRATEGY}' is {NO_RETRY}"
            raise PlanError(message, path=path, hint=f"set {self.id}.retry='<attempts> x <delay>', which retries")
        return self.with_settings({**self.settings, group: _with_values(settings, {name: value})})

    def with_retry(self, plan: Declared, wanted: tuple[Value, Value] | None) -> Self:
        values: dict[str, Value] = {RETRY_STRATEGY: NO_RETRY}
        if wanted is not None:
            values = {RETRY_STRATEGY: "fixed_delay", "max-attempts": wanted[0], "fixed-delay": wanted[1]}
        return self.with_settings({**self.settings, "retry": _with_values(self.settings["retry"], values)})

    def resettled(self, plan: Declared, insert_only: bool | None) -> Self:
        if self.function not in plan.functions:
            return self
        fresh = resolved_call(plan.functions[self.function].kind, plan.config)
        groups = {
            group: _with_values(fresh[group], edits_of(settings)) if group in fresh else settings
            for group, settings in self.settings.items()
        }
        return self.with_settings(groups)

    def check_settings(self, plan: Declared, insert_only: bool | None) -> Iterator[Diagnostic]:
        function = plan.functions.get(self.function)
        if function is None:
            return
        if self.join_type == "left" and function.kind in ("scalar", "async-scalar"):
            message = f"'{self.function}' returns one value for every row, so there is nothing to keep or drop"
            yield Diagnostic(message=message, path=f"{self.path}.join-type", hint='write "inner"')
        if insert_only is False and function.class_name in CLASSES_DRAWN:
            message = f"'{self.function}' is called for rows that can change: none could be taken back as it was"
            yield Diagnostic(message=message, path=f"{self.path}.inputs", hint="call it below the join or aggregate")
        waits = is_async(function.kind)
        for group in (group.name for group in CALL_GROUPS):
            if waits and group not in self.settings:
                message = f"'{self.function}' is asynchronous, so its calls have the settings '{group}'"
                hint = "compile the SQL again" if group == "async" else '"retry-strategy": "no_retry" turns retries off'
                yield Diagnostic(message=message, path=f"{self.path}.{group}", hint=hint)
            elif not waits and group in self.settings:
                message = f"'{self.function}' is synchronous: its calls neither wait nor retry"
                yield Diagnostic(message=message, path=f"{self.path}.{group}", hint="write null")
        yield from check_origins(self.id, self.settings, resolved_call(function.kind, plan.config), "the table")

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        left = inputs.only
        function = inputs.plan.functions.get(self.function)
        if function is None:
            hint = did_you_mean(self.function, inputs.plan.functions, what="functions")
            yield Diagnostic(message=f"there is no function '{self.function}'", path=f"{self.path}.function", hint=hint)
            return
        if function.kind == "aggregate":
            message = f"'{self.function}' is an aggregate function, which is called for groups of rows, not for each"
            yield Diagnostic(message=message, path=f"{self.path}.function", hint="call it in an aggregate operator")
            return
        wanted = function.arguments
        if len(self.arguments) != len(wanted):
            message = (
                f"'{self.function}' takes {len(wanted)} arguments ({', '.join(wanted)}), found {len(self.arguments)}"
            )
            yield Diagnostic(message=message, path=f"{self.path}.arguments")
            return
        for index, (argument, declared_type) in enumerate(zip(self.arguments, wanted, strict=True)):
            if argument.column is not None:
                here = f"{self.path}.arguments[{index}]"
                yield from check_argument(self.function, argument.column, declared_type, types_of(left), here)
        yield from check_output(self.output, left, function.output, f"function '{self.function}'", self.path)

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield from ((f"arguments[{index}]", argument.constant) for index, argument in enumerate(self.arguments))

    def settings_text(self, group: str) -> Iterator[str]:
        in_group = self.settings[group]
        if group != "retry":
            yield from (setting_text(in_group, name) for name in in_group.values)
            return
        retry = call_retry(in_group.values)
        if retry.never:
            yield with_layers_text(in_group, RETRY_STRATEGY, "off")
            yield "a call that fails fails the job"
            return
        # Show the strategy only if a layer other than the default chose it.
        strategy = with_layers_text(in_group, RETRY_STRATEGY, "fixed_delay")
        yield from [strategy] if strategy != "fixed_delay" else []
        yield from (setting_text(in_group, name) for name in in_group.values if name != RETRY_STRATEGY)
        waits = self.async_
        yield delay_of(retry, timeout=waits.timeout if waits is not None else "0 ms")

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return names_joined(self.output, place, column)

    def describe(self, plan: Declared) -> str:
        function = plan.functions.get(self.function)
        text = f"{self.function}({', '.join(a.column or shown_expression(a.constant or '') for a in self.arguments)})"
        if function is not None and function.kind in ("scalar", "async-scalar"):
            names = [column.name for column in self.output if column.side == "right"]
            return f"{', '.join(names) or '(unused)'} = {text}"
        return f"{'LEFT JOIN ' if self.join_type == 'left' else ''}LATERAL TABLE({text})"


def _with_values(settings: Settings, values: dict[str, Value]) -> Settings:
    return replace(settings, values=ordered(settings.specs, {**settings.values, **values}))


def delay_of(retry: CallRetry, *, timeout: str) -> str:
    """Describe how much later the last attempt of a failing call happens; the timeout covers all attempts.

    >>> delay_of(CallRetry(strategy="fixed_delay", fixed_delay="1 s", max_attempts=3), timeout="30 s")
    'a call that fails is made up to 3 more times, over 3 s'
    """
    longest, limit = retry.max_attempts * parse_duration(retry.fixed_delay), parse_duration(timeout)
    if not retry.max_attempts:
        return "a call that fails fails the job"
    times = "once more" if retry.max_attempts == 1 else f"up to {retry.max_attempts} more times"
    waits = f"a call that fails is made {times}, over {format_duration(longest)}"
    if limit and longest >= limit:
        return f"{waits}, but fails the job after its timeout, {format_duration(limit)}"
    return waits
