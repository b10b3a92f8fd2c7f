"""Recorded programs whose output does not equal Flink's, each with its reason. All other programs must equal it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Defect:
    """Rows that Flink lost; without any, Flink delayed rows to the end of the input."""

    reason: str
    lost: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference that our documentation names: rows come after other ``steps``; ``only_ours`` only come in ours."""

    reason: str
    steps: tuple[int, ...]
    only_ours: tuple[tuple[str, ...], ...] = ()
    only_flinks: tuple[tuple[str, ...], ...] = ()


_DAY = ("a", "2024-03-31T00:00", "2024-04-01T00:00", "2024-03-31T15:59:59.999Z", "4", "10")
_HOUR = ("a", "2024-03-31T04:00", "2024-03-31T05:00", "1", "1")
_ZONES = (
    "FLINK-38075: rows are lost if the watermark stops between the end of a window and a multiple of its size in UTC"
)
FLINKS_DEFECTS = {
    "tumble, before the epoch": Defect(reason="the watermark begins at 1970, so earlier windows close at the end"),
    "LTZ, days in Shanghai": Defect(reason=_ZONES, lost=(_DAY,)),
    "LTZ, days in Shanghai, one phase": Defect(reason=_ZONES, lost=(_DAY,)),
    "LTZ, hours in Kolkata, watermark between": Defect(reason=_ZONES, lost=(_HOUR,)),
    "LTZ, hours in Kolkata, watermark between, one phase": Defect(reason=_ZONES, lost=(_HOUR,)),
}
_TIES = (("2", "02"), ("2", "06"), ("3", "05"), ("5", "01"), ("5", "03"), ("9", "07"))


def _ranked(*ranks: int | None) -> tuple[tuple[str, ...], ...]:
    """The rows of the programs with ranks by a column that is no time; None leaves a row out."""
    rows = zip(_TIES, ranks, strict=True)
    return tuple(("a", v, f"2024-01-01T00:00:{at}", str(rank)) for (v, at), rank in rows if rank is not None)


OURS = {
    "over, by a column that is no time, RANK": Difference(
        reason="rows that are equal in the order have the rank of the first of them, as the standard has it",
        steps=tuple(range(7)),
        only_ours=_ranked(1, 1, None, 4, 4, None),
        only_flinks=_ranked(2, 2, None, 5, 5, None),
    ),
    "over, by a column that is no time, DENSE_RANK": Difference(
        reason="rows that are equal in the order count once, as the standard has it",
        steps=tuple(range(7)),
        only_ours=_ranked(1, 1, 2, 3, 3, 4),
        only_flinks=_ranked(2, 2, 3, 5, 5, 6),
    ),
    "two parallel sources, one without rows": Difference(
        reason="a partition counts from its first row, so an empty one holds nothing back", steps=(1, 2)
    ),
    "two parallel sources, one idle": Difference(
        reason="rows of an idle subtask wait in its local aggregate, and are late when they come out of it",
        steps=(3, 10),
        only_ours=(
            ("a", "2024-01-01T00:00:20", "2024-01-01T00:00:25", "2", "12"),
            ("b", "2024-01-01T00:00", "2024-01-01T00:00:05", "1", "2"),
        ),
        only_flinks=(("a", "2024-01-01T00:00:20", "2024-01-01T00:00:25", "1", "3"),),
    ),
    "over, RANK": Difference(
        reason="the rank of rows with equal times is the number of earlier rows and one, as the standard has it",
        steps=(1, 5, 8, 10),
        only_ours=(("a", "16", "2024-01-01T00:00:03", "3"), ("a", "2", "2024-01-01T00:00:03", "3")),
        only_flinks=(("a", "16", "2024-01-01T00:00:03", "4"), ("a", "2", "2024-01-01T00:00:03", "4")),
    ),
    "over, LAG": Difference(
        reason="LAG reads the row before, also among rows with equal times, as the standard has it",
        steps=(1, 5, 8, 10),
        only_ours=(("a", "2", "2024-01-01T00:00:03", "4"),),
        only_flinks=(("a", "2", "2024-01-01T00:00:03", "2"),),
    ),
    "temporal join, with another equality": Difference(
        reason="a version belongs to the primary key, and ends when the key has another one",
        steps=(3, 6, 7),
        only_ours=(("1", "E", "2024-01-01T00:00:06", None, None),),
        only_flinks=(("1", "E", "2024-01-01T00:00:06", "1", "2024-01-01T00:00:01"),),
    ),
    "temporal join, state TTL": Difference(
        reason="a TTL loses no row that waits",
        steps=(4, 6, 7),
        only_ours=(("1", "E", "2024-01-01T00:00:02", "100", "2024-01-01T00:00:01"),),
    ),
}


