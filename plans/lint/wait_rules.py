"""Rules on waiting: futile or endless retries, asynchronous calls one at a time, and caches that keep nothing.

>>> list(capacity_one(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.edit.edit import set_value
from hintplan.plans.lint.rule import Finding, Fix
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.operators.requests.requesting import Waits
from hintplan.plans.settings.lookup import CACHE, CACHING, PARTIAL, RETRY

_EXPIRIES = (f"{PARTIAL}expire-after-write", f"{PARTIAL}expire-after-access")


def retry_with_full_cache(plan: Plan) -> Iterator[Finding]:
    """Report lookups that retry although their FULL cache holds the whole table."""
    for operator in plan.operators:
        if _cache(operator) == "FULL" and RETRY.name in operator.settings:
            path = f"{operator.id}.{RETRY.name}"
            yield Finding(
                path=f"operators.{path}",
                message="the lookup retries, but its FULL cache holds the whole table: no retry finds a missing row",
                fix=Fix(change=lambda plan, path=path: set_value(plan, path, "off")[0]),  # type: ignore[misc]
            )


def delay_above_timeout(plan: Plan) -> Iterator[Finding]:
    """Report retries that take longer than the timeout for all attempts, even if each call answers at once."""
    for operator, waits in _waiting(plan):
        if waits.retries is None:
            continue
        attempts, delay, timeout = waits.retries.attempts, waits.retries.delay, waits.retries.timeout
        longest, limit = attempts * parse_duration(delay), parse_duration(timeout)
        if limit and longest > limit:
            yield Finding(
                path=f"operators.{operator.id}.retry.max-attempts",
                message=f"{attempts} attempts {delay} apart take up to {format_duration(longest)}, but the timeout, "
                f"{timeout}, covers all of them: the job fails before the last attempt",
            )


def capacity_one(plan: Plan) -> Iterator[Finding]:
    """Report asynchronous operators with only one call in flight."""
    for operator, waits in _waiting(plan):
        if waits.capacity == 1:
            yield Finding(
                path=f"operators.{operator.id}.async.{waits.capacity_name}",
                message=f"asynchronous, but with one {operator.request_noun} in flight it waits for each in turn",
            )


def cache_without_time(plan: Plan) -> Iterator[Finding]:
    """Report PARTIAL caches whose rows expire at once: 0 is no time there, whereas a TTL of 0 means forever."""
    for operator in plan.operators:
        if _cache(operator) != "PARTIAL":
            continue
        for name in _EXPIRIES:
            value = operator.settings[CACHING.name].values.get(name)
            if isinstance(value, str) and parse_duration(value) == 0:
                yield Finding(
                    path=f"operators.{operator.id}.cache.{name}",
                    message="0 ms is no time here, although it means 'never' for a state's TTL: rows expire at once, "
                    "and nothing is cached",
                )


def _waiting(plan: Plan) -> Iterator[tuple[Requesting, Waits]]:
    """Yield the operators that wait for answers, each with its requests in flight."""
    for operator in plan.operators:
        if isinstance(operator, Requesting) and operator.waits is not None:
            yield operator, operator.waits


def _cache(operator: Operator) -> object:
    """Return the caching strategy of a lookup, or None for operators without one."""
    caching = operator.settings.get(CACHING.name)
    return None if caching is None else caching.values[CACHE]
