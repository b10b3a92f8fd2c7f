"""One difference of two plans, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hintplan.plans.settings.effects import Effect

Kind = Literal["~", "+", "-", "-/+"]
Subject = Literal["setting", "origin", "table", "function", "operator", "reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference, under ``path``.

    ``kind`` is ``~`` changed, ``+`` added, ``-`` removed, or ``-/+`` replaced: what it kept cannot be read any more.
    ``subject`` is what a summary counts, by ``name``: a setting, table, function or operator, but no reason.
    ``setting`` is the path that ``set`` takes, ``operator`` the id in the newer plan that has it. ``note`` says who set
    it or what it is, ``layers`` what each layer asks for now, ``reason`` what the newer plan says of it, and
    ``follows`` the path whose change it comes from.
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
    follows: str | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether state written by the old plan can still be used."""
        return self.effect.level not in ("drop", "incompatible")
