"""Sources that find values by an address made of the key: which key columns the address needs.

The columns of the pattern must all be compared by the join; other columns that it compares are compared afterwards.
"""

from __future__ import annotations

from hintplan.plans.connectors.texts.key_pattern import Slot, parse_pattern, pattern_columns
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.secrets import resolve


def addressed_columns(context: LookupContext, option: str) -> tuple[str, ...]:
    """The columns in the pattern that ``option`` holds; RunError if the join does not compare all of them."""
    needed = pattern_columns(context.options[option])
    names = [column.name for column in context.keys]
    if lacking := [column for column in needed if column not in names]:
        raise RunError(
            f"the query looks up by {', '.join(names)}, but {option!r} needs {', '.join(needed)}",
            hint=f"join ON {' AND '.join(f'{column} = ...' for column in lacking)} as well",
            path=f"tables.{context.table}.options.{option}",
        )
    return needed


def address_parts(context: LookupContext, option: str) -> tuple[str | int, ...]:
    """The pattern as texts, with the environment's values in them, and places in the key."""
    names = [column.name for column in context.keys]
    return tuple(
        names.index(part.column) if isinstance(part, Slot) else resolve(part.text)
        for part in parse_pattern(context.options[option])
    )
