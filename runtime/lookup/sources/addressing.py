"""Addresses of values, made of the key: the key columns that an address pattern needs.

The join must compare all columns of the pattern. It may compare other columns too: the source checks these after it has
fetched the value.
"""

from __future__ import annotations

from hintplan.plans.connectors.key_pattern import Slot, parse_pattern, pattern_columns
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.secrets import resolve


def addressed_columns(context: LookupContext, option: str) -> tuple[str, ...]:
    """Return the columns in the pattern of ``option``; RunError if the join does not compare all of them."""
    needed = pattern_columns(context.options[option])
    key_names = [column.name for column in context.keys]
    if lacking := [column for column in needed if column not in key_names]:
        raise RunError(
            f"the query looks up by {', '.join(key_names)}, but {option!r} needs {', '.join(needed)}",
            hint=f"join ON {' AND '.join(f'{column} = ...' for column in lacking)} as well",
            path=f"tables.{context.table}.options.{option}",
        )
    return needed


def address_parts(context: LookupContext, option: str) -> tuple[str | int, ...]:
    """Return the pattern as texts, with environment variables resolved, and places in the key."""
    key_names = [column.name for column in context.keys]
    return tuple(
        key_names.index(part.column) if isinstance(part, Slot) else resolve(part.text)
        for part in parse_pattern(context.options[option])
    )
