"""Calls of functions in words: what they do, with which settings, and how long a call that fails may take.

>>> retry = CallRetry(strategy="fixed_delay", fixed_delay="1 s", max_attempts=3, origin={})
>>> delay_of(retry, timeout="30 s")
'a call that fails is made up to 3 more times, over 3 s'
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.declarations.durations import format_duration, parse_duration
from plans.operators import Correlate
from plans.settings.groups import CallRetry
from plans.settings.layers import Settings
from plans.settings.text import labelled, marked

__all__ = ["call_parts", "delay_of", "describe_call"]


def describe_call(call: Correlate, kind: str) -> str:
    """What the operator does, in the words of SQL; a scalar function gives a column."""
    text = f"{call.function}({', '.join(a.column or a.constant or '' for a in call.arguments)})"
    if kind in ("scalar", "async-scalar"):
        names = [column.name for column in call.output if column.side == "right"]
        return f"{', '.join(names) or '(unused)'} = {text}"
    return f"{'LEFT JOIN ' if call.join_type == 'left' else ''}LATERAL TABLE({text})"


def call_parts(call: Correlate, group: str, settings: Settings) -> Iterator[str]:
    """The settings of a group one by one, and what they amount to."""
    if group == "async":
        yield from (labelled(settings, name) for name in settings.values)
    elif settings.values["retry-strategy"] == "no_retry":
        yield marked(settings, "retry-strategy", "off")
        yield "a call that fails fails the job"
    else:
        # The strategy is worth a word only where somebody chose it.
        strategy = marked(settings, "retry-strategy", "fixed_delay")
        yield from [strategy] if strategy != "fixed_delay" else []
        yield from (labelled(settings, name) for name in settings.values if name != "retry-strategy")
        if call.retry is not None:
            yield delay_of(call.retry, timeout=call.async_.timeout if call.async_ is not None else "0 ms")


def delay_of(retry: CallRetry, *, timeout: str) -> str:
    """How much later the last attempt of a call that fails is made; the timeout covers all attempts."""
    longest, limit = retry.max_attempts * parse_duration(retry.fixed_delay), parse_duration(timeout)
    if not retry.max_attempts:
        return "a call that fails fails the job"
    times = "once more" if retry.max_attempts == 1 else f"up to {retry.max_attempts} more times"
    waits = f"a call that fails is made {times}, over {format_duration(longest)}"
    if limit and longest >= limit:
        return f"{waits}, but fails the job after its timeout, {format_duration(limit)}"
    return waits
