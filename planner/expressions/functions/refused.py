"""Flink's functions that a query may not call, each with a reason in one sentence and a replacement.

Every function of Flink is either compiled (:mod:`hintplan.planner.expressions.scalars`) or listed here. A test checks
this against Flink's own list.

>>> unsupported_function("CURRENT_WATERMARK")[0]
'CURRENT_WATERMARK is not supported: an expression does not know the watermark'
"""

from __future__ import annotations

_VARIANT = ("there is no type VARIANT", "keep the document as STRING")
_BITMAP = ("there is no type BITMAP", "write COUNT(DISTINCT x) for the number of values")
_WINDOW = (
    "it is a window, which FROM or GROUP BY has",
    "write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end",
)
_PART_OF_WINDOW = (
    "it belongs to a window in GROUP BY",
    "write GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), and TUMBLE_START with the same arguments in SELECT",
)
_OVER = ("window functions are supported before OVER, in batch mode", "use GROUP BY in a stream")
_PATTERN = ("MATCH_RECOGNIZE is not supported", "use joins and aggregates")
_MODEL = ("models are not supported", "call a function of your own in Python")
_REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("OBJECT_OF", "OBJECT_UPDATE"), ("there are no structured types", "write ROW(...)")),
    "MULTISET": ("Flink itself plans no MULTISET[...]", "write ARRAY[...], or COLLECT(x) for the values of a group"),
    **dict.fromkeys(("JSON", "PARSE_JSON", "TRY_PARSE_JSON"), _VARIANT),
    **dict.fromkeys(
        [
            "BITMAP_AND",
            "BITMAP_ANDNOT",
            "BITMAP_AND_AGG",
            "BITMAP_AND_CARDINALITY_AGG",
            "BITMAP_BUILD",
            "BITMAP_BUILD_AGG",
            "BITMAP_BUILD_CARDINALITY_AGG",
            "BITMAP_CARDINALITY",
            "BITMAP_FROM_BYTES",
            "BITMAP_OR",
            "BITMAP_OR_AGG",
            "BITMAP_OR_CARDINALITY_AGG",
            "BITMAP_TO_ARRAY",
            "BITMAP_TO_BYTES",
            "BITMAP_TO_STRING",
            "BITMAP_XOR",
            "BITMAP_XOR_AGG",
            "BITMAP_XOR_CARDINALITY_AGG",
        ],
        _BITMAP,
    ),
    **dict.fromkeys(
        [
            "TUMBLE_START",
            "TUMBLE_END",
            "TUMBLE_ROWTIME",
            "TUMBLE_PROCTIME",
            "HOP_START",
            "HOP_END",
            "HOP_ROWTIME",
            "HOP_PROCTIME",
            "SESSION_START",
            "SESSION_END",
            "SESSION_ROWTIME",
            "SESSION_PROCTIME",
        ],
        _PART_OF_WINDOW,
    ),
    **dict.fromkeys(("TUMBLE", "HOP", "SESSION"), _WINDOW),
    "CUMULATE": ("it is a window, which only FROM has", _WINDOW[1]),
    **dict.fromkeys(("RANK", "DENSE_RANK", "CUME_DIST", "PERCENT_RANK", "NTILE", "LEAD", "LAG"), _OVER),
    **dict.fromkeys("CLASSIFIER FIRST LAST PREV NEXT MATCH_ROWTIME MATCH_PROCTIME".split(), _PATTERN),  # noqa: SIM905
    **dict.fromkeys(("ML_PREDICT", "ML_EVALUATE", "VECTOR_SEARCH"), _MODEL),
    "APPROX_COUNT_DISTINCT": (
        "Flink has it in batch jobs only, as an estimate",
        "write COUNT(DISTINCT x)",
    ),
    "CURRENT_ROW_TIMESTAMP": (
        "a row could not be taken back as it was written, for it is another time for each row",
        "write CURRENT_TIMESTAMP, the time of the micro-batch",
    ),
    "CURRENT_WATERMARK": (
        "an expression does not know the watermark",
        "to keep late rows, name a table in the option late-rows.target of the table with the WATERMARK",
    ),
    "SOURCE_WATERMARK": ("no source has a watermark of its own", "declare WATERMARK FOR ts AS ts in the table"),
    "SINGLE_VALUE": ("Flink itself makes it of a scalar sub-query", "write the sub-query, or MAX(x)"),
    "TYPEOF": (
        "Flink counts the length of computed text into its type, hintplan does not",
        "hintplan explain shows the types of columns",
    ),
}


