"""The limits of one compilation. Without them, a small script could cause work without bound.

The environment variable ``HINTPLAN_LIMITS`` raises them. Scripts, plans and files cannot. This module owns the limits
and their names; the callers count.

>>> limits({"HINTPLAN_LIMITS": "statements=20000, columns=1000000"})["statements"]
20000
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hintplan.plans.errors import SqlError
from hintplan.plans.text.names import did_you_mean

VARIABLE = "HINTPLAN_LIMITS"
LIMITS: Mapping[str, int] = {
    "characters": 10_000_000,
    "statements": 5_000,
    "tokens": 500_000,
    "operators": 10_000,
    "columns": 200_000,
    "expressions": 300_000,
}
"""The default limits. A view counts each time it is read."""


def limits(environment: Mapping[str, str]) -> dict[str, int]:
    """Return the limits, overridden by the variable in ``environment``. Raise SqlError for a wrong value."""
    values = dict(LIMITS)
    for part in environment.get(VARIABLE, "").split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        if not part.strip():
            continue
        if name not in LIMITS:
            raise SqlError(f"{VARIABLE}: there is no limit '{name}'", hint=did_you_mean(name, LIMITS, what="limits"))
        if not (number.isascii() and number.isdigit()) or len(number) > 12:
            raise SqlError(
                f"{VARIABLE}: '{name}' needs a number, found '{number}'", hint=f"write {name}={LIMITS[name]}"
            )
        values[name] = int(number)
    return values


@dataclass(slots=True, kw_only=True)
class Budget:
    """The limits of one compilation, and the amount spent of each."""

    limits: Mapping[str, int] = field(default_factory=lambda: limits(os.environ))
    spent: Counter[str] = field(default_factory=Counter)

    def exceeded(self, name: str, number: int) -> tuple[str, str] | None:
        """Spend ``number`` of the limit ``name``. Return a message and a hint if it is exceeded, else None."""
        self.spent[name] += number
        limit = self.limits[name]
        if self.spent[name] <= limit:
            return None
        counted = "" if name in ("characters", "statements") else ", where a view counts each time it is read"
        message = f"more than {limit:,} {name} are to be compiled{counted}"
        return message, f"split the script; or whoever compiles it allows more: {VARIABLE}={name}={limit * 2}"
