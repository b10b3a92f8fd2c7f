"""A record-by-record model of Flink 2.3's operators with state, TTL included.

Written from Flink's documented and measured behaviour, independent of the columnar engine: dictionaries and loops. It
is the oracle for the kernels: what it nets to over a batch must be what they emit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Row = tuple
Event = tuple[str, Row]


@dataclass
class Entry:
    count: int = 0
    partners: int = 0
    write: int = 0


@dataclass
class JoinModel:
    """``kind`` join of rows whose key is given by ``keys``; ``condition`` is over (left row, right row)."""

    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    widths: tuple[int, int]
    ttls: tuple[int, int] = (0, 0)
    condition: object = None
    state: tuple[dict, dict] = field(default_factory=lambda: ({}, {}))

    def key(self, side, row):
        return tuple(row[place] for place in self.keys[side])

    def preserved(self, side):
        return self.kind == "full" or (self.kind, side) in (("left", 0), ("right", 1), ("semi", 0), ("anti", 0))

    def live(self, side, now):
        ttl = self.ttls[side]
        return {r: e for r, e in self.state[side].items() if not ttl or e.write + ttl > now}

    def pair(self, side, row, other):
        left, right = (row, other) if side == 0 else (other, row)
        return left if self.kind in ("semi", "anti") else left + right

    def padded(self, side, row):
        if self.kind in ("semi", "anti"):
            return row
        pad = (None,) * self.widths[1 - side]
        return row + pad if side == 0 else pad + row

    def matches(self, side, row, other):
        left, right = (row, other) if side == 0 else (other, row)
        key = self.key(side, row)
        if None in key or key != self.key(1 - side, other):
            return False
        return self.condition is None or self.condition(left, right)

    def process(self, side: int, event: Event, now: int) -> list[Event]:
        kind, row = event
        add = kind in ("+I", "+U")
        sign = "+I" if add else "-D"
        out: list[Event] = []
        partners = 0
        other_state = self.state[1 - side]
        for other, entry in self.live(1 - side, now).items():
            if not self.matches(side, row, other):
                continue
            partners += entry.count
            for _ in range(entry.count):
                if self.preserved(1 - side):
                    flips = entry.partners == 0 if add else entry.partners == 1
                    if flips:
                        shown = self.kind == "semi"
                        out.append(("+I" if add == shown else "-D", self.padded(1 - side, other)))
                if self.kind not in ("semi", "anti"):
                    out.append((sign, self.pair(side, row, other)))
            if self.preserved(1 - side):
                entry.partners = max(entry.partners + (1 if add else -1), 0)
                entry.write = now
                other_state[other] = entry
        if self.preserved(side):
            if self.kind == "semi":
                if partners:
                    out.append((sign, row))
            elif not partners:
                out.append((sign, self.padded(side, row)))
        self.store(side, row, add, partners, now)
        return out

    def store(self, side, row, add, partners, now):
        if None in self.key(side, row):
            return
        entry = self.live(side, now).get(row)
        if add:
            count = entry.count + 1 if entry else 1
            self.state[side][row] = Entry(count, partners, now)
        elif entry:
            entry.count -= 1
            entry.write = now
            if not entry.count:
                del self.state[side][row]


@dataclass
class Group:
    count: int = 0
    numbers: list = field(default_factory=list)
    write: int = 0


@dataclass
class AggregateModel:
    """COUNT(*), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v), SUM(DISTINCT v) per key, over rows (key, v).

    The values of a group are remembered with their counts and own write times, as Flink's data views are.
    """

    ttl: int = 0
    retracting: bool = False
    groups: dict = field(default_factory=dict)

    def live(self, write, now):
        return not self.ttl or write + self.ttl > now

    def process(self, event: Event, now: int) -> list[Event]:
        kind, (key, value) = event
        add = kind in ("+I", "+U")
        group = self.groups.get(key)
        if group is not None and not self.live(group["write"], now):
            group = None
        if group is None:
            if not add:
                return []
            group = {"count": 0, "n": 0, "sum": 0, "views": {}, "min": None, "max": None, "dn": 0, "dsum": 0}
            self.groups[key] = group
            before = None
        else:
            before = self.result(key, group)
        group["write"] = now
        group["count"] += 1 if add else -1
        if value is not None:
            group["n"] += 1 if add else -1
            group["sum"] += value if add else -value
            self.update_view(group, value, add, now)
        if not group["count"]:
            del self.groups[key]
            return [("-D", before)] if before else []
        after = self.result(key, group)
        if before is None:
            return [("+I", after)]
        if before == after and not self.ttl:
            return []
        return [("-U", before), ("+U", after)]

    def update_view(self, group, value, add, now):
        views = group["views"]
        count, write = views.get(value, (0, 0))
        if not self.live(write, now):
            count = 0
        if add:
            if not count:
                group["dn"] += 1
                group["dsum"] += value
            views[value] = (count + 1, now)
            group["min"] = value if group["min"] is None else min(group["min"], value)
            group["max"] = value if group["max"] is None else max(group["max"], value)
            return
        if count == 1:
            group["dn"] -= 1
            group["dsum"] -= value
        if count > 1:
            views[value] = (count - 1, now)
            return
        views.pop(value, None)
        rest = [v for v, (n, w) in views.items() if n and self.live(w, now)]
        if value == group["min"]:
            group["min"] = min(rest, default=None)
        if value == group["max"]:
            group["max"] = max(rest, default=None)

    def result(self, key, group):
        total = group["sum"] if group["n"] else None
        distinct = group["dsum"] if group["dn"] else None
        return (key, group["count"], total, group["min"], group["max"], group["dn"], distinct)


@dataclass
class NormalizeModel:
    """Upserts by ``key`` (places of columns) as a changelog; ``-U`` rows are not looked at."""

    key: tuple[int, ...]
    ttl: int = 0
    state: dict = field(default_factory=dict)

    def process(self, event: Event, now: int) -> list[Event]:
        kind, row = event
        if kind == "-U":
            return []
        key = tuple(row[place] for place in self.key)
        old, written = self.state.get(key, (None, 0))
        if old is not None and self.ttl and written + self.ttl <= now:
            old = None
        if kind == "-D":
            self.state.pop(key, None)
            return [] if old is None else [("-D", old)]
        self.state[key] = (row, now)
        if old is None:
            return [("+I", row)]
        return [("-U", old), ("+U", row)] if self.ttl or old != row else []


@dataclass
class DeduplicateModel:
    """The first or last row of each ``key`` by the column at ``time``, or by arrival; NULL is before all times.

    After Flink's RowTimeDeduplicateFunction and ProcTimeDeduplicate...Function: a row that is kept is written anew, one
    that is not leaves the state alone.
    """

    key: tuple[int, ...]
    keep: str
    time: int | None = None
    ttl: int = 0
    state: dict = field(default_factory=dict)

    def process(self, row: Row, now: int) -> list[Event]:
        key = tuple(row[place] for place in self.key)
        old, written = self.state.get(key, (None, 0))
        if old is not None and self.ttl and written + self.ttl <= now:
            old = None
        if old is not None:
            new_time, old_time = (-1, -1) if self.time is None else (self.at(row), self.at(old))
            if not (new_time < old_time if self.keep == "first" else new_time >= old_time):
                return []
        self.state[key] = (row, now)
        return [("+I", row)] if old is None else [("-U", old), ("+U", row)]

    def at(self, row: Row) -> int:
        return -1 if row[self.time] is None else row[self.time]


@dataclass
class MaterializeModel:
    """All rows by ``key`` of a sink, as a list in the order of addition; what is last in it is in the sink."""

    key: tuple[int, ...]
    ttl: int = 0
    state: dict = field(default_factory=dict)

    def process(self, event: Event, now: int) -> list[Event]:
        kind, row = event
        key = tuple(row[place] for place in self.key)
        rows, written = self.state.get(key, ([], 0))
        if self.ttl and written + self.ttl <= now:
            rows = []
        if kind in ("+I", "+U"):
            self.state[key] = ([*rows, row], now)
            return [("+U" if rows else "+I", row)]
        if row not in rows:
            return []
        place = rows.index(row)
        left = rows[:place] + rows[place + 1 :]
        if not left:
            del self.state[key]
            return [("-D", row)]
        self.state[key] = (left, now)
        return [("+U", left[-1])] if place == len(left) else []
