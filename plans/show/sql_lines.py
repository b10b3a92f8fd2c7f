"""A SQL script as lines of HTML, with highlighted comments, hints, strings and keywords.

>>> list(sql_lines("SELECT 'a<b' -- why\\n"))
['<b class="k">SELECT</b> <span class="s">&#x27;a&lt;b&#x27;</span> <span class="c">-- why</span>']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from hintplan.plans.text.escapes import clean
from hintplan.plans.text.redaction import without_literals

_TOKEN = re.compile(
    r"(?P<h>/\*\+.*?(?:\*/|\Z))|(?P<c>/\*.*?(?:\*/|\Z)|--[^\n]*)|(?P<s>'(?:[^']|'')*(?:'|\Z))|(?P<k>\b[A-Z][A-Z_]+\b)",
    re.DOTALL,
)


def sql_lines(text: str) -> Iterator[str]:
    """Yield the markup of each line; unprintable characters are shown as escapes."""
    text = clean(without_literals(text).replace("\r\n", "\n").replace("\t", "    ")).removesuffix("\n")
    parts, at = [], 0
    for match in _TOKEN.finditer(text):
        parts.append(escape(text[at : match.start()]))
        tag, name = ("b" if match.lastgroup == "k" else "span"), match.lastgroup
        # A comment over several lines is marked in each line, because each line is an element of its own.
        lines = (f'<{tag} class="{name}">{escape(line)}</{tag}>' if line else "" for line in match[0].split("\n"))
        parts.append("\n".join(lines))
        at = match.end()
    yield from "".join([*parts, escape(text[at:])]).split("\n")
