"""The state entries of stateful operators, and their only setting, the TTL (FLIP-292, FLIP-373).

>>> settings = ttl_settings(config="1 h", hint="1 d", edit="3 d")
>>> entry = StateEntry(index=0, name="leftState", input="o", settings=settings)
>>> from hintplan.plans.settings.layers import set_by
>>> entry.ttl, set_by(entry.settings, "ttl")
('3 d', 'edit')
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.effects import SHORTER_TTL
from hintplan.plans.settings.effects import TTL as TTL_EFFECT
from hintplan.plans.settings.group import specs
from hintplan.plans.settings.layers import EDIT, Settings, layered
from hintplan.plans.settings.setting import Setting, Value, readable_value

STATE_TTL = "table.exec.state.ttl"
DEFAULT_STATE_TTL = "0 ms"
STATE_LAYERS = ("default", "config", "hint")
"""The layers that may set a TTL, weakest first; a TTL that differs from the strongest of them is a plan edit."""

TTL = Setting(
    name="ttl",
    kind="duration",
    default=DEFAULT_STATE_TTL,
    description="The time for which a row is kept after its last write; 0 ms keeps it forever.",
    effect=TTL_EFFECT,
    shortened=SHORTER_TTL,
    zero="never",
    config=STATE_TTL,
    hint="STATE_TTL",
)
STATE_SETTINGS = specs(TTL)


@frozen
class StateEntry:
    """One state of a stateful operator (FLIP-292); ``input`` is the name of the input in the query.

    A state without ``settings`` has no TTL: it keeps rows until the watermark has passed them.
    """

    index: int
    name: str
    input: str
    settings: Settings | None = None

    @property
    def ttl(self) -> str | None:
        """The TTL in force, in canonical form such as ``3 d``; ``0 ms`` never expires rows. None without a TTL."""
        return None if self.settings is None else str(self.settings.values["ttl"])


def ttl_settings(*, config: Value | None = None, hint: Value | None = None, edit: Value | None = None) -> Settings:
    """Return the TTL that the layers amount to; its origin has the default unless ``config`` replaces it."""
    ttls = {"config": config, "hint": hint, EDIT: edit}
    settings = layered(STATE_SETTINGS, {layer: {"ttl": ttl} for layer, ttl in ttls.items() if ttl is not None})
    if config is not None:
        return settings
    return replace(settings, origin={"default": {"ttl": DEFAULT_STATE_TTL}, **settings.origin})


def with_ttl(entry: StateEntry, ttl: str) -> StateEntry:
    """Return the entry with another TTL in force; its origin stays. An entry without a TTL stays unchanged."""
    if entry.settings is None:
        return entry
    return replace(entry, settings=replace(entry.settings, values={"ttl": ttl}))


UNTIL_WATERMARK = "until the watermark passes the window"
UNTIL_CLOCK = "until the window ends"
"""The lifetime of rows of a window, whose state has no TTL."""
UNTIL_ROW_PASSED = "until the watermark passes the row"
"""The lifetime of rows that wait for their own time."""


def readable_ttl(ttl: Value) -> str:
    """Return the TTL for people: ``never`` for a state that does not expire; an invalid duration is unchanged.

    >>> readable_ttl("0 ms"), readable_ttl("3 d")
    ('never', '3 d')
    """
    return readable_value(TTL, ttl)
