"""Completions of SQL: statements, tables, columns, option and configuration keys, hints and their keys.

They come from patterns in the text, because an unfinished statement cannot be parsed. This module knows no terminal.

>>> names = Names(columns={"orders": ("id", "total")}, functions=("COUNT",))
>>> complete("SELECT o.", " FROM orders AS o", names)
(0, ('id', 'total'))
>>> complete("SET 'table.exec.st", "", names)
(13, ('table.exec.state.ttl',))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.frozen import frozen
from hintplan.plans.model.config import known_keys
from hintplan.plans.settings.lookup import SETTINGS

_WORDS = (
    "AND", "AS", "BETWEEN", "CASE", "CAST", "COUNT", "DISTINCT", "END", "EXISTS", "FOR SYSTEM_TIME AS OF", "FROM",
    "FULL", "GROUP BY", "HAVING", "IF NOT EXISTS", "IN", "INNER", "INSERT INTO", "INTERVAL", "IS NULL", "JOIN", "LEFT",
    "LIKE", "NOT", "NULL", "ON", "OR", "PRIMARY KEY", "RIGHT", "SELECT", "UNION ALL", "USING", "VALUES", "WHERE",
    "WITH",
)  # fmt: skip
_HINTS = ("STATE_TTL('", "LOOKUP('table'='")
_AFTER_TABLE = ("OPTIONS('",)
_LOOKUP_KEYS = ("table", *(s.hint for group in ("async", "retry") for s in SETTINGS[group].values() if s.hint))
_NO_ALIAS = {"ON", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "WHERE", "GROUP", "USING", "FOR", "UNION", "CROSS", "AS"}

_WORD = re.compile(r"[\w$]*\Z")
_QUOTED = re.compile(r"'(?P<word>[^']*)\Z")
_HINT = re.compile(r"/\*\+(?P<body>(?:(?!\*/).)*)\Z", re.DOTALL)
_TABLE_NEXT = re.compile(
    r"\b(?:FROM|JOIN|INTO|DESCRIBE|DESC|(?:DROP|ALTER|(?:UN)?CACHE|SHOW\s+CREATE)\s+(?:(?:TEMPORARY|LAZY)\s+)?"
    r"(?:TABLE|VIEW)(?:\s+IF\s+EXISTS)?)"
    r"\s+[\w$]*\Z",
    re.IGNORECASE,
)
_USED = re.compile(r"\b(?:FROM|JOIN|,)\s+`?(?P<table>[\w$]+)`?(?:\s+(?:AS\s+)?`?(?P<alias>[\w$]+)`?)?", re.IGNORECASE)
_QUALIFIED = re.compile(r"(?P<name>[\w$]+)`?\.(?P<word>[\w$]*)\Z")
_OPTION = re.compile(r"'(?P<key>[^']*)'\s*=\s*'(?P<value>[^']*)'")
_VALUE = re.compile(r"'(?P<key>[^']*)'\s*=\s*\Z")

Found = tuple[int, tuple[str, ...]]


@frozen
class Names:
    """The names in a session: the columns of each table and view, the functions, and the openings of statements."""

    columns: Mapping[str, tuple[str, ...]]
    functions: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()


def complete(before: str, after: str, names: Names) -> Found:
    """Return how many characters before the cursor to replace, and their replacements; none inside other text."""
    statement = before[_start(before) :]
    following = after.partition(";")[0]
    if hint := _HINT.search(statement):
        return _hint(hint["body"], statement, following)
    if statement.count("'") % 2:
        return _quoted(statement)
    if qualified := _QUALIFIED.search(statement):
        table = _used(statement + following).get(qualified["name"], qualified["name"])
        return _matching(qualified["word"], names.columns.get(table, ()))
    word = _word(statement)
    if statement.strip() == word:
        return _matching(word, names.statements)
    if not word and not statement.endswith((" ", "\n", "(", ",")):
        return 0, ()
    if _TABLE_NEXT.search(statement):
        return _matching(word, names.columns)
    used = dict.fromkeys(_used(statement + following).values())
    columns = [column for table in used for column in names.columns.get(table, ())]
    if not word:
        return _matching(word, columns)
    longer = [text for text in names.statements if text.upper().startswith(statement.lstrip().upper())]
    if longer:
        return len(statement.lstrip()), tuple(longer)
    return _matching(word, (*columns, *names.columns, *_WORDS, *names.functions))


def _start(before: str) -> int:
    """Return the start of the statement at the end of ``before``; each INSERT of a statement set counts by itself."""
    last = 0
    for match in re.finditer(r"'(?:[^']|'')*'|--[^\n]*\n|(;)", before):
        if match[1]:
            last = match.end()
    return last


def _word(statement: str) -> str:
    match = _WORD.search(statement)
    return match[0] if match else ""


def _quoted(statement: str) -> Found:
    """Return completions inside quotes: keys of SET and RESET, and keys and values of WITH."""
    opened = _QUOTED.search(statement)
    word = opened["word"] if opened else ""
    head = statement[: len(statement) - len(word) - 1]
    if re.match(r"\s*(?:RE)?SET\s*\Z", head, re.IGNORECASE):
        return _matching(word, known_keys())
    options = re.search(r"\bWITH\s*\((?P<given>.*)\Z", head, re.IGNORECASE | re.DOTALL)
    if options is None:
        return 0, ()
    written = {m["key"]: m["value"] for m in _OPTION.finditer(options["given"])}
    spec = CONNECTORS.get(written.get("connector", ""))
    if value := _VALUE.search(options["given"]):
        if value["key"] == "connector":
            return _matching(word, CONNECTORS)
        chosen = spec.settings.get(value["key"]) if spec else None
        return _matching(word, chosen.offered if chosen else ())
    settings = spec.settings if spec else ()
    return _matching(word, [key for key in ("connector", *settings) if key not in written])


def _hint(body: str, statement: str, rest: str) -> Found:
    """Return completions inside ``/*+``: names of hints, then their keys, then values of the keys."""
    opened = re.search(r"(?P<name>\w+)\s*\((?P<arguments>[^()]*)\Z", body)
    if opened is None:
        follows_select = re.search(r"\bSELECT\s*/\*\+" + r"(?:(?!\*/).)*\Z", statement, re.IGNORECASE | re.DOTALL)
        return _matching(_word(body), _HINTS if follows_select else _AFTER_TABLE)
    arguments, name = opened["arguments"], opened["name"].upper()
    if arguments.count("'") % 2 == 0:
        return 0, ()
    word = arguments.rpartition("'")[2]
    preceding = arguments[: len(arguments) - len(word) - 1]
    value = _VALUE.search(preceding)
    inputs = _used(statement.partition("/*+")[0] + rest)
    if name == "STATE_TTL":
        return _matching(word, () if value else inputs)
    if name == "LOOKUP" and value:
        settings = {s.hint: s for group in ("async", "retry") for s in SETTINGS[group].values()}
        spec = settings.get(value["key"])
        return _matching(word, inputs if value["key"] == "table" else spec.offered if spec else ())
    if name == "LOOKUP":
        used = {m["key"] for m in _OPTION.finditer(preceding)}
        return _matching(word, [key for key in _LOOKUP_KEYS if key not in used])
    return _matching(word, () if value else SETTINGS["cache"])


def _used(statement: str) -> dict[str, str]:
    """Return the tables that a statement reads, by their alias or name."""
    tables: dict[str, str] = {}
    for match in _USED.finditer(statement):
        alias = match["alias"]
        tables[alias if alias and alias.upper() not in _NO_ALIAS else match["table"]] = match["table"]
    return tables


def _matching(word: str, candidates: Iterable[str]) -> Found:
    folded = word.lower()
    matches = dict.fromkeys(c for c in candidates if c.lower().startswith(folded) and c != word)
    return len(word), tuple(matches)
