"""The state entries of stateful operators, and their one setting, the TTL (FLIP-292, FLIP-373).

>>> entry = StateEntry(index=0, name="leftState", input="o", ttl="3 d", origin={"config": "1 h", "hint": "1 d"})
>>> source(entry), who_set(entry)
('edit', 'edit · hint 1 d · config 1 h')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.settings.effects import TTL as TTL_EFFECT
from hintplan.plans.settings.layers import Settings, set_by
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.text import who_set_setting
from hintplan.plans.text.read_only import read_only

STATE_TTL = "table.exec.state.ttl"
DEFAULT_STATE_TTL = "0 ms"
STATE_LAYERS = ("default", "config", "hint")
"""Who may ask for a TTL, weakest first; a TTL that differs from the last that spoke is a plan edit."""

TTL = Setting(
    name="ttl",
    kind="duration",
    default=DEFAULT_STATE_TTL,
    description="How long a row is kept after its last write; 0 ms keeps it forever.",
    effect=TTL_EFFECT,
    config=STATE_TTL,
    hint="STATE_TTL",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """One state of a stateful operator (FLIP-292): ``ttl`` runs, ``origin`` says what each layer asked for.

    ``ttl`` and the values of ``origin`` are durations in canonical spelling (``3 d``; ``0 ms`` never expires).
    ``origin`` has the keys ``default``, ``config`` and ``hint``, as far as that layer spoke; a ``ttl`` that differs
    from the topmost of them is a plan edit. ``input`` names the input as the query does.
    """

    index: int
    name: str
    input: str
    ttl: str
    origin: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", read_only(self.origin))


def entry_settings(entry: StateEntry) -> Settings:
    """The setting of the entry as a group."""
    origin = {layer: {"ttl": entry.origin[layer]} for layer in STATE_LAYERS if layer in entry.origin}
    return Settings(specs={"ttl": TTL}, values={"ttl": entry.ttl}, origin=origin)


def source(entry: StateEntry) -> str:
    """Who set the TTL that runs: the strongest layer that spoke, or ``edit`` if the value differs from it."""
    return set_by(entry_settings(entry), "ttl")


def who_set(entry: StateEntry) -> str:
    """Who set the TTL, then what the weaker layers said, such as ``edit · hint 1 d · config 1 h``."""
    return who_set_setting(entry_settings(entry), "ttl", spoken=lambda value: spoken_ttl(str(value)))


def spoken_ttl(ttl: str) -> str:
    """Return the TTL as people read it: ``never`` for a state that does not expire; a bad duration as it stands.

    >>> spoken_ttl("0 ms"), spoken_ttl("3 d")
    ('never', '3 d')
    """
    try:
        return "never" if parse_duration(ttl) == 0 else ttl
    except DurationError:
        return ttl
