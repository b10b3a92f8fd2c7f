"""Edits of a plan's settings: one value at a path, with all its consequences, and nothing else.

    join_o_c.state.leftState.ttl     config.<key>     tables.<table>.options.<option>     lookup_rates.async.capacity
    join_o_c.cached.enabled     aggregate_t.agg-phase-strategy

An edit of a TTL keeps its origin, which still records the values of default, config and hint. A new
``config.table.exec.state.ttl`` is written into every origin, and changes the TTL of entries that follow config.

>>> set_value(Plan(name="p"), "config.parallelism.default", "4")[0].config
{'parallelism.default': '4'}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration
from hintplan.plans.edit.layered_edit import layered_paths, set_layered
from hintplan.plans.edit.settings_edit import set_setting, settable, with_resolved_settings
from hintplan.plans.errors import PlanError
from hintplan.plans.format.document import operator_document
from hintplan.plans.model.config import KEYS, canonical_key, known_keys, normalise
from hintplan.plans.model.layered_groups import layered_groups, with_config_layers
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.reasons import with_reason, without_idle_reasons, without_outdated_reasons
from hintplan.plans.model.settings import group_called
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import edits_of, layers_of
from hintplan.plans.settings.state import STATE_TTL, StateEntry, ttl_settings, with_ttl
from hintplan.plans.text.names import did_you_mean


def set_value(plan: Plan, path: str, value: str, *, reason: str | None = None) -> tuple[Plan, tuple[Change, ...]]:
    """Set the setting at ``path``; return the new plan and the changes.

    Raise PlanError if there is no such setting, or if the value is invalid. The plan stores ``reason``. An empty text
    removes the old reason, and so does another value without a reason. A TTL that is set back to the value of its
    strongest layer is no longer an edit, and loses its reason.
    """
    head, _, below = path.removeprefix("operators.").partition(".")
    by_id = {operator.id: operator for operator in plan.operators}
    if path.startswith("config.") and "config" not in by_id:
        edited = _set_config(plan, path, below, value)
    elif path.startswith("tables.") and "tables" not in by_id:
        edited = _set_option(plan, path, below, value)
    elif path == "name":
        edited = replace(plan, name=_checked(path, lambda raw: normalise("pipeline.name", raw), value))
    elif head in by_id:
        edited = _set_in_operator(plan, path, by_id[head], below, value)
    elif path in ("format", "mode", "functions", "operators", "digests", "tables", "config"):
        raise PlanError(f"'{path}' cannot be set", path=path, hint=_settable(plan))
    elif path in ("source", "init", "reasons") or path.startswith("reasons."):
        hints = {"source": "it names the script", "init": "it names the script's init files"}
        hint = hints.get(path, "give a reason with --reason when setting a value")
        raise PlanError(f"'{path}' cannot be set", path=path, hint=hint)
    elif (key := canonical_key(path)) in KEYS and KEYS[key].in_config:
        message = f"'{path}' is a configuration key, and no path"
        raise PlanError(message, path=path, hint=f"write config.{path}={value or '...'}")
    else:
        editable = [o.id for o in plan.operators if o.state or settable(o) or plan.mode == "batch"]
        raise PlanError(f"there is no operator '{head}'", path=path, hint=_hint(head, editable, plan))
    edited = without_idle_reasons(edited)
    if reason is not None:
        edited = with_reason(edited, path, reason)
    else:
        edited = without_outdated_reasons(plan, edited)
    return edited, compare_plans(plan, edited)


def remove_value(plan: Plan, path: str) -> tuple[Plan, tuple[Change, ...]]:
    """Remove ``config.<key>`` or ``tables.<table>.options.<option>``; return the new plan and the changes.

    Settings that followed the removed value fall back to the layer below. Raise PlanError if the value does not exist
    or cannot be removed.
    """
    head, _, below = path.partition(".")
    if head == "config" and below:
        key = canonical_key(below)
        if key not in plan.config:
            hint = did_you_mean(key, plan.config, what="set") if plan.config else "nothing is set in config"
            raise PlanError(f"'{key}' is not set in config", path=path, hint=hint)
        kept = {name: value for name, value in plan.config.items() if name != key}
        edited = with_current_layers(replace(plan, config=kept))
    elif head == "tables":
        name, key = _table_option(plan, path, below)
        options = plan.tables[name].options
        if key not in options:
            hint = did_you_mean(key, options, what="options that are set")
            raise PlanError(f"table '{name}' has no option '{key}'", path=path, hint=hint)
        table = replace(plan.tables[name], options={k: v for k, v in options.items() if k != key})
        edited = replace(plan, tables={**plan.tables, name: table})
        edited = with_config_layers(with_resolved_settings(edited))
    else:
        hint = "can be removed: config.<key>, tables.<table>.options.<option>; anything else is set to another value"
        raise PlanError(f"'{path}' cannot be removed", path=path, hint=hint)
    edited = without_idle_reasons(edited)
    return edited, compare_plans(plan, edited)


def _set_config(plan: Plan, path: str, key: str, value: str) -> Plan:
    key = canonical_key(key)
    spec = KEYS.get(key)
    if spec is None or not spec.in_config:
        keys = [name for name in known_keys() if KEYS[name].in_config]
        raise PlanError(f"'{key}' cannot be set in config", path=path, hint=did_you_mean(key, keys, what="known keys"))
    text = _checked(path, lambda raw: normalise(key, raw, require_unit=True), value)
    return with_current_layers(replace(plan, config={**plan.config, key: text}))


def with_current_layers(plan: Plan) -> Plan:
    """Bring every origin in line with config and tables, and values with origins; edits stay edits."""
    config = plan.config.get(STATE_TTL)
    operators = (o.with_states(_with_config_layer(entry, config) for entry in o.state) for o in plan.operators)
    return with_config_layers(with_resolved_settings(replace(plan, operators=tuple(operators))))


def _with_config_layer(entry: StateEntry, config: str | None) -> StateEntry:
    if entry.settings is None:
        return entry
    layers = layers_of(entry.settings, "ttl")
    if layers.get("config") == config:
        return entry
    hint, edit = layers.get("hint"), edits_of(entry.settings).get("ttl")
    return replace(entry, settings=ttl_settings(config=config, hint=hint, edit=edit))


def _set_option(plan: Plan, path: str, rest: str, value: str) -> Plan:
    name, key = _table_option(plan, path, rest)
    table = plan.tables[name]
    edited = replace(plan, tables={**plan.tables, name: replace(table, options={**table.options, key: value})})
    return with_config_layers(with_resolved_settings(edited))


def _table_option(plan: Plan, path: str, rest: str) -> tuple[str, str]:
    """Return the table and the option that a path refers to; raise PlanError unless the option is free to edit."""
    # A table's name may contain dots.
    name = next((name for name in plan.tables if rest == name or rest.startswith(name + ".")), None)
    if name is None:
        wrong = rest.partition(".")[0]
        raise PlanError(f"there is no table '{wrong}'", path=path, hint=did_you_mean(wrong, plan.tables, what="tables"))
    field, _, key = rest[len(name) + 1 :].partition(".")
    if field != "options" or not key:
        message = f"'{field}' of a table is a fact of the query" if field and field != "options" else "not a setting"
        raise PlanError(
            message, path=path, hint=f"change the SQL and compile it again; can be set: tables.{name}.options.<option>"
        )
    if key == "connector":
        message = "'connector' is a fact: another connector may have other columns and row kinds"
        raise PlanError(message, path=path, hint="change the SQL and compile it again")
    return name, key


def _set_in_operator(plan: Plan, path: str, operator: Operator, rest: str, value: str) -> Plan:
    """Set ``rest``, a path inside ``operator``: a setting of a group, or the TTL of a state."""
    group_of_one = group_called(operator, rest)
    if group_of_one is not None:
        return set_layered(plan, path, operator, group_of_one, rest, value)
    name, _, setting = rest.partition(".")
    group = next((group for group in layered_groups(operator) if group.name == name), None)
    if group is not None:
        return set_layered(plan, path, operator, group, setting, value)
    if name == CACHED.name and operator.is_sink:
        message = f"'{operator.id}' is a sink: it has no result to cache"
        raise PlanError(message, path=path, hint=f"cache its input: {operator.inputs[0]}.cached.enabled")
    if isinstance(operator, Requesting):
        return set_setting(plan, path, operator, rest, value)
    return _set_state(plan, path, operator, rest, value)


def _set_state(plan: Plan, path: str, operator: Operator, rest: str, value: str) -> Plan:
    names = [entry.name for entry in operator.state]
    with_ttls = [entry.name for entry in operator.state if entry.settings is not None]
    paths = [*(f"{operator.id}.state.{name}.ttl" for name in with_ttls), *layered_paths(plan, operator)]
    can = f"can be set: {', '.join(paths)}" if paths else f"'{operator.id}' keeps no state and has nothing to set"
    field, _, below = rest.partition(".")
    if field in names:
        # Reports of differences omit "state" in paths, and users copy paths from them.
        field, below = "state", rest
    if field != "state":
        if field in operator_document(operator):
            message = f"'{field}' of an operator is a fact of the query"
            raise PlanError(message, path=path, hint=f"change the SQL and compile it again; {can}")
        message = f"unknown part '{field}'" if field else "not a setting"
        raise PlanError(message, path=path, hint=_near(rest, paths, operator, can))
    name, _, setting = below.partition(".")
    if name not in names:
        raise PlanError(f"there is no state '{name}'", path=path, hint=_near(rest, paths, operator, can))
    if name not in with_ttls:
        message = f"'{name}' has no TTL: it keeps rows {operator.kept_until(name)}"
        raise PlanError(message, path=path, hint="set the delay of the watermark to keep windows open for longer")
    if setting == "origin" or setting.startswith("origin."):
        message = "an origin records what default, config and hint set; it cannot be edited"
        hint = f"set {operator.id}.state.{name}.ttl, or change the hint and compile again"
        raise PlanError(message, path=path, hint=hint)
    if setting != "ttl":
        facts = ("index", "name", "input")
        message = f"'{setting}' of a state is a fact of the query" if setting in facts else f"unknown part '{setting}'"
        raise PlanError(message, path=path, hint=f"can be set: {operator.id}.state.{name}.ttl")
    ttl = _checked(path, lambda raw: format_duration(parse_duration(raw, require_unit=True)), value)
    entries = (with_ttl(entry, ttl) if entry.name == name else entry for entry in operator.state)
    return plan.replaced(operator.with_states(entries))


def _checked(path: str, parse: Callable[[str], str], value: str) -> str:
    try:
        return parse(value)
    except DurationError as error:
        raise PlanError(f"bad duration '{value}': {error.reason}", path=path, hint=error.hint) from error
    except ValueError as error:
        raise PlanError(str(error), path=path) from error


def _near(rest: str, paths: list[str], operator: Operator, can: str) -> str:
    suggestion = did_you_mean(f"{operator.id}.{rest}", paths) if paths else ""
    return f"{suggestion} {can}" if suggestion.startswith("did") else can


def _hint(name: str, known: list[str], plan: Plan) -> str:
    suggestion = did_you_mean(name, known)
    return f"{suggestion} {_settable(plan)}" if suggestion.startswith("did") else _settable(plan)


def _settable(plan: Plan) -> str:
    paths = [f"{o.id}.state.{e.name}.ttl" for o in plan.operators for e in o.state if e.settings is not None]
    paths += [form for o in plan.operators for form in settable(o)]
    if plan.mode == "batch":
        paths.append("<operator>.cached.enabled")
    shown = [*paths[:6], *(["..."] if len(paths) > 6 else []), "config.<key>", "tables.<table>.options.<option>"]
    return f"can be set: {', '.join(shown)}"
