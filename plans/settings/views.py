"""Groups of settings as the runtime reads them: what runs, under typed names. Durations are canonical text.

>>> viewed(RetrySettings, {"fixed-delay": "10 s", "max-attempts": 3, "mode": "inline"}).max_attempts
3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from hintplan.plans.settings.calls import NO_RETRY, RETRY_STRATEGY

OutputMode = Literal["ordered", "allow_unordered"]
RetryMode = Literal["inline", "deferred"]
Values = Mapping[str, Any]
View = TypeVar("View")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSettings:
    """Whether the output of an operator is kept for later readers, and at which of Spark's storage levels."""

    enabled: bool
    storage_level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSettings:
    """Whether a lookup waits for one row after the other, or for up to ``capacity`` at once (FLIP-234).

    ``timeout`` is a duration that covers all attempts of a row; ``0 ms`` waits forever.
    """

    enabled: bool
    output_mode: OutputMode
    capacity: int
    timeout: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """How a row that found nothing is looked up again: up to ``max_attempts`` more times, ``fixed_delay`` apart.

    ``mode`` says where it waits: ``inline`` holds up the rows behind it, ``deferred`` parks it in state.
    """

    fixed_delay: str
    max_attempts: int
    mode: RetryMode


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How many calls of an asynchronous function may wait at once, and how long each may take (FLIP-498).

    ``timeout`` is a duration that covers all attempts of a call; ``0 ms`` waits forever.
    """

    buffer_capacity: int
    timeout: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetry:
    """How a call that failed is made again: up to ``max_attempts`` more times, ``fixed_delay`` apart.

    With the strategy ``no_retry`` it is not, and the other settings have no effect.
    """

    strategy: Literal["fixed_delay", "no_retry"]
    fixed_delay: str
    max_attempts: int

    @property
    def never(self) -> bool:
        """Whether a call that failed is not made again."""
        return self.strategy == NO_RETRY


def viewed(cls: type[View], values: Values, **renamed: str) -> View:
    """``values`` as ``cls`` has them: each field is the setting of its name, or else of that in ``renamed``."""
    names: Mapping[str, str] = {field.name: field.name.replace("_", "-") for field in fields(cls)} | renamed  # type: ignore[arg-type]
    return cls(**{field: values[name] for field, name in names.items()})


def call_retry(values: Values) -> CallRetry:
    """The group ``retry`` of a call."""
    return viewed(CallRetry, values, strategy=RETRY_STRATEGY)
