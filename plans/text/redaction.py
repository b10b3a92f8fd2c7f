"""Redaction of secrets in output: values of environment variables, and literal passwords in SQL.

A value is found literally, percent-encoded, in Base64, and in the notations of JSON and Python. A value of fewer than
four characters would occur in any text by chance, and its replacements would reveal it. A text that contains one is
withheld as a whole, unless the value is a number, such as a port.

>>> redact("cannot reach db as me:s3cret", {"PW": "s3cret"})
'cannot reach db as me:${env:PW}'
>>> without_literals("'password' = 'hunter2', 'url' = 'x'")
"'password' = '*******', 'url' = 'x'"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

SHORTEST = 4
_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_WORDS = r"(?:password|passwd|authorization|secret|token|credential|cookie|api-?key|jaas|user-?info)"
# A lookahead searches for the word once per quote; between two repetitions, it would be tried at every occurrence.
# They are compiled when they are used, which most commands do not.
_LITERAL = rf"(?i)('(?=[^'\n]*?{_WORDS})[^'\n]*'\s*=\s*)('(?:[^']|'')*'|'.*)"
_IN_JSON = rf'(?i)("(?=[^"\n]*?{_WORDS})[^"\n]*"\s*:\s*)("(?:[^"\\\n]|\\.)*"|".*)'


def variables_in(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted environment variables that the options of a table refer to."""
    return tuple(sorted({name for value in options.values() for name in _REFERENCE.findall(value)}))


def redact(text: str, values: Mapping[str, str]) -> str:
    """Replace the values of the variables in ``text`` by references to them; ``values`` maps names to values."""
    names_by_form: dict[str, str] = {}
    for name in sorted(values, reverse=True):
        value = values[name]
        if value.strip() and len(value) < SHORTEST:
            if value in text and not value.isdecimal():
                return f"(withheld, since it may hold the value of ${{env:{name}}})"
        else:
            names_by_form |= dict.fromkeys(_forms(value), name)
    if not names_by_form:
        return text
    longest_first = "|".join(re.escape(form) for form in sorted(names_by_form, key=len, reverse=True))
    return re.sub(longest_first, lambda match: f"${{env:{names_by_form[match[0]]}}}", text)


def _forms(value: str) -> Iterator[str]:
    """Yield the forms in which a message may contain ``value``."""
    if not value.strip():
        return
    # Most commands hide nothing, so they need not wait for these.
    import base64
    import json
    from urllib.parse import quote, quote_plus

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
    # Preceding text shifts the value's bytes. For each of three shifts, yield the characters of the value alone.
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        own = coded[(0, 2, 3)[shift] : len(coded) - ((shift + len(data)) % 3 > 0)]
        if len(own) >= SHORTEST:
            yield own
            yield own.replace("+", "-").replace("/", "_")


def without_literals(sql: str) -> str:
    """Replace the values of secret-looking options in SQL by stars, except references; all offsets stay the same."""
    return re.sub(_LITERAL, lambda match: match[1] + _starred(match[2]), sql)


def without_json_literals(text: str) -> str:
    """Replace the values of secret-looking options in the text of a plan by stars, except references."""
    return re.sub(_IN_JSON, lambda match: match[1] + _starred(match[2]), text)


def _starred(literal: str) -> str:
    mark = literal[0]
    is_closed = len(literal) > 1 and literal.endswith(mark)
    inner = literal[1:-1] if is_closed else literal[1:]
    if _REFERENCE.fullmatch(inner):
        return literal
    return mark + re.sub(r"[^\n]", "*", inner) + (mark if is_closed else "")
