"""Random tables for random queries: columns of every type, rows with what tends to go wrong, and a cut into batches.

A table of inserts has its rows in the order in which they arrive; one of changes takes some of them back, or replaces
them by key. Values come from small pools, so that keys meet, with the ends of each type among them.

>>> from random import Random
>>> world = random_world(Random(7), batch=False)
>>> [table.name for table in world.tables][:2], len(world.cut) <= 5
(['a', 'b'], True)
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from random import Random
from typing import Any

__all__ = ["Column", "Event", "FuzzTable", "World", "random_world"]

Event = tuple[str, tuple[Any, ...]]
"""A row kind and a row."""

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXTS = (
    "", " ", "a", "b", "A", "ab", "a%b", "a_b", "x", "é", "e\u0301", "日本", "😀", "it's", "NULL", "0", "-1", "a\tb"
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1)
_EXACT = Context(prec=40)
_TYPES = (
    *(("INT", "BIGINT") * 5), "TINYINT", "SMALLINT", "FLOAT", *(("DOUBLE",) * 3), "DECIMAL(10, 2)", "DECIMAL(10, 2)",
    "DECIMAL(5, 0)", "DECIMAL(18, 6)", "DECIMAL(38, 0)", *(("STRING",) * 5), "VARCHAR(5)", "CHAR(2)", "BYTES",
    "BINARY(2)", "VARBINARY(3)", "BOOLEAN", "BOOLEAN", "DATE", "DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(0)",
    "TIMESTAMP_LTZ(3)", "ARRAY<INT>", "MAP<STRING, INT>", "ROW<x INT, y STRING>",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; ``wild`` ones hold NaN, infinities and numbers that do not add up exactly."""

    name: str
    type: str
    nullable: bool = True
    wild: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzTable:
    """A table and what happens to it; ``changes`` is the value of ``source.changelog``, ``key`` a primary key."""

    name: str
    columns: tuple[Column, ...]
    events: tuple[Event, ...]
    changes: str = "false"
    key: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The table in the end."""
        if self.changes == "upsert":
            places = [index for index, column in enumerate(self.columns) if column.name in self.key]
            kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}
            for kind, row in self.events:
                key = tuple(row[place] for place in places)
                kept.pop(key, None)
                if kind != "-D":
                    kept[key] = row
            return list(kept.values())
        # By their text: NaN is not equal to itself, and lists cannot be hashed.
        count: Counter[str] = Counter()
        first: dict[str, tuple[Any, ...]] = {}
        for kind, row in self.events:
            count[repr(row)] += 1 if kind in ("+I", "+U") else -1
            first.setdefault(repr(row), row)
        return [first[text] for text in (+count).elements()]

    def declared(self, options: str) -> str:
        """CREATE TABLE for it, with ``options`` beside those it needs itself."""
        parts = [f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        parts += [f"PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED"] if self.key else []
        changes = "" if self.changes == "false" else f", 'source.changelog' = '{self.changes}'"
        return f"CREATE TABLE {self.name} ({', '.join(parts)}) WITH ({options}{changes});"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Tables, and how their events are cut: for each batch, how many events of each table; where the job restarts."""

    tables: tuple[FuzzTable, ...]
    cut: tuple[tuple[int, ...], ...]
    restarts: frozenset[int] = frozenset()

    def batches(self) -> list[dict[str, list[Event]]]:
        """The events of each batch by table, in order."""
        found = []
        starts = [0] * len(self.tables)
        for sizes in self.cut:
            found.append(
                {t.name: list(t.events[s : s + n]) for t, s, n in zip(self.tables, starts, sizes, strict=True)}
            )
            starts = [s + n for s, n in zip(starts, sizes, strict=True)]
        last = {t.name: list(t.events[s:]) for t, s in zip(self.tables, starts, strict=True)}
        return [*found, last] if any(last.values()) or not found else found


