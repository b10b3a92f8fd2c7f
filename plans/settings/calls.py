"""The settings of asynchronous function calls in two groups, ``async`` and ``retry``, as data (FLIP-498).

Table functions and scalar functions have the same settings under different keys, ``table.exec.async-table.*`` and
``table.exec.async-scalar.*``. Names and defaults are from the FLIP; differing names in Flink 2.3 are synonyms. A call
is attempted up to ``1 + max-attempts`` times.

>>> CONFIG_SYNONYMS["table.exec.async-table.max-retries"]
'table.exec.async-table.max-attempts'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.settings.effects import ATTEMPTS, IN_FLIGHT
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Setting

RETRY_STRATEGY, NO_RETRY = "retry-strategy", "no_retry"

_PREFIXES: Mapping[FunctionKind, str] = {
    "async-table": "table.exec.async-table",
    "async-scalar": "table.exec.async-scalar",
}

CALL_KINDS: Mapping[FunctionKind, str] = {
    "async-table": "asynchronous table",
    "async-scalar": "asynchronous scalar",
}
"""The kinds of functions whose calls have settings, in words."""

CALL_GROUPS = (
    Group(
        name="async",
        schema="call-async",
        description="The concurrency of calls of an asynchronous function.",
        layers=("default", "config"),
        absent="null",
        settings=specs(
            Setting(
                name="buffer-capacity",
                kind="int",
                minimum=1,
                maximum=100_000,
                default=10,
                description="The number of calls in flight.",
                effect=IN_FLIGHT,
            ),
            Setting(
                name="timeout",
                kind="duration",
                default="30 s",
                description="The time limit for all attempts of a call together; 0 ms waits forever.",
                effect=IN_FLIGHT,
            ),
        ),
    ),
    Group(
        name="retry",
        schema="call-retry",
        description="The strategy for failed calls.",
        layers=("default", "config"),
        absent="null",
        settings=specs(
            Setting(
                name=RETRY_STRATEGY,
                kind="choice",
                choices=("fixed_delay", NO_RETRY),
                default="fixed_delay",
                description="The retry strategy for failed calls; no_retry fails the job.",
                effect=ATTEMPTS,
            ),
            Setting(
                name="fixed-delay",
                kind="duration",
                default="10 s",
                description="The pause before each further attempt.",
                effect=ATTEMPTS,
            ),
            Setting(
                name="max-attempts",
                kind="int",
                maximum=10_000,
                default=3,
                description="The number of attempts after the first.",
                effect=ATTEMPTS,
            ),
        ),
    ),
)
"""The groups of operators that call functions; their configuration keys depend on the kind of the function."""

_RENAMED = {"max-concurrent-operations": "buffer-capacity", "retry-delay": "fixed-delay", "max-retries": "max-attempts"}

CONFIG_SYNONYMS: Mapping[str, str] = {
    f"{prefix}.{synonym}": f"{prefix}.{name}" for prefix in _PREFIXES.values() for synonym, name in _RENAMED.items()
}
"""Maps each key of Flink 2.3 that differs from the FLIP's to the FLIP's key."""


def is_async(kind: FunctionKind) -> bool:
    """Return True if calls of the kind are asynchronous, and so have settings."""
    return kind in _PREFIXES


def call_groups(kind: FunctionKind) -> tuple[Group, ...]:
    """Return the groups with the configuration keys of the kind; empty if it is synchronous."""
    if kind not in _PREFIXES:
        return ()
    return tuple(
        replace(
            group,
            settings=specs(*(replace(s, config=f"{_PREFIXES[kind]}.{s.name}") for s in group.settings.values())),
        )
        for group in CALL_GROUPS
    )


def resolved_call(kind: FunctionKind, config: Mapping[str, str]) -> dict[str, Settings]:
    """Return the settings that default and config amount to; empty if the kind is synchronous."""
    return {group.name: group.resolved(group.asked(config)) for group in call_groups(kind)}
