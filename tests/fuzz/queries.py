"""Random queries over the tables of a world, for hintplan and for DuckDB at once.

Joins of all kinds with and without equalities, sub-queries (IN, NOT IN, EXISTS, ANY, ALL, scalar, correlated or not),
GROUP BY with HAVING, DISTINCT and filtered aggregates, GROUPING SETS, MULTISETs, set operations, VALUES, UNNEST,
numbers of rows, views, WITH, and for a batch job ORDER BY, LIMIT and functions of the rows around a row. Lookups and
functions of the user's are left to their simulations (tests/connectors/lookup, tests/runtime/functions), aggregates
that go by the order of rows to tests/runtime/operators/test_aggregate_in_order.py, but for what an array has in any
order.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from tests.fuzz.aggregates import call, collected
from tests.fuzz.data import World
from tests.fuzz.expressions import Expressions, Sql, decimal_of, duck_type, family, wrapped
from tests.fuzz.forms import compared_rows, given, joined_using, parts_of, quantified, ranked, unnested
from tests.fuzz.trees import (
    Derived,
    Join,
    Part,
    Query,
    Select,
    SetOperation,
    Source,
    Table,
    Unnested,
    aliases_of,
    columns_of,
    joins_of,
    names_of,
)
from tests.fuzz.windows import Windows

__all__ = ["random_query"]

_NOT_OUTSIDE = "e0"
"""The column of a correlated sub-query: DuckDB's WHERE would take it for an outer column of the same name."""


