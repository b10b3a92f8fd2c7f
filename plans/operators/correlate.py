"""``correlate``: calls a user's function for every row (FLIP-498)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.fields import Expression, Name, OneInput, OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.asking.calls import CALLS
from hintplan.plans.operators.spec.columns import check_argument, check_output, output_columns, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order, unchanged
from hintplan.plans.operators.spec.output import JoinOutput
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.calls import CALL_GROUPS, RETRY_STRATEGY
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.text import setting_text, with_layers_text
from hintplan.plans.settings.views import CallRetry, CallSettings, call_retry, settings_view
from hintplan.plans.text.names import did_you_mean


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
class Correlate(WithSettings):
    """Calls ``function`` for every input row and joins the row with the result of the call; row kinds pass through.

    A ``left`` correlate keeps a row whose call returned nothing, padded with NULL. A scalar function returns one row,
    and its correlate is always ``inner``. Only calls of an asynchronous function have settings.
    """

    id: OperatorId
    inputs: OneInput
    function: Annotated[Name, "The function to call."]
    join_type: Annotated[
        Literal["inner", "left"], "Whether rows whose call returned nothing are dropped or padded with NULL."
    ]
    arguments: Annotated[tuple[Argument, ...], "What the function is called with: input columns by name, or literals."]
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


def _columns(call: Correlate, inputs: Sequence[Columns], plan: Declared) -> Columns:
    return output_columns(call.output)


def _check(call: Correlate, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    left = inputs[0]
    function = plan.functions.get(call.function)
    if function is None:
        hint = did_you_mean(call.function, plan.functions, what="functions")
        yield Diagnostic(message=f"there is no function '{call.function}'", path=f"{path}.function", hint=hint)
        return
    if function.kind == "aggregate":
        message = f"'{call.function}' is an aggregate function, which is called for groups of rows, not for each"
        yield Diagnostic(message=message, path=f"{path}.function", hint="call it in an aggregate operator")
        return
    wanted = function.arguments
    if len(call.arguments) != len(wanted):
        message = f"'{call.function}' takes {len(wanted)} arguments ({', '.join(wanted)}), found {len(call.arguments)}"
        yield Diagnostic(message=message, path=f"{path}.arguments")
        return
    for index, (argument, declared_type) in enumerate(zip(call.arguments, wanted, strict=True)):
        if argument.column is not None:
            here = f"{path}.arguments[{index}]"
            yield from check_argument(call.function, argument.column, declared_type, types_of(left), here)
    yield from check_output(call.output, left, function.output, f"function '{call.function}'", path)


def _expressions(call: Correlate) -> Iterator[tuple[str, str | None]]:
    yield from ((f"arguments[{index}]", argument.constant) for index, argument in enumerate(call.arguments))


def _describe(call: Correlate, plan: Declared) -> str:
    function = plan.functions.get(call.function)
    text = f"{call.function}({', '.join(a.column or shown_expression(a.constant or '') for a in call.arguments)})"
    if function is not None and function.kind in ("scalar", "async-scalar"):
        names = [column.name for column in call.output if column.side == "right"]
        return f"{', '.join(names) or '(unused)'} = {text}"
    return f"{'LEFT JOIN ' if call.join_type == 'left' else ''}LATERAL TABLE({text})"


def _settings_text(settings: Mapping[str, Settings], group: str) -> Iterator[str]:
    in_group = settings[group]
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
    waits = settings_view(CallSettings, settings["async"].values) if "async" in settings else None
    yield delay_of(retry, timeout=waits.timeout if waits is not None else "0 ms")


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


CORRELATE = OperatorKind(
    op="correlate",
    cls=Correlate,
    title="call",
    description="Calls a function for every input row, and joins the row with what the call returns; row kinds pass "
    "through.",
    groups=(*CALL_GROUPS, CACHED),
    functions=lambda call: (call.function,),
    asks=CALLS,
    columns=_columns,
    check=_check,
    row_kinds=unchanged,
    reads_order=any_order,
    expressions=_expressions,
    settings_text=_settings_text,
    describe=_describe,
)
