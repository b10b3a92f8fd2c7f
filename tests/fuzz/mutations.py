"""Mutations of plans and scripts, chosen by dice: of values, keys and structure, of text and of bytes.

>>> from random import Random
>>> mutated_text(Random(1), '{"a": [1, 2]}') != b'{"a": [1, 2]}'
True
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

__all__ = ["HOSTILE_WORDS", "mutated_script", "mutated_text"]

HOSTILE_WORDS = (
    "", " ", "\n", "\x00", "\x1b[31mred\x1b[0m", "\u202e", "é", "😀", "\ud800", "null", "NaN", "1e999", "0", "-1",
    "3 d", "9"*400, "x"*70_000, "${env:HOME}", "../../etc/passwd", "a\nb", "'", '"', "`", "<script>", "%s%n", "{}",
    "[", "*", "3 days", "0 ms", "1 ms", "-5 s", "true", "DISK_ONLY", "join_o_c", "scan_o", "__kind", "digests",
    "operators", "SELECT 1", "reflect('a','b')", "id + 1", "("*3000, "1 d"*99, "\ufeff", "\r\n", "\u2028",
    "id = 1 OR TRUE",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**70), 10**30, 1.5, -0.0, 1e308, [], {}, [[]], [None],
    {"": None}, ["a", "a"], {"id": "x"}, [{}]*30,
)  # fmt: skip


def mutated_text(dice: Random, text: str) -> bytes:
    """``text``, which is JSON, with one to three things changed, in its structure, its text or its bytes."""
    shape = dice.random()
    if shape < 0.7:
        document = json.loads(text)
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            _mutate(dice, document)
        text = json.dumps(document, indent=dice.choice((None, 2)), ensure_ascii=dice.random() < 0.5)
        if shape < 0.08:
            text = _with_duplicate_key(dice, text)
        return text.encode("utf-8", errors=dice.choice(("replace", "surrogatepass")))
    if shape < 0.85:
        for _ in range(dice.randint(1, 3)):
            start = dice.randrange(len(text) + 1)
            end = min(len(text), start + dice.choice((0, 1, 5, 40)))
            text = text[:start] + dice.choice((*HOSTILE_WORDS, *'"\\{}[],:', "\\u", "\\ud800", "//")) + text[end:]
        return text.encode("utf-8", errors="replace")
    if shape < 0.9:
        deep = dice.choice((100, 3000, 200_000))
        place = text.index(":") + 1
        return (text[:place] + "[" * deep + "]" * deep + "," + text[place:]).encode()
    if shape < 0.93:
        return text.encode(dice.choice(("utf-16", "utf-32", "utf-8-sig", "utf-16-le")))
    data = bytearray(text.encode())
    for _ in range(dice.randint(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.choice((len(data), len(data), dice.randrange(len(data)), 0))])


def _mutate(dice: Random, document: Any) -> None:
    """Change one place below ``document``, which changes in itself."""
    places = list(_places(document))
    if not places:
        return
    holder, key = dice.choice(places)
    shape = dice.random()
    if shape < 0.35:
        value = holder[key]
        if isinstance(value, str) and dice.random() < 0.5:
            cut = dice.randrange(len(value) + 1)
            holder[key] = value[:cut] + dice.choice(HOSTILE_WORDS) + value[cut:]
        else:
            holder[key] = dice.choice((*HOSTILE_WORDS, *_VALUES))
    elif shape < 0.5:
        holder[key] = _copy(dice.choice(_VALUES))
    elif shape < 0.62:
        del holder[key]
    elif shape < 0.75:  # the value of another place, of whatever type
        other, where = dice.choice(places)
        holder[key] = _copy(other[where])
    elif isinstance(holder, dict):
        holder[dice.choice((*HOSTILE_WORDS, str(key) + "x", str(key)[:-1]))] = _copy(holder[key])
        if dice.random() < 0.5:
            del holder[key]
    else:
        holder.insert(key, _copy(holder[key]))
        if dice.random() < 0.2:
            holder.reverse()


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 5000:
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for key, inner in items:
            found.append((holder, key))
            waiting.append(inner)
    return found


def _with_duplicate_key(dice: Random, text: str) -> str:
    keys = list(re.finditer(r'"[^"\\]+":', text))
    if not keys:
        return text
    match = dice.choice(keys)
    return text[: match.start()] + match[0] + dice.choice(("1,", "null,", '"x",', "{},")) + text[match.start() :]


_TOKEN = re.compile(r"'(?:[^']|'')*'|/\*.*?\*/|`[^`]*`|\w+|\s+|.", re.DOTALL)
_SQL = (
    "'", '"', "`", "/*", "*/", "/*+", "--", ";", ";;", "(", ")", "((((", ",", ".", "..", "*", "\x00", "\u00a0", "é",
    "😀", "\ud800", "\u202e", "NULL", "SELECT", "FROM", "JOIN", "ON", "WHERE", "GROUP BY", "HAVING", "UNION ALL",
    "IN (SELECT", "EXISTS (", "CASE WHEN", "END", "CAST(", "AS BIGINT)", "INTERVAL '1' DAY", "DATE '2020-13-45'",
    "TIMESTAMP 'x'", "1e999999", "9"*300, "0x", "X'0'", "1..2", "1.e", "::", "||", ">>", "<<", "<=>", "!", "@", "#",
    "$", "${a}", "?", ":x", "[1]", "{", "}", "\\", "/*+ STATE_TTL('o'='1 d') */", "/*+ STATE_TTL(o) */",
    "/*+ STATE_TTL('o'='1 x' */", "/*+ LOOKUP() */", "/*+ */", "OPTIONS('a'='b')", "ROLLUP (", "GROUPING SETS ((",
    "FOR SYSTEM_TIME AS OF", "LATERAL TABLE(", "OVER (", "WITH x AS (", "SET 'a' = 'b';", "CREATE TABLE", "NOT",
    "BETWEEN", "LIKE 'a' ESCAPE", "ROW(", "ARRAY[", "MAP[", "INTERSECT ALL", "VALUES", "UNNEST(",
)  # fmt: skip


def mutated_script(dice: Random, script: str) -> str:
    """``script`` with tokens left out, doubled, swapped or put in."""
    tokens = _TOKEN.findall(script)
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        place, other = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        shape = dice.random()
        if shape < 0.25:
            del tokens[place : place + dice.choice((1, 1, 2, 8))]
        elif shape < 0.4:
            tokens.insert(place, tokens[place])
        elif shape < 0.55:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif shape < 0.9:
            tokens.insert(place, dice.choice(_SQL))
        else:
            cut = dice.randrange(len(tokens[place]) + 1)
            tokens[place] = tokens[place][:cut] + dice.choice(("", "'", "\n", "é", "*/")) + tokens[place][cut:]
        if not tokens:
            return ""
    text = "".join(tokens)
    return text[: dice.randrange(len(text) + 1)] if dice.random() < 0.08 else text
