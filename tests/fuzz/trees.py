"""Queries as trees: how hintplan and DuckDB write them, and which smaller ones are like them.

Where the engines differ in meaning: an aggregate without GROUP BY has no row in a stream before its first input row,
and none after the last is gone, unless it is the value of a sub-query, so DuckDB gets ``HAVING COUNT(*) > 0``; also for
the set () of GROUPING SETS, which has no row of no rows in either mode. NULLs are the smallest in ORDER BY, which
DuckDB is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.fuzz.expressions import Sql, family

__all__ = [
    "Derived",
    "Given",
    "Join",
    "Part",
    "Query",
    "Rendered",
    "Select",
    "SetOperation",
    "Source",
    "Table",
    "Unnested",
    "aliases_of",
    "columns_of",
    "joins_of",
    "names_of",
    "rendered",
    "smaller",
]


@dataclass(frozen=True, slots=True)
class Part:
    """An expression or condition; ``{q}`` in its text stands for ``query``."""

    sql: Sql
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    alias: str


@dataclass(frozen=True, slots=True)
class Derived:
    """A query in FROM; ``how`` is inline, with or view."""

    query: Query
    alias: str
    how: str


@dataclass(frozen=True, slots=True)
class Given:
    """VALUES in FROM, with columns c0, c1, ..."""

    rows: tuple[tuple[Sql, ...], ...]
    alias: str


@dataclass(frozen=True, slots=True)
class Join:
    """``using`` is USING (...) instead of ON; a ``kind`` that is NATURAL has neither."""

    kind: str
    left: Source
    right: Source
    on: tuple[Part, ...]
    using: str = ""


@dataclass(frozen=True, slots=True)
class Unnested:
    """The elements e of an array beside the row that has it, with their places n, which those of a MULTISET have not;
    an ``outer`` one keeps all rows."""

    left: Source
    array: Sql
    alias: str
    outer: bool

    @property
    def unordered(self) -> bool:
        return self.array.type.startswith("MULTISET")


Source = Table | Derived | Given | Join | Unnested


@dataclass(frozen=True, slots=True)
class Select:
    """``group`` is None without GROUP BY; ``sets`` is what stands for it, such as ROLLUP (...), in GROUPING SETS;
    ``windows`` are named for Flink, and written in full for DuckDB."""

    items: tuple[tuple[Part, str], ...]
    source: Source
    where: tuple[Part, ...] = ()
    group: tuple[Part, ...] | None = None
    sets: str = ""
    having: tuple[Part, ...] = ()
    windows: tuple[str, ...] = ()
    qualify: Part | None = None
    distinct: bool = False
    one_row: bool = False
    hint: str = ""
    order: str = ""
    limit: str = ""


@dataclass(frozen=True, slots=True)
class SetOperation:
    word: str
    left: Query
    right: Query


Query = Select | SetOperation


@dataclass(frozen=True, slots=True)
class Rendered:
    """The views and the query in Flink's SQL, and the query in DuckDB's."""

    views: tuple[str, ...]
    flink: str
    duck: str


def joins_of(source: Source) -> Iterator[Join]:
    if isinstance(source, Unnested):
        yield from joins_of(source.left)
    if isinstance(source, Join):
        yield source
        yield from joins_of(source.left)
        yield from joins_of(source.right)


def aliases_of(source: Source) -> list[str]:
    if isinstance(source, Join):
        return aliases_of(source.left) + aliases_of(source.right)
    if isinstance(source, Unnested):
        return [*aliases_of(source.left), source.alias]
    return [source.alias]


def columns_of(query: Query) -> tuple[Sql, ...]:
    """The types of a query's columns."""
    if isinstance(query, Select):
        return tuple(part.sql for part, _ in query.items)
    left, right = columns_of(query.left), columns_of(query.right)
    return tuple(
        replace(a, type=_union_type(a.type, b.type), nan=a.nan or b.nan, exact=a.exact and b.exact)
        for a, b in zip(left, right, strict=True)
    )


def _union_type(a: str, b: str) -> str:
    kind = family(a)
    if a == b or kind not in ("int", "text"):
        return a
    if kind == "text":
        return "STRING"
    return max(a, b, key=("TINYINT", "SMALLINT", "INT", "BIGINT").index)


def names_of(query: Query) -> tuple[str, ...]:
    while isinstance(query, SetOperation):
        query = query.left
    return tuple(name for _, name in query.items)


