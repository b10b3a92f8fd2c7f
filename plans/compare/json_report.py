"""A list of changes as JSON values: the form for scripts, described by ``diff.schema.json``.

>>> report_json(())["different"]
False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plans.compare.change import Change
from plans.compare.report import legend, summary, worst_level

__all__ = ["report_json"]

_KINDS = {"~": "changed", "+": "added", "-": "removed", "-/+": "replaced"}


def report_json(changes: Sequence[Change]) -> dict[str, Any]:
    """The changes, their effects and their summary as JSON values."""
    return {
        "format": "hintplan-diff-1",
        "different": bool(changes),
        "effect": worst_level(changes),
        "keeps-state": all(change.keeps_state for change in changes),
        "summary": summary(changes),
        "effects": {level: number for level, number, _ in legend(changes)},
        "changes": [
            {
                "kind": _KINDS[change.kind],
                "subject": change.subject,
                "path": change.path,
                "setting": change.setting,
                "operator": change.operator,
                "before": change.before,
                "after": change.after,
                "note": change.note,
                "layers": dict(change.layers),
                "reason": change.reason,
                "follows": change.follows,
                "effect": change.effect.level,
                "verdict": change.effect.text,
                "because": change.effect.because,
                "keeps-state": change.keeps_state,
            }
            for change in changes
        ],
    }
