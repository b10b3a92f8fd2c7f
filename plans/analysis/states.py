"""Checks the state entries of stateful operators: that they are complete, and that TTL and origin are valid."""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration, same_duration
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Stateful
from hintplan.plans.settings.origin_checks import update_origins_hint
from hintplan.plans.settings.state import DEFAULT_STATE_TTL, STATE_LAYERS, STATE_TTL, StateEntry
from hintplan.plans.text.names import did_you_mean


def check_states(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every problem of the state entries of ``plan``."""
    followers: list[tuple[str, StateEntry]] = []
    for operator in plan.operators:
        if not isinstance(operator, Stateful):
            continue
        path = f"{operator.path}.state"
        if plan.mode == "batch":
            if operator.state:
                yield Diagnostic(message="a batch plan keeps no state", path=path, hint="write []")
            continue
        yield from _check_indexes(operator, path)
        for position, entry in enumerate(operator.state):
            unique = sum(other.name == entry.name for other in operator.state) == 1
            here = f"{path}.{entry.name}" if unique else f"{path}[{position}]"
            if operator.has_ttl(entry.name) == (entry.settings is None):
                yield _ttl_problem(operator, entry, here)
                continue
            if entry.settings is None:
                continue
            bad = [*_check_durations(entry, here), *_check_layers(entry, here)]
            yield from bad
            if not bad:
                followers.append((here, entry))
    config = plan.config.get(STATE_TTL)
    if config is None or _is_duration(config):
        yield from _check_config_layer(config, followers)


def _ttl_problem(operator: Stateful, entry: StateEntry, path: str) -> Diagnostic:
    """Return the problem of a state with a TTL that goes by the watermark, or of another state without a TTL."""
    if entry.settings is None:
        hint = f'write "ttl": "{DEFAULT_STATE_TTL}" and its origin'
        return Diagnostic(message=f"the state '{entry.name}' has no 'ttl'", path=path, hint=hint)
    message = f"'{entry.name}' has no TTL: it keeps rows {operator.kept_until(entry.name)}"
    return Diagnostic(message=message, path=f"{path}.ttl", hint="remove 'ttl' and 'origin'")


def _check_indexes(operator: Stateful, path: str) -> Iterator[Diagnostic]:
    op, state, state_names = operator.op, operator.state, operator.state_names
    wanted = ", ".join(f"{index} '{name}'" for index, name in enumerate(state_names))
    expected = f"{'an' if op == 'aggregate' else 'a'} {op} has {f'the states {wanted}' if wanted else 'no state'}"
    indexes = [entry.index for entry in state]
    for position, entry in enumerate(state):
        here = f"{path}[{position}]"
        if entry.index in indexes[:position]:
            message = f"state index {entry.index} is given twice"
            yield Diagnostic(message=message, path=f"{here}.index", hint=expected)
        elif entry.index >= len(state_names):
            message = f"there is no state index {entry.index}"
            yield Diagnostic(message=message, path=f"{here}.index", hint=expected)
        elif entry.name != state_names[entry.index]:
            message = f"the state with index {entry.index} is called '{state_names[entry.index]}', found '{entry.name}'"
            yield Diagnostic(message=message, path=f"{here}.name", hint=expected)
    for index, name in enumerate(state_names):
        if index not in indexes:
            message = f"the entry with state index {index}, '{name}', is missing"
            yield Diagnostic(message=message, path=path, hint=expected)
    if sorted(indexes) == list(range(len(state_names))) != indexes:
        yield Diagnostic(message="the entries must be in the order of their indexes", path=path, hint=expected)


def _origin(entry: StateEntry) -> dict[str, str]:
    """Return the TTL of each layer, even of an unknown one."""
    layers = {} if entry.settings is None else entry.settings.origin
    return {layer: str(values["ttl"]) for layer, values in layers.items() if "ttl" in values}


def _check_durations(entry: StateEntry, path: str) -> Iterator[Diagnostic]:
    texts = {"ttl": entry.ttl or ""} | {f"origin.{layer}": text for layer, text in _origin(entry).items()}
    for where, text in texts.items():
        try:
            parse_duration(text, require_unit=True)
        except DurationError as error:
            message = f"bad duration '{text}': {error.reason}"
            yield Diagnostic(message=message, path=f"{path}.{where}", hint=error.hint)


def _check_layers(entry: StateEntry, path: str) -> Iterator[Diagnostic]:
    here, origin = f"{path}.origin", _origin(entry)
    for layer in origin:
        if layer not in STATE_LAYERS:
            hint = did_you_mean(layer, STATE_LAYERS, what="layers")
            yield Diagnostic(message=f"unknown layer '{layer}'", path=f"{here}.{layer}", hint=hint)
    default = origin.get("default")
    if default is not None and "config" in origin:
        message = "'default' is only recorded when 'config' is not"
        yield Diagnostic(message=message, path=f"{here}.default", hint="remove it")
    elif default is not None and not same_duration(default, DEFAULT_STATE_TTL):
        message = f"the default is '{DEFAULT_STATE_TTL}', found '{default}'"
        yield Diagnostic(message=message, path=f"{here}.default", hint="edit 'ttl' instead")
    elif default is None and "config" not in origin:
        hint = f'write "default": "{DEFAULT_STATE_TTL}"'
        yield Diagnostic(message="without 'config', the origin records 'default'", path=here, hint=hint)


def _check_config_layer(config: str | None, entries: list[tuple[str, StateEntry]]) -> Iterator[Diagnostic]:
    """Yield a problem if origins disagree with the config; a manual edit is reported once, not once per entry."""
    apart = [(path, entry) for path, entry in entries if not _same_layer(_origin(entry).get("config"), config)]
    if not apart:
        return
    path, entry = apart[0]
    recorded = _origin(entry).get("config")
    origin = f"the origin of '{path.removeprefix('operators.')}' " + (
        f"says '{recorded}'" if recorded is not None else "has no 'config'"
    )
    current = f"is '{config}'" if config is not None else "is absent"
    more = f", and {len(apart) - 1} more differ" if len(apart) > 1 else ""
    intended = format_duration(parse_duration(config if config is not None else recorded or DEFAULT_STATE_TTL))
    yield Diagnostic(
        message=f"config.{STATE_TTL} {current}, but {origin}{more}",
        path=f"config.{STATE_TTL}" if len(apart) > 1 else f"{path}.origin",
        hint=update_origins_hint(f"config.{STATE_TTL}", intended),
    )


def _same_layer(recorded: str | None, config: str | None) -> bool:
    if recorded is None or config is None:
        return recorded is config
    return same_duration(recorded, config)


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except DurationError:
        return False
    return True
