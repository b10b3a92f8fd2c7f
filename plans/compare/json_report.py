"""Renders a list of changes as JSON values for scripts, in the form that ``diff.schema.json`` describes.

>>> changes_json(())["different"]
False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import changes_summary, legend, worst_level

_KINDS = {"~": "changed", "+": "added", "-": "removed", "-/+": "replaced"}
_AS_IT_IS = ("subject", "path", "setting", "operator", "before", "after", "note", "layers", "reason", "follows")


def changes_json(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the changes, their effects and their summary as JSON values."""
    return {
        "format": "hintplan-diff-1",
        "different": bool(changes),
        "effect": worst_level(changes),
        "keeps-state": all(change.keeps_state for change in changes),
        "summary": changes_summary(changes),
        "effects": {level: number for level, number, _ in legend(changes)},
        "changes": [
            {
                "kind": _KINDS[change.kind],
                **{name: getattr(change, name) for name in _AS_IT_IS},
                "reason-given-for": change.reason_for,
                "effect": change.effect.level,
                "verdict": change.effect.text,
                "because": change.effect.because,
                "keeps-state": change.keeps_state,
                **({} if change.cost is None else {"cost": change.cost.json()}),
            }
            for change in changes
        ],
    }
