"""The specification of table lookups: their identity, how they wait, and whether their rows wait in state."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.operators.asking.kind import Alike, AskingKind, Retries, Waits
from hintplan.plans.operators.asking.lookup_check import check
from hintplan.plans.operators.asking.lookup_settings import Lookup, parks_rows, resettled, with_retry, with_setting
from hintplan.plans.operators.spec.declared import Declared
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.lookup import GROUPS, LOOKUP_GROUPS


def _alike(lookup: Lookup) -> Alike:
    # A constant may be the condition of only one reader, so lookups with equal columns count as the same requests.
    columns = tuple(key for key in lookup.keys if key.left is not None)
    return Alike(target=lookup.table, key=columns or tuple(lookup.keys))


def _waits(lookup: Lookup) -> Waits | None:
    waits, retry = lookup.async_, lookup.retry
    if not waits.enabled:
        return None
    # With deferred retries, rows wait in state, and the timeout covers each attempt alone.
    retries = None
    if retry is not None and retry.mode == "inline":
        retries = Retries(attempts=retry.max_attempts, delay=retry.fixed_delay, timeout=waits.timeout)
    return Waits(capacity=waits.capacity, capacity_name="capacity", retries=retries)


def _keys(lookup: Lookup, plan: Declared) -> Mapping[str, Group]:
    return {group.name: group for group in LOOKUP_GROUPS}


def _settable(lookup: Lookup) -> tuple[str, ...]:
    return GROUPS


def _idle(lookup: Lookup) -> str:
    return f"'{lookup.id}' has nothing to set"


LOOKUPS = AskingKind(
    question="lookup",
    alike=_alike,
    alike_text="looks {} up by the same columns",
    waits=_waits,
    parks_rows=parks_rows,
    keys=_keys,
    settable=_settable,
    idle=_idle,
    with_setting=with_setting,
    with_retry=with_retry,
    resettled=resettled,
    check=check,
)
