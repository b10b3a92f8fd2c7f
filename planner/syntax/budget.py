"""How much one compilation takes on at most: a small script can name work that grows without bound.

Whoever compiles can allow more, by the environment variable ``HINTPLAN_LIMITS``; no script, plan or file beside them
can. Owns the limits and their names, not where they are counted.

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
"""The defaults. A view counts each time it is read."""


def limits(environment: Mapping[str, str]) -> dict[str, int]:
    """Return the limits, with those that the variable of ``environment`` names; SqlError for a wrong value."""
    found = dict(LIMITS)
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
        found[name] = int(number)
    return found


@dataclass(slots=True, kw_only=True)
class Budget:
    """The limits of one compilation, and what it has spent of each."""

    limits: Mapping[str, int] = field(default_factory=lambda: limits(os.environ))
    spent: Counter[str] = field(default_factory=Counter)

    def exceeded(self, name: str, number: int) -> tuple[str, str] | None:
        """Spend ``number`` of the limit ``name``; the message and the hint if there is not as much left."""
        self.spent[name] += number
        limit = self.limits[name]
        if self.spent[name] <= limit:
            return None
        counted = "" if name in ("characters", "statements") else ", where a view counts each time it is read"
        message = f"more than {limit:,} {name} are to be compiled{counted}"
        return message, f"split the script; or whoever compiles it allows more: {VARIABLE}={name}={limit * 2}"