@dataclass(frozen=True, kw_only=True)
class LateRows:
    """The late rows of a program, where Flink counts another number: ``ours`` are rows."""

    reason: str
    ours: int


_TWO_PHASES = "late rows of one key and window are one, in two phases"
_KEPT = "an interval join counts none; ours counts rows that come too late to be kept"
COUNTED_OTHERWISE = {
    "tumble, boundaries": LateRows(reason=_TWO_PHASES, ours=2),
    "tumble over the last rows of keys": LateRows(reason=_TWO_PHASES, ours=4),
    **{
        f"window join, {kind}": LateRows(reason="a join of windows counts none", ours=2)
        for kind in ("inner", "left", "right", "full", "semi", "with a condition")
    },
    **{
        f"interval join, {name}": LateRows(reason=_KEPT, ours=4)
        for name in ("inner", "left", "right", "full", "with a condition")
    },
    "interval join, without an equality": LateRows(reason=_KEPT, ours=5),
    **{
        name: LateRows(reason="a sort counts none", ours=1)
        for name in ("sort by rowtime", "sort by rowtime and a column")
    },
    **{
        name: LateRows(reason="none is counted of a key that has its first row", ours=1)
        for name in ("deduplicate, first by rowtime", "deduplicate by rowtime below a window")
    },
    "group window, hop with a slide longer than the size": LateRows(reason="of 2, one is in no window", ours=1),
}
"""Programs whose late rows Flink counts otherwise."""

OPEN_AT_THE_END = tuple(
    f"{kind}, processing time{more}"
    for kind, more in (
        *(("group window", ""), ("group window", ", session")),
        *(("tumble", ""), ("hop", ""), ("cumulate", ""), ("session", "")),
        *(("tumble", ", of a view"), ("tumble", ", all rows"), ("tumble", ", windows of windows")),
        *(("tumble", ", grouped again"), ("session", ", without an aggregate")),
    )
)
"""Programs whose last windows of processing time are open at the end: ours closes them, and Flink loses their rows."""

OF_PROCESSING_TIME = (
    "group window, early fire, delay",
    "group window, late fire, delay",
    "group window, processing time, early fire",
    "idle, the only table",
    "tumble, state TTL",
    "union, one table is idle",
    *(f"interval join, processing time, {kind}" for kind in ("inner", "left", "full")),
    "tumble, processing time, without an aggregate",
    "tumble, processing time, grouped by window_start only",
    *OPEN_AT_THE_END,
)
"""Programs with pauses: their output depends on the time of each batch."""

_IN_A_STREAM = "not supported in a stream"
_NO_ROWTIME = "TUMBLE needs a rowtime"
_PROCESSING_TIME = "processing time"
REFUSED = {
    "hop, size is no multiple of the slide": "multiple",
    "hop, slide larger than size": "multiple",
    "tumble of a sub-query": "found a query",
    "tumble of a column that is no time attribute": _NO_ROWTIME,
    "rowtime with microseconds": "TIMESTAMP(6)",
    "tumble over a GROUP BY": _NO_ROWTIME,
    "window top-n over changes": "rows that are only added",
    "tumble, early fire": "table.exec.emit.early-fire",
    "tumble, late fire": "table.exec.emit.late-fire",
    "window deduplicate, processing time": _PROCESSING_TIME,
    "window top-n, processing time": _PROCESSING_TIME,
    "window top-n, processing time, of an aggregate": _PROCESSING_TIME,
    "window rank by RANK": "Flink takes the first rows of a window by ROW_NUMBER() only",
    "window join over changes": "rows that are only added",
    "interval join over changes": "rows that are only added",
    "window join, processing time": _PROCESSING_TIME,
    "group window, late fire, without a state TTL or lateness": "table.exec.emit.late-fire",
    "temporal join, key is not the primary key": "ON does not compare 'rate'",
    "temporal join, no primary key": "no PRIMARY KEY",
    "temporal join, primary key without a watermark": "processing time",
    "temporal join, TIMESTAMP and TIMESTAMP_LTZ": "must have the same type",
    "temporal join, view without its time": "no rowtime",
    "temporal join, by a column that is no time attribute": "takes a rowtime",
    "group window, session, early fire": "table.exec.emit.early-fire",
    "group window, grouping sets": "GROUPING SETS",
    "group window, rollup beside it": "ROLLUP",
    "group window, auxiliary function of another window": "TUMBLE_START",
    "group window, two of them": "one window only",
    "group window, processing time, rowtime of a window": "has no rowtime",
    "group window of a column that is no time attribute": _NO_ROWTIME,
    "group window, selected, but not grouped": "neither grouped nor aggregated",
    "temporal join, right join": "RIGHT JOIN",
    "window above a temporal join, by the time of r": "the time of a version",
    "temporal join, processing time, of a versioned view": "looked up",
    "over, two windows": "all window functions of a query must have the same window in a stream",
    "over, LEAD": _IN_A_STREAM,
    "over, FOLLOWING": _IN_A_STREAM,
    "over, descending": _IN_A_STREAM,
    "over changes": f"{_IN_A_STREAM}, by Flink neither: the rows can change",
    "sort by rowtime, descending": "ORDER BY",
    "on conflict do error": "ON CONFLICT",
    "current watermark, of a column that is no time attribute": "CURRENT_WATERMARK",
    "window above a regular join": _NO_ROWTIME,
    "window above a regular aggregate's key": _NO_ROWTIME,
    "rowtime that is computed anew": _NO_ROWTIME,
}
"""Programs that Flink and our compiler refuse, with words of our message."""

