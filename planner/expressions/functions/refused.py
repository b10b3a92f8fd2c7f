"""Flink's functions that a query may not call, each with the reason in one sentence, and what to write instead.

Whatever Flink has is either computed, see :mod:`hintplan.planner.expressions.scalars`, or stands here; a test goes
through all of Flink's own list.

>>> refusal("CURRENT_WATERMARK")[0]
'CURRENT_WATERMARK is not supported: a micro-batch has no watermark'
"""

from __future__ import annotations

_VARIANT = ("there is no type VARIANT", "keep the document as STRING")
_BITMAP = ("there is no type BITMAP", "write COUNT(DISTINCT x) for the number of values")
_WINDOW = (
    "there are no windows of event time",
    "group by a computed column, such as FLOOR(ts TO HOUR), and give its state a TTL",
)
_OVER = ("window functions stand before OVER, in batch mode", "use GROUP BY in a stream")
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
            "TUMBLE",
            "TUMBLE_START",
            "TUMBLE_END",
            "TUMBLE_ROWTIME",
            "TUMBLE_PROCTIME",
            "HOP",
            "HOP_START",
            "HOP_END",
            "HOP_ROWTIME",
            "HOP_PROCTIME",
            "SESSION",
            "SESSION_START",
            "SESSION_END",
            "SESSION_ROWTIME",
            "SESSION_PROCTIME",
            "CUMULATE",
        ],
        _WINDOW,
    ),
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
    "CURRENT_WATERMARK": ("a micro-batch has no watermark", "compare with CURRENT_TIMESTAMP"),
    "SOURCE_WATERMARK": ("a micro-batch has no watermark", "declare WATERMARK FOR ts AS ts in the table"),
    "SINGLE_VALUE": ("Flink itself makes it of a scalar sub-query", "write the sub-query, or MAX(x)"),
    "TYPEOF": (
        "Flink counts the length of computed text into its type, hintplan does not",
        "hintplan explain shows the types of columns",
    ),
}


def refusal(name: str) -> tuple[str, str] | None:
    """Why Flink's function ``name`` is not there, and what to write; None if Flink has none of that name."""
    found = _REASONS.get(name.upper())
    return None if found is None else (f"{name.upper()} is not supported: {found[0]}", found[1])