_ELSEWHERE: dict[str, str] = {
    "NVL": "write COALESCE(a, b)",
    "NVL2": "write IF(a IS NOT NULL, b, c)",
    **dict.fromkeys(("IF_NULL", "ISNULL"), "write IFNULL(a, b)"),
    "ZEROIFNULL": "write COALESCE(a, 0)",
    "IIF": "write IF(condition, a, b)",
    **dict.fromkeys(("DATE_ADD", "DATEADD"), "write TIMESTAMPADD(DAY, 1, d), or d + INTERVAL '1' DAY"),
    "DATE_SUB": "write TIMESTAMPADD(DAY, -1, d), or d - INTERVAL '1' DAY",
    "ADD_MONTHS": "write TIMESTAMPADD(MONTH, 1, d)",
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), "write TIMESTAMPDIFF(DAY, d1, d2), which is how far d2 is after d1"),
    "MONTHS_BETWEEN": "write TIMESTAMPDIFF(MONTH, d1, d2)",
    "DATE_TRUNC": "write FLOOR(ts TO HOUR)",
    **dict.fromkeys(("DATE_PART", "DATEPART"), "write EXTRACT(DAY FROM ts)"),
    **dict.fromkeys(("WEEKDAY", "DAYOFWEEKISO"), "write DAYOFWEEK(d)"),
    "LAST_DAY": "write TIMESTAMPADD(DAY, -1, TIMESTAMPADD(MONTH, 1, FLOOR(d TO MONTH)))",
    "DATE": "write CAST(ts AS DATE)",
    "STR_TO_DATE": "write TO_DATE(s, 'yyyy-MM-dd')",
    **dict.fromkeys(
        ("TO_CHAR", "FORMAT_TIMESTAMP"), "write DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss'), or CAST(x AS STRING)"
    ),
    **dict.fromkeys(("GETDATE", "SYSDATE", "SYSTIMESTAMP"), "write CURRENT_TIMESTAMP"),
    "WINDOW": _WINDOW[1],
    "CURDATE": "write CURRENT_DATE",
    "UNIX_MILLIS": "write UNIX_TIMESTAMP(s), in seconds",
    **dict.fromkeys(("TO_UNIXTIME", "EPOCH"), "write UNIX_TIMESTAMP(DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss'))"),
    **dict.fromkeys(("TIMESTAMP_MILLIS", "FROM_UNIXTIME_MILLIS"), "write TO_TIMESTAMP_LTZ(i, 3)"),
    **dict.fromkeys(("TRY_TO_TIMESTAMP", "TRY_TO_DATE"), "write TRY_CAST(s AS TIMESTAMP(3)), or AS DATE"),
    **dict.fromkeys(("LEN", "LENGTH"), "write CHAR_LENGTH(s)"),
    **dict.fromkeys(("LCASE", "TOLOWER"), "write LOWER(s)"),
    **dict.fromkeys(("UCASE", "TOUPPER"), "write UPPER(s)"),
    "POW": "write POWER(a, 2)",
    "SQUARE": "write a * a",
    **dict.fromkeys(("STRING_AGG", "GROUP_CONCAT"), "write LISTAGG(s, ',')"),
    "SPLIT_PART": "write SPLIT_INDEX(s, ',', 0), which counts from 0",
    "SUBSTRING_INDEX": "write SPLIT_INDEX(s, ',', 0)",
    "TO_NUMBER": "write CAST(s AS DECIMAL(38, 10)), or AS BIGINT",
    **dict.fromkeys(("CHARINDEX", "STRPOS"), "write LOCATE('a', s)"),
    "CONTAINS": "write LOCATE('a', s) > 0",
    **dict.fromkeys(("REGEXP_LIKE", "RLIKE"), "write REGEXP(s, 'a+')"),
    **dict.fromkeys(("JSON_EXTRACT", "JSON_EXTRACT_SCALAR", "GET_JSON_OBJECT"), "write JSON_VALUE(s, '$.a')"),
    "TO_JSON": "write JSON_OBJECT('a' VALUE a), or JSON_STRING(a)",
    **dict.fromkeys(("EXPLODE", "FLATTEN"), "write CROSS JOIN UNNEST(r) AS u(x) in FROM"),
    "SAFE_CAST": "write TRY_CAST(s AS INT)",
    "CONVERT": "write CAST(s AS INT)",
    **dict.fromkeys(("HASH", "XXHASH64", "HASHCODE"), "write MD5(s), or SHA2(s, 256)"),
    "SHA": "write SHA1(s)",
    "BASE64": "write TO_BASE64(s)",
    **dict.fromkeys(("MEDIAN", "PERCENTILE_CONT", "QUANTILE"), "write PERCENTILE(a, 0.5)"),
    "ANY_VALUE": "write MAX(a), or FIRST_VALUE(a)",
    **dict.fromkeys(
        ("ARG_MAX", "MAX_BY"),
        "number the rows of each key in a sub-query: ROW_NUMBER() OVER (PARTITION BY k ORDER BY a DESC) = 1",
    ),
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), "write COUNT(*) FILTER (WHERE condition)"),
    **dict.fromkeys(("SUM_IF", "SUMIF"), "write SUM(a) FILTER (WHERE condition)"),
    **dict.fromkeys(("BOOL_OR", "LOGICAL_OR"), "write COUNT(*) FILTER (WHERE condition) > 0"),
    **dict.fromkeys(("BOOL_AND", "LOGICAL_AND"), "write COUNT(*) FILTER (WHERE NOT condition) = 0"),
    "COLLECT_LIST": "write ARRAY_AGG(a)",
    "COLLECT_SET": "write ARRAY_AGG(DISTINCT a)",
    **dict.fromkeys(("CURRENT_USER", "USER"), "remove it: a job has no user"),
    **dict.fromkeys(("LEVENSHTEIN", "SOUNDEX"), "write a function of your own: CREATE FUNCTION ... LANGUAGE PYTHON"),
    "FORMAT": "write PRINTF('%d', a), or CONCAT(a, b)",
}
"""The Flink SQL to write instead of functions of other databases."""


def flink_equivalent(name: str) -> str | None:
    """Return the Flink SQL to write instead of ``name``, a function of other databases, or None if it is unknown."""
    return _ELSEWHERE.get(name.upper())


def unsupported_function(name: str) -> tuple[str, str] | None:
    """Return why hintplan does not support Flink's function ``name``, and what to write, or None if it is unlisted."""
    reason = _REASONS.get(name.upper())
    return None if reason is None else (f"{name.upper()} is not supported: {reason[0]}", reason[1])
