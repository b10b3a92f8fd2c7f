"""The state entries of stateful operators, and their only setting, the TTL (FLIP-292, FLIP-373).

>>> entry = StateEntry(index=0, name="leftState", input="o", ttl="3 d", origin={"config": "1 h", "hint": "1 d"})
>>> source(entry), who_set(entry)
('edit', 'edit · hint 1 d · config 1 h')
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.frozen import frozen
from hintplan.plans.settings.effects import TTL as TTL_EFFECT
from hintplan.plans.settings.layers import Settings, set_by
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.text import who_set_setting
from hintplan.plans.text.read_only import read_only

STATE_TTL = "table.exec.state.ttl"
DEFAULT_STATE_TTL = "0 ms"
STATE_LAYERS = ("default", "config", "hint")
"""The layers that may set a TTL, weakest first; a TTL that differs from the strongest of them is a plan edit."""

TTL = Setting(
    name="ttl",
    kind="duration",
    default=DEFAULT_STATE_TTL,
    description="How long a row is kept after its last write; 0 ms keeps it forever.",
    effect=TTL_EFFECT,
    config=STATE_TTL,
    hint="STATE_TTL",
)


@frozen
class StateEntry:
    """One state of a stateful operator (FLIP-292): ``ttl`` is in force, ``origin`` has the value of each layer.

    ``ttl`` and the values of ``origin`` are durations in canonical form (``3 d``; ``0 ms`` never expires). ``origin``
    has the keys ``default``, ``config`` and ``hint`` for layers that set a value. A ``ttl`` that differs from the
    strongest of them is a plan edit. ``input`` is the name of the input in the query.
    """

    index: int
    name: str
    input: str
    ttl: str
    origin: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", read_only(self.origin))


def entry_settings(entry: StateEntry) -> Settings:
    """Return the setting of the entry as a group."""
    origin = {layer: {"ttl": entry.origin[layer]} for layer in STATE_LAYERS if layer in entry.origin}
    return Settings(specs={"ttl": TTL}, values={"ttl": entry.ttl}, origin=origin)


def source(entry: StateEntry) -> str:
    """Return the layer of the TTL in force: the strongest that sets it, or ``edit`` if the value differs."""
    return set_by(entry_settings(entry), "ttl")


def who_set(entry: StateEntry) -> str:
    """Return the layer of the TTL, then the values of weaker layers, such as ``edit · hint 1 d · config 1 h``."""
    return who_set_setting(entry_settings(entry), "ttl", spoken=lambda value: spoken_ttl(str(value)))


def spoken_ttl(ttl: str) -> str:
    """Return the TTL for people: ``never`` for a state that does not expire; an invalid duration is unchanged.

    >>> spoken_ttl("0 ms"), spoken_ttl("3 d")
    ('never', '3 d')
    """
    try:
        return "never" if parse_duration(ttl) == 0 else ttl
    except DurationError:
        return ttl
