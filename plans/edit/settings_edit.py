"""Edits of the groups of settings of operators, with all their consequences.

    lookup_rates.async.capacity     lookup_rates.retry.max-attempts     lookup_rates.cache.lookup.partial-cache.max-rows
    lookup_rates.retry='3 x 10 s'   correlate_locate.retry=off          correlate_locate.async.buffer-capacity

An edit keeps the origin. After an edit of config or table options, :func:`with_resolved_settings` updates the settings
that follow them. The kind of the operator defines further consequences of an edit.

>>> from hintplan.plans.settings.lookup import SETTINGS
>>> parse_retry("3 x 10 s", SETTINGS["retry"])
(3, '10 s')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.errors import PlanError
from hintplan.plans.format.document import operator_document
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Specs
from hintplan.plans.settings.setting import Setting, SettingError, Value, parse_value
from hintplan.plans.text.names import did_you_mean, nearest

_RETRY_FORM = "write '<attempts> x <delay>', such as '3 x 10 s', or off"


def settable(operator: Operator) -> list[str]:
    """Return the forms of the paths that can be set, for messages.

    Other groups are in :mod:`hintplan.plans.edit.layered_edit`.
    """
    groups = operator.settable if isinstance(operator, Requesting) else ()
    forms = [f"{operator.id}.{group}.<setting>" for group in groups]
    return [*forms, f"{operator.id}.retry"] if "retry" in groups else forms


def group_names(operator: Operator) -> tuple[str, ...]:
    """Return the groups that all operators of this kind have, in the order of a plan."""
    return tuple(group.name for group in operator.groups if not group.optional)


def set_setting(plan: Plan, path: str, operator: Requesting, rest: str, value: str) -> Plan:
    """Set the setting at ``rest`` of ``operator``; raise PlanError if it does not exist, or for a bad value."""
    group, _, name = rest.partition(".")
    if rest == "retry":
        edited = _with_retry(operator, plan, path, value)
    elif group not in group_names(operator) or not name:
        raise _no_setting(operator, path, rest)
    elif name == "origin" or name.startswith("origin."):
        layers = ", ".join(_group(operator, group).layers[:-1])
        message = f"an origin records what {layers} and {_group(operator, group).layers[-1]} set; it cannot be edited"
        first = next(iter(_specs(operator, group)))
        raise PlanError(message, path=path, hint=f"set {operator.id}.{group}.{first} and the like")
    elif name not in (specs := _specs(operator, group)):
        hint = did_you_mean(name, specs, what="settings")
        raise PlanError(f"'{group}' has no setting '{name}'", path=path, hint=hint)
    else:
        edited = operator.with_setting(plan, path, group, name, _parsed(path, specs[name], value))
    return plan.replaced(edited)


def with_resolved_settings(plan: Plan) -> Plan:
    """Resolve the settings of every operator again from their layers; edits stay edits.

    Settings that depend on a wrong edge, table or function stay unchanged, because the edit may be part of a repair.
    """
    tables = {operator.table for operator in plan.operators if isinstance(operator, Requesting)} - {None}
    is_sound = tables <= plan.tables.keys() and not any(check_graph(plan))
    kinds = output_kinds(plan) if is_sound else None
    return replace(plan, operators=tuple(_resettled(operator, plan, kinds) for operator in plan.operators))


def _resettled(operator: Operator, plan: Plan, kinds: Mapping[str, RowKinds] | None) -> Operator:
    if not isinstance(operator, Requesting):
        return operator
    insert_only = None if kinds is None else all(kinds[name] == INSERT_ONLY for name in operator.inputs)
    return operator.resettled(plan, insert_only)


def parse_retry(text: str, specs: Specs) -> tuple[Value, Value]:
    """Return the attempts and the delay of ``3 x 10 s``; raise SettingError for any other text."""
    match = re.fullmatch(r"\s*(\S+)\s*[xX\N{MULTIPLICATION SIGN}]\s*(.+)", text)
    if match is None:
        raise SettingError(f"expected attempts and delay, found '{text}'", hint=_RETRY_FORM)
    return parse_value(specs["max-attempts"], match[1]), parse_value(specs["fixed-delay"], match[2])


def _with_retry(operator: Requesting, plan: Plan, path: str, text: str) -> Requesting:
    if not settable(operator):
        raise _no_setting(operator, path, "retry")
    try:
        wanted = None if text.strip().lower() == "off" else parse_retry(text, _specs(operator, "retry"))
    except SettingError as error:
        raise PlanError(str(error), path=path, hint=error.hint) from error
    return operator.with_retry(plan, wanted)


def _group(operator: Operator, name: str) -> Group:
    group = operator.group(name)
    assert group is not None
    return group


def _specs(operator: Operator, group: str) -> Specs:
    return _group(operator, group).settings


def _parsed(path: str, spec: Setting, text: str) -> Value:
    try:
        parsed = parse_value(spec, text)
    except SettingError as error:
        raise PlanError(f"'{spec.name}': {error}", path=path, hint=error.hint) from error
    if spec.kind == "duration" and text.strip().isdigit() and int(text):
        message = f"'{spec.name}': the duration '{text}' has no unit"
        raise PlanError(message, path=path, hint="write its unit: ms, s, min, h or d")
    return parsed


def _no_setting(operator: Requesting, path: str, rest: str) -> PlanError:
    forms = settable(operator)
    can = f"can be set: {', '.join(forms)}" if forms else f"'{operator.id}' has nothing to set"
    head = rest.partition(".")[0]
    if head in operator_document(operator) and head not in group_names(operator):
        message = f"'{head}' of an operator is a fact of the query"
        return PlanError(message, path=path, hint=f"change the SQL and compile it again; {can}")
    if not forms:
        return PlanError(operator.nothing_to_set, path=path, hint=can)
    paths = [
        f"{operator.id}.{group}.{name}" for group, settings in operator.settings.items() for name in settings.values
    ]
    similar = nearest(f"{operator.id}.{rest}", paths)
    hint = f"did you mean '{similar}'? {can}" if similar else can
    return PlanError(f"'{rest}' is not a setting" if rest else "not a setting", path=path, hint=hint)
