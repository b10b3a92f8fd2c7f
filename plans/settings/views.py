"""Groups of settings in the form that the runtime reads: the values in force as typed fields; durations are text.

>>> settings_view(RetrySettings, {"fixed-delay": "10 s", "max-attempts": 3, "mode": "inline"}).max_attempts
3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.calls import NO_RETRY, RETRY_STRATEGY

OutputMode = Literal["ordered", "allow_unordered"]
RetryMode = Literal["inline", "deferred"]
Values = Mapping[str, Any]
View = TypeVar("View")


@frozen
class CachedSettings:
    """The decision to keep the output of an operator for later readers, and Spark's storage level for it."""

    enabled: bool
    storage_level: str


@frozen
class AsyncSettings:
    """The concurrency of lookups: one row after the other, or up to ``capacity`` rows at once (FLIP-234).

    ``timeout`` is a duration that covers all attempts of a row; ``0 ms`` waits forever.
    """

    enabled: bool
    output_mode: OutputMode
    capacity: int
    timeout: str


@frozen
class RetrySettings:
    """The retries of a row without a match: up to ``max_attempts`` more lookups, ``fixed_delay`` apart.

    With the ``mode`` ``inline``, the row holds up the rows after it; with ``deferred``, it waits in state.
    """

    fixed_delay: str
    max_attempts: int
    mode: RetryMode


@frozen
class CallSettings:
    """The limits of asynchronous function calls: the number in flight, and the timeout of each (FLIP-498).

    ``timeout`` is a duration that covers all attempts of a call; ``0 ms`` waits forever.
    """

    buffer_capacity: int
    timeout: str


@frozen
class CallRetry:
    """The retries of a failed call: up to ``max_attempts`` more calls, ``fixed_delay`` apart.

    With the strategy ``no_retry`` there are none, and the other settings have no effect.
    """

    strategy: Literal["fixed_delay", "no_retry"]
    fixed_delay: str
    max_attempts: int

    @property
    def never(self) -> bool:
        """True if failed calls are not retried."""
        return self.strategy == NO_RETRY


def settings_view(cls: type[View], values: Values, **renamed: str) -> View:
    """Return ``values`` as a ``cls``: each field has the setting of its name, or of its name in ``renamed``."""
    names: Mapping[str, str] = {field.name: field.name.replace("_", "-") for field in fields(cls)} | renamed  # type: ignore[arg-type]
    return cls(**{field: values[name] for field, name in names.items()})


def call_retry(values: Values) -> CallRetry:
    """Return the typed settings of the group ``retry`` of a call."""
    return settings_view(CallRetry, values, strategy=RETRY_STRATEGY)
