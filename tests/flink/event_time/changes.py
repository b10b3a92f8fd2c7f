"""Windows over changelogs."""

from __future__ import annotations

from .tables import (
    AGGREGATE,
    CHANGED,
    CHANGELOG,
    HOP,
    ROWS,
    ROWTIME,
    SESSION,
    TUMBLE,
    TUMBLE_OF_VIEW,
    UPSERTED,
    WINDOW,
    Program,
)

CHANGES: dict[str, Program] = {
    "tumble over changes": Program(
        about="a source of all row kinds",
        tables=CHANGED,
        steps=CHANGELOG,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble over changes, one phase": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        config={"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "hop over changes": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        query=AGGREGATE.format(w=WINDOW, t=HOP),
    ),
    "session over changes": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "session over changes, the first row goes": Program(
        about="the session does not shrink",
        tables=CHANGED,
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:04
s -D a 1 00:00:01
s +I b 1 00:00:01
s -D b 1 00:00:01
s +I b 2 00:00:04
s +I a 4 00:00:30
""",
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "session over changes, the bridge goes": Program(
        about="the session does not split",
        tables=CHANGED,
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:05
s +I a 4 00:00:09
s -D a 2 00:00:05
s +I a 8 00:00:30
""",
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "tumble over upserts": Program(
        about="ChangelogNormalize below it",
        tables=UPSERTED,
        with_plan=True,
        steps="""
s +U a 1 00:00:01
s +U a 2 00:00:03
s +U b 3 00:00:03
s +U a 4 00:00:06     -- moves a to the next window
s +U b 5 00:00:09     -- closes [0, 5), and b is no more in it
s -D b 5 00:00:09
s +U a 6 00:00:20
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble over a GROUP BY": Program(
        about="the time is no longer an attribute",
        tables=ROWTIME,
        is_run=False,
        views=("CREATE VIEW q AS SELECT k, MAX(ts) AS ts FROM s GROUP BY k",),
        query=f"SELECT {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY {WINDOW}",
    ),
    "tumble over the last rows of keys": Program(
        about="a deduplicate that retracts rows",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        views=(
            "CREATE VIEW q AS SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r FROM s) WHERE r = 1",
        ),
        query=f"SELECT {WINDOW}, COUNT(*) AS n, SUM(v) AS s FROM {TUMBLE_OF_VIEW} GROUP BY {WINDOW}",
    ),
    "window top-n over changes": Program(
        tables=CHANGED,
        is_run=False,
        with_plan=True,
        query=f"SELECT k, v, {WINDOW} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {WINDOW} ORDER BY v DESC) AS r FROM {TUMBLE}) WHERE r <= 2",
    ),
}
