"""The grammar of CACHE TABLE and UNCACHE TABLE, as in Spark. :mod:`hintplan.planner.caching` applies them.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="CACHE LAZY TABLE v OPTIONS('storageLevel' = 'DISK_ONLY')")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("CACHE"), read_cache(cursor, 0).storage_level
(True, 'DISK_ONLY')
"""

from __future__ import annotations

from hintplan.planner.statements.ddl import table_name
from hintplan.planner.statements.model import CacheTable, UncacheTable
from hintplan.planner.statements.query_statements import check_form
from hintplan.planner.syntax.cursor import Cursor
from hintplan.plans.settings.cached import CACHED, STORAGE_LEVEL
from hintplan.plans.settings.setting import SettingError, parse_value
from hintplan.plans.text.names import did_you_mean

_OPTION = "storageLevel"
_FORM = "write CACHE [LAZY] TABLE name [OPTIONS('storageLevel' = 'DISK_ONLY')] [AS SELECT ...]"


def read_cache(cursor: Cursor, offset: int) -> CacheTable:
    """Read a CACHE TABLE from after the word CACHE to the end of the statement."""
    check_form(cursor)
    lazy = cursor.take("LAZY")
    cursor.expect("TABLE", _FORM)
    place = cursor.offset
    name = table_name(cursor, "the name of a table or view")
    level_offset = cursor.offset
    level = _storage_level(cursor) if cursor.take("OPTIONS") else None
    query = None
    if cursor.take("AS") or not cursor.at_end:
        if not (cursor.peek("SELECT") or cursor.peek("WITH") or cursor.peek("(")):
            raise cursor.unexpected("a query", _FORM)
        query = cursor.rest()
    return CacheTable(
        name=name,
        offset=place,
        statement_offset=offset,
        lazy=lazy,
        storage_level=level,
        level_offset=level_offset,
        query=query,
    )


def _storage_level(cursor: Cursor) -> str:
    cursor.expect("(", _FORM)
    place = cursor.offset
    key = cursor.string("an option") if cursor.next_is_string else cursor.name("an option")
    # Spark's options ignore case. The name of the setting in plans is accepted, too.
    if key.lower() not in (_OPTION.lower(), STORAGE_LEVEL):
        advice = did_you_mean(key, (_OPTION,), what="known options")
        raise cursor.source.error(f"CACHE TABLE has no option '{key}'", place, advice)
    cursor.take("=")
    place = cursor.offset
    text = cursor.string("a storage level in quotes")
    cursor.expect(")", _FORM)
    try:
        return str(parse_value(CACHED.settings[STORAGE_LEVEL], text))
    except SettingError as error:
        raise cursor.source.error(f"'{key}': {error}", place, error.hint) from None


def read_uncache(cursor: Cursor, offset: int) -> UncacheTable:
    """Read an UNCACHE TABLE from after the word UNCACHE to the end of the statement."""
    cursor.expect("TABLE", "write UNCACHE TABLE [IF EXISTS] name")
    if_exists = cursor.take("IF", "EXISTS")
    place = cursor.offset
    name = table_name(cursor, "the name of a table or view")
    cursor.end()
    return UncacheTable(name=name, offset=place, statement_offset=offset, if_exists=if_exists)