FAILS = ("tumble, NULL time",)
"""Programs that fail when they run, in Flink and in ours."""

TAKEN = {"rowtime cast": "a cast to the type of the column changes nothing"}
"""Programs that Flink refuses, and that our compiler takes, with the reason."""

WARNED = {"tumble, STATE_TTL hint": "watermark"}
"""Programs that Flink refuses, and that our compiler warns of."""

REFUSED_BY_OURS = {
    "tumble, processing time, over changes": "rows that can change",
    **{f"session over changes{more}": "SESSION" for more in ("", ", the first row goes", ", the bridge goes")},
    "group window, session over changes": "SESSION",
    "watermarks pushed into the source, on event": "on-event",
    "watermarks not pushed down, on event": "on-event",
    "OPTIONS hint with scan.watermark": "scan.watermark.emit.strategy",
    "temporal join, versioned view with a filter": "a filter of versions",
    "temporal join, view of the first rows": "the first row of each key",
    "on conflict do nothing": "ON CONFLICT",
    "match recognize": "MATCH_RECOGNIZE",
    "match recognize, within": "MATCH_RECOGNIZE",
    "current watermark": "CURRENT_WATERMARK",
    "current watermark, above an aggregate": "CURRENT_WATERMARK",
    "lookup of rows that are late": "CURRENT_WATERMARK",
}
"""Programs that Flink takes, and that are left out."""

NOT_BUILT = {}
"""Programs that Flink takes, and whose operators are not built."""

NETTED = (
    "group window above early results",
    "group window, grouped again",
    "session, grouped by more than its key",
    "tumble, processing time, grouped again",
    *(f"over, by a column that is no time, {name}" for name in ("over changes", "AVG", "FIRST_VALUE")),
)
"""Programs whose top goes by no time, above results that change: of the changes of a batch, ours are what is left."""

SAME_IN_THE_END = (
    "tumble, grouped by window_start only",
    "aggregate of tumble's columns",
    "deduplicate, last by rowtime",
    "deduplicate, last by rowtime, late rows",
    "deduplicate, first by processing time",
    "top-n by rowtime",
    "sort by rowtime, limit",
    "on conflict do deduplicate",
    "WATERMARK of an upsert source, regular aggregate",
)
"""Programs that do not go by the watermark, in Flink and in ours: the rows that are left are the same."""

_REGULAR = "a regular join, which keeps all rows"
WITHOUT_TIME = {
    **{f"interval join, {name}": _REGULAR for name in ("one bound only", "semi", "semi, run")},
    "window join, only window_start is compared": _REGULAR,
    "window join, different windows": _REGULAR,
}
"""Programs that compile to operators that do not go by the watermark, though Flink's may."""

COMPILED = {
    "interval join, open bounds": {"watermark-assigner", "interval-join"},
    "two rowtimes into a sink": {"watermark-assigner", "interval-join"},
    "nexmark q5": {"watermark-assigner", "window-aggregate", "window-join"},
    "nexmark q7": {"watermark-assigner", "window-aggregate", "join"},
}
"""Programs that Flink only compiled, with operators of our plan."""
