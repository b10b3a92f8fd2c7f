"""One difference between two plans, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.effects import Effect

if TYPE_CHECKING:
    from hintplan.plans.evidence.cost import Cost

Kind = Literal["~", "+", "-", "-/+"]
Subject = Literal["setting", "origin", "table", "function", "operator", "reason"]


@frozen
class Change:
    """One difference, under ``path``.

    ``kind`` is ``~`` changed, ``+`` added, ``-`` removed, or ``-/+`` replaced, which makes the operator's state
    unreadable. A summary counts changes by ``subject`` and ``name``: settings, tables, functions and operators, but not
    reasons. ``setting`` is the path that ``hintplan set`` takes. ``operator`` is the operator's id in the newer plan
    that has it. ``note`` names the layer that set the value, or describes the object. ``layers`` has the value of each
    layer now, and ``reason`` the reason that the newer plan records. ``reason_for`` is the old value if the older plan
    has the same reason for it, so that the reason was not given for the new value. ``follows`` is the path of the
    change that caused this one. ``cost`` is the cost of another TTL, if the observations of a run were given.
    """

    kind: Kind
    subject: Subject
    name: str
    path: str
    effect: Effect
    before: str | None = None
    after: str | None = None
    note: str = ""
    setting: str | None = None
    operator: str | None = None
    layers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    reason_for: str | None = None
    follows: str | None = None
    cost: Cost | None = None

    @property
    def reason_label(self) -> str:
        """The words before the reason, with the value that it was given for if that is not the new one."""
        return "reason" if self.reason_for is None else f"reason (for {self.reason_for})"

    @property
    def keeps_state(self) -> bool:
        """True if the new plan can use the state that the old plan wrote."""
        return self.effect.level not in ("drop", "incompatible")