def random_world(dice: Random, *, batch: bool) -> World:
    """Two to four tables; only of inserts if they are for a ``batch`` job."""
    tables = tuple(_table(dice, name, batch=batch) for name in "abcd"[: dice.choice((2, 3, 3, 4))])
    number = 1 if batch else dice.randint(1, 4)
    cut = []
    for part in range(number - 1):
        cut.append(tuple(dice.randint(0, 2 * len(t.events) // (number - part)) for t in tables))
    restarts = frozenset(i for i in range(1, number) if dice.random() < 0.25)
    return World(tables=tables, cut=tuple(cut), restarts=restarts)


def _table(dice: Random, name: str, *, batch: bool) -> FuzzTable:
    changes = "false" if batch else dice.choices(("false", "true", "upsert"), (6, 2, 1))[0]
    types = ["BIGINT", dice.choice(("INT", "STRING")), *(dice.choice(_TYPES) for _ in range(dice.randint(2, 5)))]
    if changes != "false":  # below a changelog every row is kept in state
        types = ["STRING" if type_[:3] in ("ARR", "MAP", "ROW") else type_ for type_ in types]
    key = (f"{name}0",) if changes == "upsert" else ()
    columns = tuple(
        Column(
            name=f"{name}{index}",
            type=type_,
            nullable=f"{name}{index}" not in key and dice.random() < 0.85,
            wild=type_ in ("FLOAT", "DOUBLE") and dice.random() < 0.4,
        )
        for index, type_ in enumerate(types)
    )
    count = dice.choice((0, 1, 4, 7, 9, 12, 14, 14, 14))
    rows = [tuple(_value(dice, column) for column in columns) for _ in range(count)]
    if rows and dice.random() < 0.5:
        rows += dice.choices(rows, k=dice.randint(1, 3))
    if changes == "upsert":
        return FuzzTable(name=name, columns=columns, events=_upserts(dice, rows), changes=changes, key=key)
    events = _changes(dice, columns, rows) if changes == "true" else tuple(("+I", row) for row in rows)
    return FuzzTable(name=name, columns=columns, events=events, changes=changes)


def _changes(dice: Random, columns: tuple[Column, ...], rows: list[tuple[Any, ...]]) -> tuple[Event, ...]:
    """A legal changelog: rows come, change and go."""
    events: list[Event] = []
    there: list[tuple[Any, ...]] = []
    for row in rows:
        events.append(("+I", row))
        there.append(row)
        if dice.random() < 0.35:
            old = there.pop(dice.randrange(len(there)))
            place = dice.randrange(len(columns))
            new = (*old[:place], _value(dice, columns[place]), *old[place + 1 :])
            events += [("-U", old), ("+U", new)]
            there.append(new)
        if there and dice.random() < 0.25:
            events.append(("-D", there.pop(dice.randrange(len(there)))))
    return tuple(events)


def _upserts(dice: Random, rows: list[tuple[Any, ...]]) -> tuple[Event, ...]:
    return tuple((dice.choice(("+I", "+U", "+U", "-D" if dice.random() < 0.5 else "+U")), row) for row in rows)


def _value(dice: Random, column: Column) -> Any:
    if column.nullable and dice.random() < 0.15:
        return None
    return _of_type(dice, column.type, wild=column.wild)


def _of_type(dice: Random, type_: str, *, wild: bool = False) -> Any:
    root = re.split(r"[(<]", type_)[0]
    size = int(match[1]) if (match := re.search(r"\((\d+)", type_)) else 0
    if root in _INTEGERS:
        least = -(1 << _INTEGERS[root] - 1)
        return dice.choice((least, -1 - least)) if dice.random() < 0.06 else dice.choice((0, 1, 1, 2, 2, 3, 4, -1, 7))
    if root in ("FLOAT", "DOUBLE"):
        if wild:
            large = (1e300, -1e300, 5e-324) if root == "DOUBLE" else (1e30, -1e30)
            return dice.choice((0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, 0.1, *large))
        return dice.choice((0.0, 0.5, 1.0, 1.0, 2.0, -1.5, 0.25, 3.0, -0.0))
    if root == "DECIMAL":
        return _decimal(dice, type_)
    if root in ("STRING", "VARCHAR", "CHAR"):
        text = dice.choice(_TEXTS)
        return text if root == "STRING" else text[:size] if root == "VARCHAR" else (text + "zz")[:size]
    if root in ("BYTES", "BINARY", "VARBINARY"):
        value = dice.choice((b"", b"\x00", b"ab", b"\xff\xfe", b"a"))
        return value if root != "BINARY" else (value + b"\x00\x00")[:size]
    if root == "BOOLEAN":
        return dice.random() < 0.5
    if root == "DATE":
        if dice.random() < 0.05:
            return dice.choice((date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)))
        return date(2020, 2, 27) + timedelta(days=dice.randint(0, 4))
    if root.startswith("TIMESTAMP"):
        micros = dice.choice((0, 1, 999_999, 123_456, 500_000)) // 10 ** (6 - size) * 10 ** (6 - size)
        seconds = dice.choice((0, -1, 1_582_848_000, 1_582_934_399, 1_582_934_400, 4_102_444_799))
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
        return moment.replace(tzinfo=UTC) if root == "TIMESTAMP_LTZ" else moment
    if root == "ARRAY":
        return [dice.choice((1, 2, None)) for _ in range(dice.randint(0, 2))]
    if root == "MAP":
        return {key: dice.choice((1, None)) for key in dice.sample(("k", "l"), dice.randint(0, 2))}
    return {"x": dice.choice((1, None)), "y": dice.choice(("a", None))}


def _decimal(dice: Random, type_: str) -> Decimal:
    precision, scale = (int(part) for part in re.findall(r"\d+", type_))
    if dice.random() < 0.06:
        return Decimal(dice.choice((1, -1)) * (10**precision - 1)).scaleb(-scale, _EXACT)
    hundredths = dice.choice((0, 1, 1, 2, 57, 57, 35, 100, 250, -125, 3))
    return Decimal(hundredths).scaleb(-min(scale, 2), _EXACT)
