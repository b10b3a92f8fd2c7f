"""Text from a plan as Markdown that a review page shows as it is: no markup, no links, no mentions, no HTML.

Only in code spans does GitHub leave ``@name``, ``#1`` and addresses alone, so whatever comes from a plan stands in one.

>>> print(code("a|`b`"))
`` a\\|`b` ``
"""

from __future__ import annotations

import re

from hintplan.plans.text.terminal import one_line

_MAX = 400


def code(text: str, limit: int = _MAX) -> str:
    """``text`` as a code span that may stand in a table; nothing if it is empty."""
    text = one_line(text).replace("|", "\\|")
    if not text:
        return ""
    if len(text) > limit:
        text = text[: limit - 1].rstrip("\\") + "…"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * (longest + 1)
    # A blank on both sides is not shown.
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{blank}{text}{blank}{marks}"


def fence(text: str, language: str) -> str:
    """A code block of ``language``, whatever runs of backticks are in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"
