"""The groups of settings of every operator that has some, whatever its kind, but for state TTLs.

A lookup join has ``async``, ``retry`` and ``cache``; an operator that calls an asynchronous function has ``async`` and
``retry``; an aggregate has ``phases``. Diff, explain, edit and digest go through this module.

>>> call = Correlate(id="correlate_f", inputs=("scan_t",), function="f", join_type="inner", arguments=(), output=(),
...     async_=None, retry=None)
>>> group_names(call), settings_of(call)
(('async', 'retry'), {})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from plans.operators import Aggregate, Correlate, LookupJoin, Operator, Settable
from plans.operators.call_document import call_groups, with_call_groups
from plans.operators.lookup_document import lookup_groups, with_lookup_groups
from plans.settings.calls import CALL_GROUPS
from plans.settings.layers import Settings
from plans.settings.lookup import GROUPS
from plans.settings.phases import PHASES, phase_groups, with_phase_groups

__all__ = ["group_names", "settings_of", "with_settings"]


def group_names(operator: Operator) -> tuple[str, ...]:
    """The groups that an operator of this kind can have, in the order of a plan."""
    if not isinstance(operator, Settable):
        return ()
    match operator:
        case LookupJoin():
            return GROUPS
        case Correlate():
            return CALL_GROUPS
        case Aggregate():
            return (PHASES,)
        case _:
            assert_never(operator)


def settings_of(operator: Operator) -> Mapping[str, Settings]:
    """The groups that the operator has, by name."""
    if not isinstance(operator, Settable):
        return {}
    match operator:
        case LookupJoin():
            return lookup_groups(operator)
        case Correlate():
            return call_groups(operator)
        case Aggregate():
            return phase_groups(operator)
        case _:
            assert_never(operator)


def with_settings(operator: Operator, groups: Mapping[str, Settings]) -> Operator:
    """The operator with these groups instead of its own."""
    if not isinstance(operator, Settable):
        return operator
    match operator:
        case LookupJoin():
            return with_lookup_groups(operator, groups)
        case Correlate():
            return with_call_groups(operator, groups)
        case Aggregate():
            return with_phase_groups(operator, groups)
        case _:
            assert_never(operator)
