"""Queries by processing time, for which Flink's results are recorded, and the rows that come one after another.

Data only: it is read both by record_arrivals.py, in Flink's environment, and by our tests. Flink tells two rows apart
by the millisecond in which it reads them, so that it is given one a second. In ``ORDER BY pt``, its Rank takes the
processing time for NULL, so that its order is that of arrival even with ``DESC``; it is right about ``arrived``, which
is the processing time as a value. Both are recorded.
"""

from __future__ import annotations

COUNT = 10
"""Rows, with ids from 1."""
COMPUTED = "k AS MOD(id, 3), v AS MOD(id * id, 5), pt AS PROCTIME()"
AS_VALUE = "CAST(pt AS TIMESTAMP_LTZ(3)) AS arrived"

_OF_K = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM s)"
_LAST = _OF_K.format("pt DESC")

QUERIES: dict[str, tuple[str, str]] = {
    "the first two": ("k BIGINT, id BIGINT, n BIGINT", f"SELECT k, id, n FROM {_OF_K.format('pt')} WHERE n <= 2"),
    "the last two": ("k BIGINT, id BIGINT, n BIGINT", f"SELECT k, id, n FROM {_LAST} WHERE n <= 2"),
    "the last two without numbers": ("k BIGINT, id BIGINT", f"SELECT k, id FROM {_LAST} WHERE n <= 2"),
    "the last but one": ("k BIGINT, id BIGINT", f"SELECT k, id FROM {_LAST} WHERE n = 2"),
    "those before the last": ("k BIGINT, id BIGINT, n BIGINT", f"SELECT k, id, n FROM {_LAST} WHERE n BETWEEN 2 AND 3"),
    "as many of the last as the key says": (
        "k BIGINT, id BIGINT, n BIGINT",
        f"SELECT k, id, n FROM {_LAST} WHERE n <= k",
    ),
    "the last three of all": (
        "id BIGINT, n BIGINT",
        "SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY pt DESC) AS n FROM s) WHERE n <= 3",
    ),
    "the sum of the last two": (
        "k BIGINT, m BIGINT",
        f"SELECT k, SUM(id) FROM {_LAST} WHERE n <= 2 GROUP BY k",
    ),
    "the last of equals": (
        "k BIGINT, v BIGINT, id BIGINT, n BIGINT",
        f"SELECT k, v, id, n FROM {_OF_K.format('v, pt DESC')} WHERE n <= 2",
    ),
    "the last of all equals": (
        "v BIGINT, id BIGINT, n BIGINT",
        "SELECT v, id, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v DESC, pt DESC) AS n FROM s) WHERE n <= 5",
    ),
}
