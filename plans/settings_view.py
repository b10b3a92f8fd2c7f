"""The settings of an operator as one list, whatever operator it is: what runs, who set it, and what each layer said.

Read off the plan document: a state entry has a ``ttl`` and an ``origin``, and so has every group of settings, so a new
kind of operator or setting shows up by itself. Knows neither words nor pictures.

>>> from plans.model import Join
>>> entry = StateEntry(index=0, name="leftState", input="o", ttl="3 d", origin={"config": "1 h", "hint": "1 d"})
>>> join = Join(id="j", inputs=(), join_type="inner", keys=(), condition=None, state=(entry,), output=(), changelog=())
>>> [(s.path, s.value, s.set_by) for s in settings_in(join)]
[('j.state.leftState.ttl', '3 d', 'edit')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plans.document import operator_document
from plans.model import Operator, StateEntry
from plans.operator_settings import settings_of
from plans.setting_layers import EDIT, Specs
from plans.setting_values import shown
from plans.states import source, state_of

__all__ = ["Setting", "settings_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: ``path`` is what ``hintplan set`` takes, ``layers`` what each layer said, weakest first.

    ``group`` is the state or the group it belongs to, ``input`` the input whose rows a state keeps (else empty).
    ``only_choice`` tells that there is no other value.
    """

    path: str
    group: str
    name: str
    value: str
    set_by: str
    layers: tuple[tuple[str, str], ...]
    input: str = ""
    only_choice: bool = False

    @property
    def is_state(self) -> bool:
        """Whether this is the TTL of a state."""
        return ".state." in self.path and self.name == "ttl"


def settings_in(operator: Operator) -> tuple[Setting, ...]:
    """All settings of ``operator`` in the order of the plan; none if it has nothing to set."""
    document = operator_document(operator)
    states = (_state(operator.id, entry) for entry in state_of(operator))
    specs = {name: settings.specs for name, settings in settings_of(operator).items()}
    groups = (
        setting
        for name, value in document.items()
        if isinstance(value, dict) and "origin" in value
        for setting in _group(operator.id, name, value, specs.get(name, {}))
    )
    return (*states, *groups)


def _state(operator_id: str, entry: StateEntry) -> Setting:
    return Setting(
        path=f"{operator_id}.state.{entry.name}.ttl",
        group=entry.name,
        name="ttl",
        value=entry.ttl,
        set_by=source(entry),
        layers=tuple(entry.origin.items()),
        input=entry.input,
    )


def _group(operator_id: str, group: str, document: Mapping[str, Any], specs: Specs) -> Iterator[Setting]:
    origin: Mapping[str, Mapping[str, Any]] = document["origin"]
    for name, value in document.items():
        if name == "origin":
            continue
        layers = [(layer, said[name]) for layer, said in origin.items() if name in said]
        default = specs[name].default if name in specs else None
        by, top = layers[-1] if layers else ("default", default)
        yield Setting(
            path=f"{operator_id}.{group}.{name}",
            group=group,
            name=name,
            value=shown(value),
            set_by=by if value == top else EDIT,
            layers=tuple((layer, shown(said)) for layer, said in layers),
            only_choice=name in specs and len(specs[name].choices) == 1,
        )
