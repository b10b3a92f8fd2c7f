"""Functions and the operators that call them as JSON values and back, and the settings of calls as groups.

>>> argument_document(Argument(column="city")), argument_document(Argument(constant="'$'"))
('city', {'constant': "'$'"})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plans.declarations.tables import Column, Function
from plans.operators import Argument, Correlate
from plans.operators.lookup_document import output_document, read_output
from plans.settings.calls import CALL_GROUPS, CALL_SETTINGS
from plans.settings.groups import CallRetry, CallSettings, Value
from plans.settings.layers import Settings, group_document, read_group

__all__ = [
    "argument_document",
    "call_groups",
    "correlate_document",
    "function_document",
    "read_correlate",
    "read_function",
    "typed_call",
    "with_call_groups",
]

Json = dict[str, Any]

# An operator does not say of what kind its function is; both kinds have the same settings, under other keys of config.
_SPECS = CALL_SETTINGS["async-table"]


def function_document(function: Function) -> Json:
    """One function; all of it is a fact."""
    return {
        "class": function.class_name,
        "language": function.language,
        "kind": function.kind,
        "arguments": list(function.arguments),
        "output": [{"name": column.name, "type": column.type} for column in function.output],
    }


def read_function(document: Json) -> Function:
    """Build the function from well-formed JSON values."""
    return Function(
        class_name=document["class"],
        language=document["language"],
        kind=document["kind"],
        arguments=tuple(document["arguments"]),
        output=tuple(Column(**column) for column in document["output"]),
    )


def call_groups(operator: Correlate) -> dict[str, Settings]:
    """The groups of settings that the operator has; none if its function is synchronous."""
    found: dict[str, Settings] = {}
    if (waits := operator.async_) is not None:
        values: dict[str, Value] = {"buffer-capacity": waits.buffer_capacity, "timeout": waits.timeout}
        found["async"] = Settings(specs=_SPECS["async"], values=values, origin=waits.origin)
    if (retry := operator.retry) is not None:
        values = {
            "retry-strategy": retry.strategy,
            "fixed-delay": retry.fixed_delay,
            "max-attempts": retry.max_attempts,
        }
        found["retry"] = Settings(specs=_SPECS["retry"], values=values, origin=retry.origin)
    return found


def typed_call(groups: Mapping[str, Settings]) -> tuple[CallSettings | None, CallRetry | None]:
    """The groups as an operator holds them."""
    return (
        _async(groups["async"]) if "async" in groups else None,
        _retry(groups["retry"]) if "retry" in groups else None,
    )


def with_call_groups(operator: Correlate, groups: Mapping[str, Settings]) -> Correlate:
    """The operator with these groups of settings instead of its own."""
    waits, retry = typed_call(groups)
    return replace(operator, async_=waits, retry=retry)


def correlate_document(operator: Correlate) -> Json:
    """All keys of the operator but ``id``, ``op`` and ``inputs``."""
    groups = call_groups(operator)
    document: Json = {
        "function": operator.function,
        "join-type": operator.join_type,
        "arguments": [argument_document(argument) for argument in operator.arguments],
        "output": output_document(operator.output),
    }
    for group in CALL_GROUPS:
        document[group] = group_document(groups[group]) if group in groups else None
    return document


def argument_document(argument: Argument) -> Any:
    """A column by its name, a literal as an object."""
    return argument.column if argument.column is not None else {"constant": argument.constant}


def read_correlate(document: Json) -> Correlate:
    """Build the operator from well-formed JSON values; durations are normalised."""
    waits, retry = typed_call(
        {group: read_group(_SPECS[group], document[group]) for group in CALL_GROUPS if document[group] is not None}
    )
    return Correlate(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        function=document["function"],
        join_type=document["join-type"],
        arguments=tuple(Argument(column=a) if isinstance(a, str) else Argument(**a) for a in document["arguments"]),
        output=read_output(document["output"]),
        async_=waits,
        retry=retry,
    )


def _async(settings: Settings) -> CallSettings:
    values: Mapping[str, Any] = settings.values
    return CallSettings(buffer_capacity=values["buffer-capacity"], timeout=values["timeout"], origin=settings.origin)


def _retry(settings: Settings) -> CallRetry:
    values: Mapping[str, Any] = settings.values
    return CallRetry(
        strategy=values["retry-strategy"],
        fixed_delay=values["fixed-delay"],
        max_attempts=values["max-attempts"],
        origin=settings.origin,
    )
