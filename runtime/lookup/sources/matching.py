"""Assignment of fetched rows to keys, by the same rules for every source.

A row belongs to a key if its key columns equal the key's values, as the plan's types compare them. A database may
compare less strictly (a collation that ignores case, blanks after CHAR). Rows that only such a comparison finds match
no key, with any cache or without.

>>> shape = RowShape(keys=("code",), columns=("rate",))
>>> shape.fetched
('rate', 'code')
>>> shape.match([("EUR",), ("USD",)], [(1.08, "EUR"), (1.09, "EUR"), (1.0, "eur")])
[[(1.08,), (1.09,)], []]
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import Key, LookupContext, Row

MOST_ROWS = 1_000_000
"""The most rows that one query for keys may return; a worker holds all of them."""


def refuse_excess(rows: Sequence[Row], table: str) -> None:
    """Raise RunError if a query returned more than ``MOST_ROWS`` rows; queries stop one row after that number."""
    if len(rows) > MOST_ROWS:
        raise RunError(
            f"more than {MOST_ROWS:,} rows have the keys of one query",
            hint="look up by more columns, or keep the whole table: 'lookup.cache' = 'FULL'",
            path=f"tables.{table}",
        )


class RowShape:
    """The columns to fetch: the columns of a row, then the key columns that are not among them."""

    def __init__(self, *, keys: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.fetched = tuple(dict.fromkeys((*columns, *keys)))
        self._width = len(columns)
        self._key_at = tuple(self.fetched.index(name) for name in keys)

    @classmethod
    def of(cls, context: LookupContext) -> RowShape:
        return cls(keys=tuple(c.name for c in context.keys), columns=tuple(c.name for c in context.columns))

    def match(self, keys: Sequence[Key], rows: Iterable[Row]) -> list[list[Row]]:
        """Return the rows of each key, in the order of ``keys``; ``rows`` have the values of ``fetched``."""
        rows_of: dict[Key, list[Row]] = {key: [] for key in keys}
        narrow = self._width != len(self.fetched)
        if len(self._key_at) == 1:
            (at,) = self._key_at
            for row in rows:
                if (matched := rows_of.get((row[at],))) is not None:
                    matched.append(row[: self._width] if narrow else row)
        else:
            for row in rows:
                if (matched := rows_of.get(tuple(row[at] for at in self._key_at))) is not None:
                    matched.append(row[: self._width] if narrow else row)
        return [rows_of[key] for key in keys]

    def row(self, key: Key, values: Mapping[str, Any], addressed: Container[str]) -> Row | None:
        """Return the row with the named ``values`` if it belongs to ``key``, else None.

        The source found the values by the ``addressed`` columns. If ``values`` lack one of them, it takes the key's
        value.
        """
        complete = dict(values)
        for at, value in zip(self._key_at, key, strict=True):
            name = self.fetched[at]
            if name in addressed:
                complete.setdefault(name, value)
            if complete.get(name) != value:
                return None
        return tuple(complete.get(name) for name in self.columns)
