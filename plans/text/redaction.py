"""Takes secrets out of what people and machines read: values of environment variables, and passwords written in SQL.

A value is looked for as it stands, percent-encoded, in Base64 and as JSON and Python write it. One of fewer than four
characters would be found in any text, and where it was replaced would tell it, so the whole text is withheld; but for
numbers, which are ports.

>>> redacted("cannot reach db as me:s3cret", {"PW": "s3cret"})
'cannot reach db as me:${env:PW}'
>>> without_literals("'password' = 'hunter2', 'url' = 'x'")
"'password' = '*******', 'url' = 'x'"
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

SHORTEST = 4
_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_WORDS = r"(?:password|passwd|authorization|secret|token|credential|cookie|api-?key|jaas|user-?info)"
# The word is looked for once for each quote: if it stood between two repetitions, as often as it occurs.
_LITERAL = re.compile(rf"('(?=[^'\n]*?{_WORDS})[^'\n]*'\s*=\s*)('(?:[^']|'')*'|'.*)", re.IGNORECASE)
_IN_JSON = re.compile(rf'("(?=[^"\n]*?{_WORDS})[^"\n]*"\s*:\s*)("(?:[^"\\\n]|\\.)*"|".*)', re.IGNORECASE)


def variables_in(options: Mapping[str, str]) -> tuple[str, ...]:
    """The environment variables that options of a table refer to, in order."""
    return tuple(sorted({name for value in options.values() for name in _REFERENCE.findall(value)}))


def redacted(text: str, values: Mapping[str, str]) -> str:
    """``text`` with the values of the variables, by name, replaced by references to them."""
    found: dict[str, str] = {}
    for name in sorted(values, reverse=True):
        value = values[name]
        if value.strip() and len(value) < SHORTEST:
            if value in text and not value.isdecimal():
                return f"(withheld, since it may hold the value of ${{env:{name}}})"
        else:
            found |= dict.fromkeys(_forms(value), name)
    if not found:
        return text
    longest_first = "|".join(re.escape(form) for form in sorted(found, key=len, reverse=True))
    return re.sub(longest_first, lambda match: f"${{env:{found[match[0]]}}}", text)


def _forms(value: str) -> Iterator[str]:
    """``value`` as messages may write it."""
    if not value.strip():
        return
    data = value.encode(errors="surrogateescape")
    yield value
    if value.strip() != value:
        yield value.strip()
    for encoded in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), encoded)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    # What stands before it shifts its bytes: of each third of the cases, the characters that are its own alone.
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        own = coded[(0, 2, 3)[shift] : len(coded) - ((shift + len(data)) % 3 > 0)]
        if len(own) >= SHORTEST:
            yield own
            yield own.replace("+", "-").replace("/", "_")


def without_literals(sql: str) -> str:
    """SQL with stars for the values of options that look like secrets, references aside; every place stays its own."""
    return _LITERAL.sub(lambda match: match[1] + _starred(match[2]), sql)


def without_json_literals(text: str) -> str:
    """The text of a plan with stars for the values of options that look like secrets, references aside."""
    return _IN_JSON.sub(lambda match: match[1] + _starred(match[2]), text)


def _starred(literal: str) -> str:
    mark = literal[0]
    is_closed = len(literal) > 1 and literal.endswith(mark)
    inner = literal[1:-1] if is_closed else literal[1:]
    if _REFERENCE.fullmatch(inner):
        return literal
    return mark + re.sub(r"[^\n]", "*", inner) + (mark if is_closed else "")