def rendered(query: Query, *, batch: bool, prefix: str | None = None) -> Rendered:
    """``query`` in both dialects; with a ``prefix`` WITH becomes views, and views are called by it."""
    writer = _Writer(batch=batch, prefix=prefix)
    flink = writer.flink(query, in_value=False)
    ctes = ", ".join(f"{name} AS ({text})" for name, text in writer.ctes.items())
    return Rendered(tuple(writer.views), f"WITH {ctes} {flink}" if ctes else flink, writer.duck(query, in_value=False))


class _Writer:
    def __init__(self, *, batch: bool, prefix: str | None) -> None:
        self.batch = batch
        self.prefix = prefix
        self.views: list[str] = []
        self.ctes: dict[str, str] = {}
        self.known: dict[tuple[Query, str], str] = {}

    def flink(self, query: Query, *, in_value: bool) -> str:
        if isinstance(query, SetOperation):
            left, right = self.flink(query.left, in_value=False), self.flink(query.right, in_value=False)
            return f"({left}) {query.word} ({right})"
        items = ", ".join(f"{self.part(part, 'flink')} AS {name}" for part, name in query.items)
        text = f"SELECT{query.hint} {'DISTINCT ' if query.distinct else ''}{items} FROM {self.from_flink(query.source)}"
        keys = [part.sql.flink for part in query.group or ()]
        text += self.clauses(query, "flink", keys)
        if query.order:
            text += f" ORDER BY {query.order}"
        return f"{text} {query.limit}".rstrip()

    def duck(self, query: Query, *, in_value: bool) -> str:
        if isinstance(query, SetOperation):
            left, right = self.duck(query.left, in_value=False), self.duck(query.right, in_value=False)
            return f"({left}) {query.word} ({right})"
        items = ", ".join(f"{self.part(part, 'duck')} AS {name}" for part, name in query.items)
        text = f"SELECT {'DISTINCT ' if query.distinct else ''}{items} FROM {self.from_duck(query.source)}"
        having = query.having
        if query.sets or (query.one_row and not self.batch and not in_value):
            having = (*having, Part(Sql("", "COUNT(*) > 0", "BOOLEAN")))
        text += self.clauses(replace(query, having=having), "duck", [part.sql.duck for part in query.group or ()])
        if query.order:
            order = query.order.replace(" ASC", " ASC NULLS FIRST").replace(" DESC", " DESC NULLS LAST")
            text += f" ORDER BY {order}"
        return f"{text} {query.limit}".rstrip()

    def clauses(self, query: Select, dialect: str, keys: list[str]) -> str:
        text = ""
        if query.where:
            text += " WHERE " + " AND ".join(self.part(part, dialect) for part in query.where)
        if query.sets:
            # Shrinking may have dropped keys, then the sets are those of what is left.
            known = re.sub(r"\{(\d+)\}", lambda m: keys[int(m[1])] if int(m[1]) < len(keys) else keys[0], query.sets)
            text += f" GROUP BY {known}"
        elif keys:
            text += f" GROUP BY {', '.join(keys)}"
        if query.having:
            text += " HAVING " + " AND ".join(self.part(part, dialect) for part in query.having)
        if query.windows and dialect == "flink":
            text += f" WINDOW {', '.join(query.windows)}"
        if query.qualify is not None:
            text += f" QUALIFY {self.part(query.qualify, dialect)}"
        return text

    def part(self, part: Part, dialect: str) -> str:
        text: str = getattr(part.sql, dialect)
        if part.query is None:
            return text
        return text.replace("{q}", getattr(self, dialect)(part.query, in_value=True))

    def from_flink(self, source: Source) -> str:
        if isinstance(source, Table):
            return f"{source.name} AS {source.alias}"
        if isinstance(source, Given):
            return self.given(source, "flink")
        if isinstance(source, Unnested):
            word, on = ("LEFT", " ON TRUE") if source.outer else ("CROSS", "")
            named = f" AS {source.alias}(e)" if source.unordered else f" WITH ORDINALITY AS {source.alias}(e, n)"
            array = f"UNNEST({source.array.flink}){named}"
            return f"{self.from_flink(source.left)} {word} JOIN {array}{on}"
        if isinstance(source, Join):
            return self.joined(source, "flink")
        if source.how == "inline":
            return f"({self.flink(source.query, in_value=False)}) AS {source.alias}"
        how = "view" if self.prefix else source.how
        key = (source.query, how)
        if key not in self.known:
            text = self.flink(source.query, in_value=False)
            self.known[key] = name = f"{self.prefix or ''}{how}{len(self.known)}"
            if how == "view":
                if self.ctes and re.search(r"\bwith\d", text):
                    # A view cannot read what WITH names; what is in it stands there in full.
                    self.known[key] = f"({text})"
                    return f"({text}) AS {source.alias}"
                self.views.append(f"CREATE VIEW {name} AS {text};")
            else:
                self.ctes[name] = text
        return f"{self.known[key]} AS {source.alias}"

    def from_duck(self, source: Source) -> str:
        if isinstance(source, Table):
            return f"{source.name} AS {source.alias}"
        if isinstance(source, Given):
            return self.given(source, "duck")
        if isinstance(source, Unnested):
            array = source.array.duck
            elements = f"(SELECT unnest({array}) AS e, generate_subscripts({array}, 1) AS n) AS {source.alias}"
            return f"{self.from_duck(source.left)} {'LEFT ' if source.outer else ''}JOIN LATERAL {elements} ON TRUE"
        if isinstance(source, Join):
            return self.joined(source, "duck")
        return f"({self.duck(source.query, in_value=False)}) AS {source.alias}"

    def given(self, given: Given, dialect: str) -> str:
        rows = ", ".join(f"({', '.join(getattr(value, dialect) for value in row)})" for row in given.rows)
        return f"(VALUES {rows}) AS {given.alias}({', '.join(f'c{i}' for i in range(len(given.rows[0])))})"

    def joined(self, join: Join, dialect: str) -> str:
        write = getattr(self, f"from_{dialect}")
        left, right = write(join.left), write(join.right)
        if join.kind == ",":
            return f"{left}, {right}"
        if join.kind.startswith(("NATURAL", "CROSS")) or join.using:
            return f"{left} {join.kind} {right}{f' USING ({join.using})' if join.using else ''}"
        on = " AND ".join(self.part(part, dialect) for part in join.on) or "TRUE"
        return f"{left} {join.kind} {right} ON {on}"


