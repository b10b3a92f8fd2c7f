"""Random forms of FROM and of conditions that stand for others: VALUES, USING, UNNEST, ANY and ALL, numbers of rows.

Each is written in Flink's way and, where DuckDB means something else by it or may not know it, in another way there:
comparisons with ANY and ALL and of several columns are EXISTS, parts of nested columns are columns of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.fuzz.expressions import Expressions, Sql, duck_type, family
from tests.fuzz.trees import Derived, Given, Join, Part, Query, Select, Source, Unnested, columns_of, names_of

__all__ = ["ORDERED", "compared_rows", "given", "joined_using", "parts_of", "quantified", "ranked", "unnested"]

_KEYS = ("int", "text", "date")
ORDERED = ("int", "text", "date", "decimal", "boolean", "timestamp")
"""Families of types whose order is the same in both engines."""


def given(dice: Random, alias: str) -> tuple[Given, tuple[Sql, ...]]:
    """VALUES, of small values that meet those of tables, and its columns."""
    kinds = {"int": "INT", "text": "STRING", "date": "DATE"}
    types = [dice.choice(tuple(kinds.values())) for _ in range(dice.randint(1, 3))]
    rows = tuple(tuple(_value(dice, type_) for type_ in types) for _ in range(dice.randint(1, 4)))
    names = (f"{alias}.c{place}" for place in range(len(types)))
    return Given(rows, alias), tuple(Sql(name, name, type_) for name, type_ in zip(names, types, strict=True))


def _value(dice: Random, type_: str) -> Sql:
    if dice.random() < 0.15:
        return Sql(f"CAST(NULL AS {type_})", f"CAST(NULL AS {duck_type(type_)})", type_)
    if type_ == "INT":
        text = str(dice.choice((0, 1, 2, 3, 7)))
        return Sql(text, text, type_)
    return Expressions(dice, ()).literal(family(type_))


def joined_using(dice: Random, left: Derived, right: Derived, *, natural: bool) -> tuple[Join, tuple[Sql, ...]] | None:
    """Two queries joined USING their first columns, or NATURAL, by all that are called alike; None if types differ."""
    ours, theirs = columns_of(left.query), columns_of(right.query)
    shared = names_of(left.query) if natural else names_of(left.query)[:1]
    if natural:
        shared = tuple(name for name in shared if name in names_of(right.query))
    pairs = [(name, ours[place], theirs[place]) for place, name in enumerate(shared)]
    if any(family(a.type) != family(b.type) or family(a.type) not in _KEYS for _, a, b in pairs):
        return None
    kind = dice.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    either = kind in ("RIGHT JOIN", "FULL JOIN")
    merged = [Sql(name, name, _wider(a.type, b.type) if either else a.type) for name, a, b in pairs]
    others = [
        Sql(f"{side.alias}.{name}", f"{side.alias}.{name}", column.type, column.nan, column.exact)
        for side in (left, right)
        for name, column in zip(names_of(side.query), columns_of(side.query), strict=True)
        if name not in shared
    ]
    join = Join(f"NATURAL {kind}" if natural else kind, left, right, (), "" if natural else ", ".join(shared))
    return join, (*merged, *others)


def _wider(a: str, b: str) -> str:
    if family(a) == "text":
        return a if a == b else "STRING"
    return max(a, b, key=("DATE", "TINYINT", "SMALLINT", "INT", "BIGINT").index)


def parts_of(column: Sql) -> tuple[Sql, ...]:
    """Fields of a ROW, the first element of an ARRAY, a value of a MAP."""
    flink, duck = column.flink, column.duck
    if column.type.startswith("ROW"):
        return Sql(f"{flink}.x", f"{duck}.x", "INT"), Sql(f"{flink}.y", f"{duck}.y", "STRING")
    if column.type.startswith("ARRAY"):
        return (Sql(f"{flink}[1]", f"{duck}[1]", "INT"),)
    if column.type.startswith("MAP"):
        return (Sql(f"{flink}['k']", f"list_extract(map_extract({duck}, 'k'), 1)", "INT"),)
    return ()


def unnested(dice: Random, source: Source, columns: Sequence[Sql], alias: str) -> tuple[Source, tuple[Sql, ...]] | None:
    """``source`` with the elements of an array of it, which is a column or made of several; None if it has none."""
    arrays = [c for c in columns if c.type == "ARRAY<INT>"]
    numbers = [c for c in columns if c.type in ("INT", "BIGINT")]
    if arrays and dice.random() < 0.7:
        array, element = dice.choice(arrays), "INT"
    elif numbers:
        element = dice.choice(numbers).type
        chosen = [dice.choice([c for c in numbers if c.type == element]) for _ in range(dice.randint(1, 3))]
        flink, duck = (", ".join(getattr(c, side) for c in chosen) for side in ("flink", "duck"))
        array = Sql(f"ARRAY[{flink}]", f"[{duck}]", f"ARRAY<{element}>")
    else:
        return None
    added = Sql(f"{alias}.e", f"{alias}.e", element), Sql(f"{alias}.n", f"{alias}.n", "INT")
    return Unnested(source, array, alias, dice.random() < 0.4), (*columns, *added)


def quantified(dice: Random, value: Sql, query: Query) -> Part:
    """``value > ANY (query)`` and the like; ``query`` has one column, x0."""
    sign = dice.choice(("=", "<>", "<", "<=", ">", ">="))
    word = dice.choice(("ANY", "SOME", "ALL", "ALL"))
    if word == "ALL":
        sign = sign if sign != "=" else "<>"
        duck = f"NOT EXISTS (SELECT 1 FROM ({{q}}) AS z WHERE ({value.duck} {sign} z.x0) IS NOT TRUE)"
    else:
        duck = f"EXISTS (SELECT 1 FROM ({{q}}) AS z WHERE {value.duck} {sign} z.x0)"
    return Part(Sql(f"{value.flink} {sign} {word} ({{q}})", duck, "BOOLEAN"), query)


def compared_rows(dice: Random, values: Sequence[Sql], query: Query) -> Part:
    """``(a, b) [NOT] IN (query)``; what compares with NULL is not false."""
    negated = dice.random() < 0.6
    parts = (f"({value.duck} = z.x{place}){' IS NOT FALSE' if negated else ''}" for place, value in enumerate(values))
    exists = f"EXISTS (SELECT 1 FROM ({{q}}) AS z WHERE {' AND '.join(parts)})"
    flink = f"({', '.join(value.flink for value in values)}) {'NOT ' if negated else ''}IN ({{q}})"
    return Part(Sql(flink, f"NOT {exists}" if negated else exists, "BOOLEAN"), query)


def ranked(dice: Random, source: Derived, columns: Sequence[Sql]) -> Select | None:
    """The first rows of each partition of ``source``, in an order of all of its columns; None if one has no order."""
    if any(c.nan or family(c.type) not in ORDERED for c in columns):
        return None
    partition = dice.sample(columns, dice.randint(0, min(2, len(columns))))
    order = [(column, dice.choice(("ASC", "DESC"))) for column in dice.sample(columns, len(columns))]
    nulls = {"ASC": " NULLS FIRST", "DESC": " NULLS LAST"}
    by = f"PARTITION BY {', '.join(c.flink for c in partition)} " if partition else ""
    flink, duck = (
        f"ROW_NUMBER() OVER ({by}ORDER BY {', '.join(f'{c.flink} {word}{more[word]}' for c, word in order)})"
        for more in ({"ASC": "", "DESC": ""}, nulls)
    )
    items = [(Part(column), f"x{place}") for place, column in enumerate(columns)]
    name = f"x{len(items)}"
    kept = dice.choice(("<= 1", "= 1", "<= 2", "< 4", "BETWEEN 2 AND 3"))
    shown = dice.random() < 0.4
    if shown:
        items.append((Part(Sql(flink, duck, "BIGINT")), name))
    qualify = Part(Sql(f"{name if shown else flink} {kept}", f"{duck} {kept}", "BOOLEAN"))
    return Select(tuple(items), source, qualify=qualify)
