"""Rules on waiting: retries that cannot help or finish, asynchronous calls that are none, caches that keep nothing.

>>> list(capacity_one(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.declarations.durations import format_duration, parse_duration
from plans.edit.edit import set_value
from plans.lint.rule import Finding, Fix
from plans.model.plan import Plan
from plans.operators import Correlate, LookupJoin
from plans.settings.lookup import CACHE, PARTIAL

_EXPIRIES = (f"{PARTIAL}expire-after-write", f"{PARTIAL}expire-after-access")

__all__ = ["cache_without_time", "capacity_one", "delay_above_timeout", "retry_with_full_cache"]


def retry_with_full_cache(plan: Plan) -> Iterator[Finding]:
    """A lookup that looks again in a cache that has the whole table."""
    for operator in plan.operators:
        if isinstance(operator, LookupJoin) and operator.retry is not None and operator.cache.values[CACHE] == "FULL":
            path = f"{operator.id}.retry"
            yield Finding(
                path=f"operators.{path}",
                message="the lookup retries, but its FULL cache holds the whole table: what it lacks, no retry finds",
                fix=Fix(change=lambda plan, path=path: set_value(plan, path, "off")[0]),  # type: ignore[misc]
            )


def delay_above_timeout(plan: Plan) -> Iterator[Finding]:
    """Retries that take longer than the timeout which covers them all, even if each call answers at once."""
    for operator in plan.operators:
        found: tuple[int, str, str] | None = None
        if isinstance(operator, LookupJoin) and operator.retry is not None:
            # A deferred retry waits in state, and has the timeout for each attempt alone; a sync lookup has none.
            if operator.async_.enabled and operator.retry.mode == "inline":
                found = operator.retry.max_attempts, operator.retry.fixed_delay, operator.async_.timeout
        elif isinstance(operator, Correlate) and operator.async_ is not None and operator.retry is not None:
            attempts = operator.retry.max_attempts if operator.retry.strategy == "fixed_delay" else 0
            found = attempts, operator.retry.fixed_delay, operator.async_.timeout
        if found is None:
            continue
        attempts, delay, timeout = found
        longest, limit = attempts * parse_duration(delay), parse_duration(timeout)
        if limit and longest > limit:
            yield Finding(
                path=f"operators.{operator.id}.retry.max-attempts",
                message=f"{attempts} attempts {delay} apart take up to {format_duration(longest)}, but the timeout, "
                f"{timeout}, covers all of them: the job fails before the last",
            )


def capacity_one(plan: Plan) -> Iterator[Finding]:
    """An asynchronous operator that has one call in flight."""
    for operator in plan.operators:
        if isinstance(operator, LookupJoin) and operator.async_.enabled and operator.async_.capacity == 1:
            yield _one(f"operators.{operator.id}.async.capacity", "lookup")
        if isinstance(operator, Correlate) and operator.async_ is not None and operator.async_.buffer_capacity == 1:
            yield _one(f"operators.{operator.id}.async.buffer-capacity", "call")


def cache_without_time(plan: Plan) -> Iterator[Finding]:
    """A PARTIAL cache whose rows expire at once: 0 is no time there, while a TTL of 0 is all time."""
    for operator in plan.operators:
        if not isinstance(operator, LookupJoin) or operator.cache.values[CACHE] != "PARTIAL":
            continue
        for name in _EXPIRIES:
            value = operator.cache.values.get(name)
            if isinstance(value, str) and parse_duration(value) == 0:
                yield Finding(
                    path=f"operators.{operator.id}.cache.{name}",
                    message="0 ms is no time at all here, unlike as a state's TTL: rows expire as they come, and "
                    "nothing is cached",
                )


def _one(path: str, what: str) -> Finding:
    return Finding(path=path, message=f"asynchronous, but with one {what} in flight it waits for each in turn")
