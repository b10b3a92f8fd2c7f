"""What states must observe in a history of batches, by small models that know neither segments nor hashes.

A row that expired at an earlier batch may have been dropped since, so whether a state sees that it is missed is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

Row = tuple
Batch = Mapping[str, Sequence[Row]]


@dataclass
class Stored:
    write: int
    expired_before: bool = False


@dataclass
class Memory:
    """The rows of a state table by identity, and the ages at which they were used."""

    rows: dict[Row, Stored] = field(default_factory=dict)
    hits: Counter[int] = field(default_factory=Counter)
    missed: Counter[int] = field(default_factory=Counter)
    """Misses that must be seen."""
    perhaps_missed: Counter[int] = field(default_factory=Counter)

    def is_live(self, identity: Row, now: int, ttl: int) -> bool:
        return identity in self.rows and (not ttl or now - self.rows[identity].write < ttl)

    def use(self, identities: Iterable[Row], now: int, ttl: int) -> None:
        for identity in identities:
            stored = self.rows.get(identity)
            if stored is None or stored.write == now:
                continue
            age = now - stored.write
            if self.is_live(identity, now, ttl):
                self.hits[age] += 1
            elif stored.expired_before:
                self.perhaps_missed[age] += 1
            else:
                self.missed[age] += 1

    def write(self, identities: Iterable[Row], now: int) -> None:
        for identity in identities:
            self.rows[identity] = Stored(now)

    def end_batch(self, now: int, ttl: int) -> None:
        for identity, stored in self.rows.items():
            stored.expired_before |= not self.is_live(identity, now, ttl)

    def is_full(self) -> bool:
        """True if no row may have been dropped."""
        return not any(stored.expired_before for stored in self.rows.values())


def insert(dice: Random) -> Row:
    return (dice.choice("abcdef"), dice.randrange(12))


class Join:
    """SELECT o.k, o.v, p.v FROM o JOIN p ON o.k = p.k AND o.v < p.v: rows of one side use those of the other."""

    sql = """CREATE TABLE o (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
    CREATE TABLE p (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'p');
    CREATE TABLE r (k STRING, v BIGINT, w BIGINT) WITH ('connector' = 'print');
    INSERT INTO r SELECT o.k, o.v, p.v FROM o JOIN p ON o.k = p.k AND o.v < p.v;"""
    tables = ("o", "p")
    operator = "join_o_p"
    states = ("leftState", "rightState")
    stored = ("left", "right")

    def __init__(self) -> None:
        self.memories = [Memory(), Memory()]

    @staticmethod
    def row(dice: Random) -> Row:
        return insert(dice)

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        left, right = self.memories
        mine, theirs = set(rows["o"]), set(rows["p"])
        for k, v in mine:
            right.use([row for row in right.rows if row[0] == k and v < row[1]], now, ttls[1])
        left.write(mine, now)
        for k, v in theirs:
            left.use([row for row in left.rows if row[0] == k and row[1] < v], now, ttls[0])
        right.write(theirs, now)


class Keyed:
    """A state with a row for each key, which every row with the key uses."""

    tables = ("s",)

    def __init__(self) -> None:
        self.memories = [Memory() for _ in self.stored]

    @staticmethod
    def row(dice: Random) -> Row:
        return insert(dice)

    sql = operator = ""
    states: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    source = "CREATE TABLE s (k STRING, v BIGINT{}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 's');"


class Aggregate(Keyed):
    """COUNT(DISTINCT v) ... GROUP BY k: rows use their group, and their value in it."""

    sql = (
        Keyed.source.format("")
        + """CREATE TABLE r (k STRING, n BIGINT, d BIGINT) WITH ('connector' = 'print');
    INSERT INTO r SELECT k, COUNT(*), COUNT(DISTINCT v) FROM s GROUP BY k;"""
    )
    operator = "aggregate_s"
    states = ("groupAggregateState",)
    stored = ("groups", "values(v)")

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        for memory, used in zip(self.memories, ({(k,) for k, _ in rows["s"]}, set(rows["s"])), strict=True):
            memory.use(used, now, ttls[0])
            memory.write(used, now)


class FirstRow(Keyed):
    """The first row of each key by arrival: rows use the row that keeps them out, which is not written again."""

    sql = (
        Keyed.source.format(", pt AS PROCTIME()")
        + """CREATE TABLE r (k STRING, v BIGINT) WITH ('connector' = 'print');
    INSERT INTO r SELECT k, v FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt) AS n FROM s) WHERE n = 1;"""
    )
    operator = "deduplicate_s"
    states = ("deduplicateState",)
    stored = ("rows",)
    keeps_first = True

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        (memory,) = self.memories
        keys = {(k,) for k, _ in rows["s"]}
        memory.use(keys, now, ttls[0])
        memory.write([key for key in keys if not (self.keeps_first and memory.is_live(key, now, ttls[0]))], now)


class LastRow(FirstRow):
    """The last row of each key by arrival, which each new row replaces."""

    sql = FirstRow.sql.replace("ORDER BY pt", "ORDER BY pt DESC")
    keeps_first = False


class TopTwo(Keyed):
    """The two largest rows of each key: a row is ranked against all of them, and writes them again if it enters."""

    sql = (
        Keyed.source.format("")
        + """CREATE TABLE r (k STRING, v BIGINT, n BIGINT) WITH ('connector' = 'print');
    INSERT INTO r SELECT * FROM (
      SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s) WHERE n <= 2;"""
    )
    operator = "rank_s"
    states = ("rankState",)
    stored = ("first",)

    def __init__(self) -> None:
        super().__init__()
        self.arrivals = count()

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        (memory,) = self.memories
        came = [(k, v, next(self.arrivals)) for k, v in rows["s"]]
        for key in {k for k, _, _ in came}:
            there = [row for row in memory.rows if row[0] == key]
            memory.use(there, now, ttls[0])
            live = [row for row in there if memory.is_live(row, now, ttls[0])]
            # Of equal values, the one that came first stays.
            ranked = sorted([*live, *(row for row in came if row[0] == key)], key=lambda row: (-row[1], row[2]))
            for row in set(there) - set(ranked[:2]):
                del memory.rows[row]
            if set(ranked[:2]) - set(live):
                memory.write(ranked[:2], now)


class Upserts(Keyed):
    """The row of each key of an upsert source, which every change of the key uses; a deletion leaves none."""

    sql = """CREATE TABLE s (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
      'topic' = 's', 'properties.bootstrap.servers' = 'x:9092', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE r (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'print');
    INSERT INTO r SELECT k, v FROM s;"""
    operator = "normalize_s"
    states = ("changelogNormalizeState",)
    stored = ("rows",)

    @staticmethod
    def row(dice: Random) -> Row:
        return (dice.choice(("+U", "+U", "-D")), dice.choice("abcdef"), dice.randrange(12))

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        (memory,) = self.memories
        last = {key: kind for kind, key, _ in rows["s"]}
        memory.use([(key,) for key in last], now, ttls[0])
        for key, kind in last.items():
            memory.rows.pop((key,), None)
            if kind == "+U":
                memory.write([(key,)], now)


class UpsertsOfValues(Upserts):
    """A sink keyed by the value of an upsert source: a change uses all rows of its value."""

    sql = Upserts.sql.replace(
        "r (k STRING, v BIGINT, PRIMARY KEY (k)", "r (k STRING, v BIGINT, PRIMARY KEY (v)"
    ).replace("'print'", "'jdbc', 'url' = 'jdbc:postgresql://x/y', 'table-name' = 'r'")
    operator = "materialize_r"
    states = ("sinkMaterializeState",)
    stored = ("rows",)

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, int] = {}

    @staticmethod
    def row(dice: Random) -> Row:
        return (dice.choice(("+U", "+U", "-D")), dice.choice("abcdef"), dice.randrange(3))

    def batch(self, rows: Batch, now: int, ttls: Sequence[int]) -> None:
        (memory,) = self.memories
        touched: dict[Row, bool] = {}
        for key, (kind, value) in {key: (kind, value) for kind, key, value in rows["s"]}.items():
            before = self.values.get(key)
            after = value if kind == "+U" else None
            if before == after:
                continue
            if before is not None and memory.is_live((before, key), now, ttls[0]):
                touched[before, key] = False
            if after is not None:
                touched[after, key] = True
                self.values[key] = after
            else:
                del self.values[key]
        values = {value for value, _ in touched}
        there = [row for row in memory.rows if row[0] in values]
        memory.use(there, now, ttls[0])
        if ttls[0]:  # a change of a value writes its other rows again, as Flink writes the list of them
            memory.write([row for row in there if memory.is_live(row, now, ttls[0])], now)
        for row, is_there in touched.items():
            memory.rows.pop(row, None)
            if is_there:
                memory.write([row], now)


KINDS = (Join, Aggregate, FirstRow, LastRow, TopTwo, Upserts, UpsertsOfValues)