class _Random:
    def __init__(self, dice: Random, world: World, *, batch: bool) -> None:
        self.dice = dice
        self.world = world
        self.batch = batch
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def query(self, depth: int) -> Query:
        if self.batch and self.dice.random() < 0.3:
            return self.windowed(depth)
        shape = self.dice.random()
        if depth and shape < 0.14:
            return self.set_operation(depth)
        if depth and shape < 0.22:
            return self.numbered(depth)
        if shape < 0.45:
            return self.grouped(depth)
        return self.select(depth)

    def numbered(self, depth: int) -> Query:
        """The first rows of a query by their numbers."""
        source = Derived(self.query(depth - 1), self.alias(), "inline")
        return ranked(self.dice, source, self.columns(source)) or source.query

    def select(self, depth: int, wanted: tuple[str, ...] | None = None) -> Select:
        """A query without grouping, whose columns are of the families ``wanted``, if given."""
        dice = self.dice
        source, columns, free = self.source(depth)
        where = (*free, *self.where(columns, depth))
        expressions = Expressions(dice, columns)
        if wanted is None:
            stateless = isinstance(source, Table) and not any(p.query for p in where)
            kinds = [family(c.type) for c in columns]
            wanted = tuple(dice.choice(kinds) for _ in range(dice.randint(1, 4)))
            if not stateless or self.world_changes(source):
                wanted = tuple(kind if kind != "nested" else "int" for kind in wanted)
        items = [Part(expressions.of(kind)) for kind in wanted]
        if depth and dice.random() < 0.12:
            items.append(self.scalar(columns))
        distinct = dice.random() < 0.15 and not any(family(i.sql.type) == "nested" for i in items)
        hint = ""
        if not self.batch and _is_hinted(source) and dice.random() < 0.1:
            hint = " /*+ STATE_TTL(" + ", ".join(f"'{a}' = '400 d'" for a in aliases_of(source)) + ") */"
        return Select(_named(items), source, where, distinct=distinct, hint=hint)

    def world_changes(self, source: Table) -> bool:
        return next(t for t in self.world.tables if t.name == source.name).changes != "false"

    def grouped(self, depth: int) -> Select:
        dice = self.dice
        source, columns, free = self.source(depth)
        where = (*free, *self.where(columns, depth))
        if dice.random() < 0.12:
            items = [self.aggregate(columns) for _ in range(dice.randint(1, 3))]
            if dice.random() < 0.15 and (multiset := self.collect(columns)) is not None:
                items.append(multiset)
            return Select(_named(items), source, where, group=None, one_row=True)
        expressions = Expressions(dice, columns)
        keys: list[Part] = []
        for _ in range(dice.choice((1, 1, 2, 2, 3))):
            kind = dice.choice([k for k in expressions.families() if k != "nested"] or ["int"])
            key = expressions.column(kind) if dice.random() < 0.7 else expressions.of(kind)
            if key is not None and any(c.flink in key.flink for c in columns) and key not in [k.sql for k in keys]:
                keys.append(Part(key))
        if not keys:
            keys = [Part(next(c for c in columns if family(c.type) != "nested"))]
        shown = [key for key in keys if dice.random() < 0.85]
        items = [*shown, *(self.aggregate(columns) for _ in range(dice.choice((0, 1, 1, 2, 3)) if shown else 1))]
        if dice.random() < 0.1 and (multiset := self.collect(columns)) is not None:
            items.append(multiset)
        having: list[Part] = []
        if dice.random() < 0.25:
            found = self.aggregate(columns)
            if not found.sql.nan and family(found.sql.type) == "int":
                having.append(Part(Sql(f"{found.sql.flink} >= 1", f"{found.sql.duck} >= 1", "BOOLEAN")))
            else:
                having.append(Part(Sql("COUNT(*) > 1", "COUNT(*) > 1", "BOOLEAN")))
        sets = ""
        if dice.random() < 0.2 and not any("CASE" in k.sql.flink for k in keys):
            sets = self.sets(keys, items)
        return Select(_named(items), source, where, tuple(keys), sets, tuple(having))

    def windowed(self, depth: int) -> Select:
        """A query with functions of the rows around a row, or around a group."""
        dice = self.dice
        query = self.grouped(depth) if dice.random() < 0.25 else None
        if query is not None and query.group and not query.sets and not query.one_row:
            keys = [part.sql for part in query.group]
            columns = [*keys, *(part.sql for part, _ in query.items if part.sql not in keys)]
        else:
            source, found, free = self.source(depth)
            query, keys = Select((), source, (*free, *self.where(found, depth))), []
            columns = list(found)
        columns = [c for c in columns if family(c.type) != "nested"]
        windows = Windows(dice, columns, keys or columns)
        calls = [windows.call() for _ in range(dice.choice((1, 1, 2, 3)))]
        shown = dice.sample(columns, min(len(columns), dice.randint(0, 3)))
        over = Expressions(dice, (*columns, *calls))
        items = [*shown, *(over.of(family(c.type), 1) if dice.random() < 0.25 else c for c in calls)]
        qualify = None
        if dice.random() < 0.25:
            condition = Expressions(dice, (*shown, *calls)).condition(1)
            qualify = Part(condition) if " OVER " in condition.flink else None
        made = replace(query, items=_named([Part(item) for item in items]), windows=windows.named, qualify=qualify)
        return replace(made, distinct=dice.random() < 0.1)

    def sets(self, keys: list[Part], items: list[Part]) -> str:
        """A grouping by several sets, with numbers of keys in braces."""
        dice = self.dice
        places = [f"{{{index}}}" for index in range(len(keys))]
        every = ", ".join(places)
        if dice.random() < 0.4:
            text = dice.choice(("GROUPING({})", "GROUPING_ID({})"))
            one = dice.choice(keys).sql
            items.append(Part(Sql(text.format(one.flink), f"GROUPING({one.duck})", "BIGINT")))
        return dice.choice(
            (f"ROLLUP ({every})", f"CUBE ({every})", f"GROUPING SETS (({every}), ({places[0]}), ())",
             f"GROUPING SETS ({', '.join(f'({p})' for p in places)})")
        )  # fmt: skip

    def aggregate(self, columns: tuple[Sql, ...]) -> Part:
        dice = self.dice
        expressions = Expressions(dice, columns)
        found, clause = Sql("COUNT(*)", "COUNT(*)", "BIGINT"), ("", "")
        kinds = [k for k in expressions.families() if k != "nested"]
        kind = dice.choice(kinds) if kinds else "int"
        if dice.random() < 0.85:
            value = expressions.column(kind) if dice.random() < 0.6 else None
            value = value or expressions.of(kind)
            if dice.random() < 0.2:
                condition = expressions.condition(1)
                clause = (f" FILTER (WHERE {condition.flink})", f" FILTER (WHERE {condition.duck})")
            found = call(dice, value, clause)
            return Part(found)
        return Part(found)

    def collect(self, columns: tuple[Sql, ...]) -> Part | None:
        """A MULTISET of a column, if one can be made."""
        clause = ("", "")
        if self.dice.random() < 0.2:
            condition = Expressions(self.dice, columns).condition(1)
            clause = (f" FILTER (WHERE {condition.flink})", f" FILTER (WHERE {condition.duck})")
        found = collected(self.dice, self.dice.choice(columns), clause)
        return None if found is None else Part(found)

    def elements(self) -> tuple[Source, tuple[Sql, ...]] | None:
        """The groups of a table with the elements of a MULTISET of each."""
        dice = self.dice
        below, columns = self.input(0)
        keys = [c for c in columns if family(c.type) in ("int", "text", "date")]
        multiset = collected(dice, dice.choice(columns), as_list=True)
        if not keys or multiset is None:
            return None
        keys = dice.sample(keys, dice.choice((1, 1, 2)) if len(keys) > 1 else 1)
        where = self.where(columns, 0)
        query = Select(_named([*map(Part, keys), Part(multiset)]), below, where, tuple(map(Part, keys)))
        source = Derived(query, self.alias(), "inline")
        *others, array = self.columns(source)
        alias = self.alias()
        element = multiset.type[len("MULTISET<") : -1]
        added = Sql(f"{alias}.e", f"{alias}.e", element)
        return Unnested(source, array, alias, dice.random() < 0.4), (*others, added)

    def set_operation(self, depth: int) -> SetOperation:
        left = self.query(depth - 1)
        kinds = [family(c.type) for c in columns_of(left)]
        if "nested" in kinds or "bytes" in kinds:
            left, kinds = self.select(0, ("int", "text")), ["int", "text"]
            left = replace(left, items=left.items[:2])
        right = self.select(depth - 1, tuple(kinds))
        items = []
        for (part, name), column in zip(right.items[: len(kinds)], columns_of(left), strict=True):
            if part.sql.type != column.type and family(column.type) not in ("int", "text"):
                null = Sql(f"CAST(NULL AS {column.type})", f"CAST(NULL AS {duck_type(column.type)})", column.type)
                part = Part(null)
            items.append((part, name))
        right = replace(right, items=tuple(items))
        words = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        word = self.dice.choice(words)
        return SetOperation(word, left, right)

    def source(self, depth: int) -> tuple[Source, tuple[Sql, ...], tuple[Part, ...]]:
        """A FROM clause, its columns, and conditions for WHERE that its joins need."""
        dice = self.dice
        if depth and dice.random() < 0.07 and (found := self.using(depth)) is not None:
            return *found, ()
        if dice.random() < 0.03 and (elements := self.elements()) is not None:
            return *elements, ()
        source, columns = self.input(depth)
        free: list[Part] = []
        for _ in range(dice.choice((0, 0, 1, 1, 2)) if depth else dice.choice((0, 0, 0, 1))):
            if dice.random() < 0.08:
                below, of_below = self.input(0)
                one_row = Select(_named([self.aggregate(of_below)]), below, one_row=True)
                right: Source = Derived(one_row, self.alias(), "inline")
                added = self.columns(right)
                on = [Part(Expressions(dice, (*columns, *added), simple=True).condition())]
                source, columns = Join("JOIN", source, right, tuple(on)), columns + added
                continue
            right, added = self.input(depth)
            if dice.random() < 0.1:
                source = self.without_key(source, right, columns + added)
                columns += added
                continue
            key = self.equality(columns, added)
            if key is None:
                continue
            kind = dice.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","))
            on = [key]
            simple = Expressions(dice, columns + added, simple=True)
            on += [Part(simple.condition()) for _ in range(dice.choice((0, 0, 0, 1, 1, 2)))]
            if dice.random() < 0.12 and (second := self.equality(columns, added)) is not None:
                on.append(second)
            if kind == ",":
                free += on
                on = []
            source, columns = Join(kind, source, right, tuple(on)), columns + added
        if any(j.kind != "JOIN" and j.kind != "," for j in joins_of(source)):
            # A comma binds less tightly than the JOINs after it.
            source, free = _without_commas(source, free)
        if dice.random() < 0.08 and (more := unnested(dice, source, columns, self.alias())) is not None:
            if any(j.kind == "," for j in joins_of(source)):
                source, free = _without_commas(source, free)
                assert isinstance(more[0], Unnested)
                more = replace(more[0], left=source), more[1]
            source, columns = more
        return source, columns, tuple(free)

    def using(self, depth: int) -> tuple[Source, tuple[Sql, ...]] | None:
        """Two queries whose columns are called alike, joined by these."""
        kinds = tuple(self.dice.choice(("int", "text")) for _ in range(2))
        left = Derived(self.select(depth - 1, kinds), self.alias(), "inline")
        right = Derived(self.select(0, kinds), self.alias(), "inline")
        return joined_using(self.dice, left, right, natural=self.dice.random() < 0.3)

    def without_key(self, left: Source, right: Source, columns: tuple[Sql, ...]) -> Source:
        """A join in which nothing need be equal."""
        kind = self.dice.choice(("CROSS JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if kind == "CROSS JOIN":
            return Join(kind, left, right, ())
        return Join(kind, left, right, (Part(Expressions(self.dice, columns, simple=True).condition()),))

    def equality(self, left: tuple[Sql, ...], right: tuple[Sql, ...]) -> Part | None:
        dice = self.dice
        pairs = [(a, b) for a in left for b in right if _joinable(a, b)]
        if not pairs:
            return None
        a, b = dice.choice(pairs)
        if dice.random() < 0.3:
            a, b = b, a
        if dice.random() < 0.1 and family(a.type) == "int":
            type_ = "BIGINT" if a.type == "BIGINT" else "INT"
            a = Sql(f"{a.flink} + 1", wrapped(f"CAST({a.duck} AS HUGEINT) + 1", type_), type_)
        sign = "IS NOT DISTINCT FROM" if dice.random() < 0.1 else "="
        return Part(Sql(f"{a.flink} {sign} {b.flink}", f"{a.duck} {sign} {b.duck}", "BOOLEAN"))

    def input(self, depth: int) -> tuple[Source, tuple[Sql, ...]]:
        if depth and self.dice.random() < 0.3:
            query = self.query(depth - 1)
            if not any(family(c.type) == "nested" for c in columns_of(query)):
                how = self.dice.choice(("inline", "inline", "with", "view"))
                source: Source = Derived(query, self.alias(), how)
                return source, self.columns(source)
        if self.dice.random() < 0.06:
            return given(self.dice, self.alias())
        source = Table(self.dice.choice(self.world.tables).name, self.alias())
        return source, self.columns(source)

    def columns(self, source: Table | Derived | Join) -> tuple[Sql, ...]:
        if isinstance(source, Join):
            return self.columns(source.left) + self.columns(source.right)
        if isinstance(source, Derived):
            return tuple(
                replace(c, flink=f"{source.alias}.{n}", duck=f"{source.alias}.{n}")
                for c, n in zip(columns_of(source.query), names_of(source.query), strict=True)
            )
        table = next(t for t in self.world.tables if t.name == source.name)
        found = tuple(
            Sql(f"{source.alias}.{c.name}", f"{source.alias}.{c.name}", c.type, nan=c.wild, exact=not c.wild)
            for c in table.columns
        )
        return (*found, *(part for column in found for part in parts_of(column)))

    def where(self, columns: tuple[Sql, ...], depth: int) -> tuple[Part, ...]:
        dice = self.dice
        expressions = Expressions(dice, columns)
        found = [Part(expressions.condition()) for _ in range(dice.choice((0, 0, 0, 1, 1, 2)))]
        if depth and dice.random() < 0.3:
            made = self.sub_query(columns, depth)
            found += [made] if made is not None else []
        return tuple(found)

    def sub_query(self, columns: tuple[Sql, ...], depth: int) -> Part | None:
        """IN, EXISTS or a comparison with a scalar sub-query, correlated or not."""
        dice = self.dice
        if dice.random() < 0.2 and (made := self.compared(columns)) is not None:
            return made
        shape = dice.random()
        if shape < 0.35:
            value = dice.choice([c for c in columns if family(c.type) in ("int", "text", "date")] or [None])
            if value is None:
                return None
            query = self.select(0, (family(value.type),)) if dice.random() < 0.7 else self.grouped(0)
            if len(query.items) != 1 or not _joinable(query.items[0][0].sql, value):
                query = self.select(0, (family(value.type),))
                query = replace(query, items=query.items[:1])
            word = dice.choice(("IN", "IN", "NOT IN"))
            if word == "IN" and dice.random() < 0.2:
                other = Expressions(dice, columns).condition(1)
                return Part(Sql(f"({other.flink} OR {value.flink} IN ({{q}}))",
                                f"({other.duck} OR {value.duck} IN ({{q}}))", "BOOLEAN"), query)  # fmt: skip
            return Part(Sql(f"{value.flink} {word} ({{q}})", f"{value.duck} {word} ({{q}})", "BOOLEAN"), query)
        if shape < 0.7:
            source, inner = self.input(depth - 1)
            key = self.equality(inner, columns)
            if key is None:
                return None
            where = [key]
            if dice.random() < 0.4:
                where.append(Part(Expressions(dice, (*inner, *columns), simple=True).condition(1)))
            one = Part(Sql("1", "1", "INT"))
            query = Select(((one, _NOT_OUTSIDE),), source, tuple(where))
            word = dice.choice(("EXISTS", "NOT EXISTS"))
            return Part(Sql(f"{word} ({{q}})", f"{word} ({{q}})", "BOOLEAN"), query)
        scalar = self.scalar(columns)
        if scalar.sql.nan:
            return None
        beside = Expressions(dice, columns).of(family(scalar.sql.type), 0)
        if beside.nan or (family(beside.type) == "decimal" and decimal_of(beside.type)[0] > 18):
            return None
        sign = dice.choice(("=", "<", ">=", "<>"))
        return Part(Sql(f"{beside.flink} {sign} {scalar.sql.flink}", f"{beside.duck} {sign} {scalar.sql.duck}",
                        "BOOLEAN"), scalar.query)  # fmt: skip

    def compared(self, columns: tuple[Sql, ...]) -> Part | None:
        """A comparison with ANY or ALL rows of a query, or of several columns with them."""
        able = [c for c in columns if family(c.type) in ("int", "text", "date") and "." in c.flink]
        if not able:
            return None
        values = [self.dice.choice(able) for _ in range(self.dice.choice((1, 1, 2)))]
        query = self.select(0, tuple(family(v.type) for v in values))
        query = replace(query, items=query.items[: len(values)])
        if len(values) == 1:
            return quantified(self.dice, values[0], query)
        return compared_rows(self.dice, values, query)

    def scalar(self, columns: tuple[Sql, ...]) -> Part:
        """A scalar sub-query: an aggregate, most often of rows that have something equal with the outer row."""
        dice = self.dice
        source, inner = self.input(0)
        where: list[Part] = []
        if dice.random() < 0.7 and (key := self.equality(inner, columns)) is not None:
            where.append(key)
        if dice.random() < 0.3:
            where.append(Part(Expressions(dice, inner).condition(1)))
        value = self.aggregate(inner)
        query = Select(((value, _NOT_OUTSIDE),), source, tuple(where))
        return Part(replace(value.sql, flink="({q})", duck="({q})"), query)


def random_query(dice: Random, world: World, *, batch: bool) -> Query:
    """A query over the tables of ``world``, for a stream or a ``batch`` job."""
    maker = _Random(dice, world, batch=batch)
    query = maker.query(dice.choice((0, 1, 1, 2, 2)))
    if (
        batch
        and dice.random() < 0.5
        and not any(c.nan or family(c.type) in ("nested", "bytes") for c in columns_of(query))
    ):
        alias = maker.alias()
        names = names_of(query)
        source = Derived(query, alias, "inline")
        items = _named([Part(c) for c in maker.columns(source)])
        order = ", ".join(f"{alias}.{n} {dice.choice(('ASC', 'DESC'))}" for n in dice.sample(names, len(names)))
        limit = dice.choice(("LIMIT 3", "LIMIT 5 OFFSET 1", "OFFSET 2", "LIMIT 1", ""))
        return Select(items, source, order=order, limit=limit)
    return query


def _named(items: list[Part]) -> tuple[tuple[Part, str], ...]:
    return tuple((item, f"x{index}") for index, item in enumerate(items))


def _is_hinted(source: Source) -> bool:
    """Whether a hint may name all that ``source`` reads: tables and queries, joined."""
    if isinstance(source, Join):
        return not source.using and all(
            isinstance(s, Table | Derived) or _is_hinted(s) for s in (source.left, source.right)
        )
    return False


def _joinable(a: Sql, b: Sql) -> bool:
    kind = family(a.type)
    if kind != family(b.type) or kind in ("nested", "float"):
        return False
    if kind == "decimal":
        (p1, s1), (p2, s2) = decimal_of(a.type), decimal_of(b.type)
        return max(p1 - s1, p2 - s2) + max(s1, s2) <= 38
    return True


def _without_commas(source: Source, free: list[Part]) -> tuple[Source, list[Part]]:
    """Commas as inner joins; the conditions for WHERE go to the first of them, or stay if there is none."""
    if not isinstance(source, Join):
        return source, free
    left, free = _without_commas(source.left, free)
    if source.kind != ",":
        return replace(source, left=left), free
    used = set(aliases_of(Join("", left, source.right, ())))
    mine = [p for p in free if _mentions(p) <= used]
    return Join("JOIN", left, source.right, tuple(mine)), [p for p in free if p not in mine]


def _mentions(part: Part) -> set[str]:
    return set(re.findall(r"\b(t\d+)\.", part.sql.flink))
