r"""Text of a plan as Markdown that review pages show literally: no markup, no links, no mentions, no HTML.

GitHub leaves ``@name``, ``#1`` and addresses alone only in code spans, so all text of a plan is in code spans.

>>> print(code("a|`b`"))
`` a\|`b` ``
"""

from __future__ import annotations

import re

from hintplan.plans.text.terminal import one_line

_MAX = 400


def code(text: str, limit: int = _MAX) -> str:
    """Return ``text`` as a code span that works in a table; an empty text if it is empty."""
    text = one_line(text).replace("|", "\\|")
    if not text:
        return ""
    if len(text) > limit:
        text = text[: limit - 1].rstrip("\\") + "…"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * (longest + 1)
    # Markdown strips a blank on both sides of a code span.
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{blank}{text}{blank}{marks}"


def fence(text: str, language: str) -> str:
    """Return a code block of ``language``, fenced by more backticks than ``text`` contains in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"