def smaller(query: Query) -> Iterator[Query]:
    """Queries with something left out: halves of set operations, what FROM reads, items, conditions, keys."""
    if isinstance(query, SetOperation):
        yield query.left
        yield query.right
        yield from (replace(query, left=left) for left in smaller(query.left))
        yield from (replace(query, right=right) for right in smaller(query.right))
        return
    yield from (part.query for part in query.where if part.query is not None)
    yield from _inner(query.source)
    for name in ("items", "where", "having", "group"):
        parts = getattr(query, name) or ()
        for index in range(len(parts)):
            if len(parts) > 1 or name in ("where", "having"):
                yield replace(query, **{name: parts[:index] + parts[index + 1 :]})
    for name in ("sets", "hint", "limit"):
        if getattr(query, name):
            yield replace(query, **{name: ""})
    if query.distinct:
        yield replace(query, distinct=False)
    if query.qualify is not None:
        yield replace(query, qualify=None)
    yield from (replace(query, source=source) for source in _smaller_source(query.source))
    for name in ("where",):
        parts = getattr(query, name)
        for index, part in enumerate(parts):
            for inner in smaller(part.query) if part.query is not None else ():
                yield replace(query, **{name: (*parts[:index], replace(part, query=inner), *parts[index + 1 :])})


def _inner(source: Source) -> Iterator[Query]:
    if isinstance(source, Derived):
        yield source.query
    if isinstance(source, Unnested):
        yield from _inner(source.left)
    if isinstance(source, Join):
        yield from _inner(source.left)
        yield from _inner(source.right)


def _smaller_source(source: Source) -> Iterator[Source]:
    if isinstance(source, Derived):
        if source.how != "inline":
            yield replace(source, how="inline")
        yield from (replace(source, query=query) for query in smaller(source.query))
    if isinstance(source, Given) and len(source.rows) > 1:
        yield from (replace(source, rows=(*source.rows[:i], *source.rows[i + 1 :])) for i in range(len(source.rows)))
    if isinstance(source, Unnested):
        yield source.left
        yield from (replace(source, left=left) for left in _smaller_source(source.left))
    if isinstance(source, Join):
        yield source.left
        yield source.right
        for index in range(len(source.on)):
            yield replace(source, on=source.on[:index] + source.on[index + 1 :])
        if source.kind not in ("JOIN", ",", "CROSS JOIN") and not source.kind.startswith("NATURAL"):
            yield replace(source, kind="JOIN")
        yield from (replace(source, left=left) for left in _smaller_source(source.left))
        yield from (replace(source, right=right) for right in _smaller_source(source.right))
