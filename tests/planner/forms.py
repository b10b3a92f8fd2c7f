"""Writes ``flink_forms.json``: what the compiler makes of Flink's calls, so that plans are shown in Flink's words.

    python -m tests.planner.forms

A sample is a call of columns ``_1``, ``_2`` and so on, whose types stand before it; ``'yyyy'@2`` is a literal in place
of ``_2``. Each is compiled as a query would be. A form says nothing where the compiler keeps the call as it is.
The result is checked in, because :mod:`hintplan.plans.expressions.shown` must not know the planner;
``test_shown_expressions.py`` says when it is stale, and that what is shown compiles to the same plan.

>>> compiled("FLOOR(_1 TO HOUR)", ("TIMESTAMP_LTZ(3)",))
"date_trunc('HOUR', _1)"
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from hintplan.planner.compile import compile_script
from hintplan.planner.expressions.scalars import known_functions
from hintplan.plans.errors import SqlError
from hintplan.plans.expressions import shown
from hintplan.plans.expressions.nodes import Node, read_expression
from hintplan.plans.operators import Calc

FILE = Path(shown.__file__).with_name("flink_forms.json")

_STAMPS = ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(0)")
_ZONED = ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)")
_MOMENTS = (*_STAMPS, *_ZONED)
_TIMES = (*_MOMENTS, "DATE")
_TEXT, _INT, _BIG, _DOUBLE, _DATE = ("STRING",), ("INT",), ("BIGINT",), ("DOUBLE",), ("DATE",)
_REALS = ("DOUBLE", "FLOAT")
_NUMBERS = ("DOUBLE", "INT", "BIGINT", "DECIMAL(10, 2)")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_PATTERNS = (
    "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd HH:mm", "yyyy-MM-dd HH", "yyyy-MM-dd", "yyyy-MM",
    "yyyy", "MM-dd", "MM", "dd", "HH:mm:ss", "HH:mm:ss.SSS", "HH:mm", "HH", "mm", "ss", "yyyyMMdd", "yyyyMMddHH",
    "yyyyMMddHHmm", "yyyyMMddHHmmss", "yyyyMM", "HHmm", "HHmmss", "yyyy/MM/dd", "yyyy/MM/dd HH:mm:ss", "dd.MM.yyyy",
    "dd.MM.yyyy HH:mm:ss", "dd/MM/yyyy", "MM/dd/yyyy", "dd-MM-yyyy", "yyyy-MM-dd''T''HH:mm:ss",
    "yyyy-MM-dd''T''HH:mm:ss.SSS", "yyyy-MM-dd''T''HH:mm:ss''Z''", "yyyy-MM-dd''T''HH:mm:ss.SSS''Z''", "yyyyMMdd_HH",
    "yyMMdd", "yyMM", "yy", "d", "M", "H", "MMM", "MMMM", "MMM yyyy", "d MMM yyyy", "yyyy-MM-dd HH:00:00",
    "yyyy-MM-dd HH:mm:00", "yyyy-MM-dd 00:00:00", "EEEE", "EEE",
)  # fmt: skip
_MEMBER = "_1, '$.a'@2"
_OTHER = {"STRING": "'c'", "INT": "13", "DOUBLE": "13.5E0", "BOOLEAN": "FALSE"}
_INSTEAD = ("", "EMPTY ARRAY", "EMPTY OBJECT")

Sample = tuple[tuple[str, ...], ...]


def _samples() -> Iterator[tuple[str, Sample]]:
    """Calls, each with the types that its columns may have; of two with the same form the first stands for both."""
    for pattern in _PATTERNS:
        yield f"DATE_FORMAT(_1, '{pattern}')", (("TIMESTAMP(3)", *_TEXT, *_ZONED),)
    for target in ("STRING", "DATE", *_MOMENTS, "TIME(0)", *_WHOLE):
        yield f"CAST(_1 AS {target})", ((*_MOMENTS, *_TEXT, *_REALS),)
        yield f"TRY_CAST(_1 AS {target})", ((*_MOMENTS, *_TEXT, *_REALS),)
    for unit in _UNITS:
        yield f"FLOOR(_1 TO {unit})", ((*_TIMES, "TIME(0)"),)
        yield f"CEIL(_1 TO {unit})", (_TIMES,)
        if unit != "MILLISECOND":
            yield f"TIMESTAMPDIFF({unit}, _1, _2)", (_TIMES, _TIMES)
    for unit in ("DAY", "MONTH"):
        yield f"TIMESTAMPADD({unit}, _2, _1)", (_DATE, _INT)
    for unit in (*_UNITS, "DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH", "MICROSECOND", "NANOSECOND", "DECADE", "CENTURY"):
        yield f"EXTRACT({unit} FROM _1)", ((*_TIMES, "TIME(0)"),)
    yield from _of_times()
    yield from _of_texts()
    yield from _of_numbers()
    yield from _of_json()
    yield from _of_nested()


def _of_times() -> Iterator[tuple[str, Sample]]:
    yield "TO_TIMESTAMP(_1)", (_TEXT,)
    yield "TO_TIMESTAMP(_1, 'yyyy'@2)", (_TEXT,)
    yield "TO_DATE(_1)", (_TEXT,)
    yield "TO_DATE(_1, 'yyyy'@2)", (_TEXT,)
    yield "UNIX_TIMESTAMP()", ()
    yield "UNIX_TIMESTAMP(_1)", (_TEXT,)
    yield "UNIX_TIMESTAMP(_1, 'yyyy'@2)", (_TEXT,)
    yield "FROM_UNIXTIME(_1)", (_BIG,)
    for digits in ("0", "3"):
        yield f"TO_TIMESTAMP_LTZ(_1, {digits})", (("BIGINT", "INT", "DOUBLE", "FLOAT", "DECIMAL(10, 2)"),)
    for now in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP", "LOCALTIME", "PROCTIME()"):
        yield now, ()
    for one, other in product(("'UTC'", "'Asia/Tokyo'@2"), ("'UTC'", "'Europe/Berlin'@3")):
        yield f"CONVERT_TZ(_1, {one}, {other})", (_TEXT,)
    yield "CONVERT_TZ(_1, _2, _3)", (_TEXT, _TEXT, _TEXT)


def _of_texts() -> Iterator[tuple[str, Sample]]:
    for name in ("ASCII", "CHAR_LENGTH", "FROM_BASE64", "INITCAP", "INET_ATON", "IS_ALPHA", "IS_DECIMAL", "IS_DIGIT"):
        yield f"{name}(_1)", (_TEXT,)
    for name in ("JSON_QUOTE", "JSON_UNQUOTE", "STR_TO_MAP", "TO_BASE64", "UNHEX", "URL_DECODE", "URL_ENCODE"):
        yield f"{name}(_1)", (_TEXT,)
    for name in ("SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "MD5", "LTRIM", "RTRIM", "BTRIM", "UPPER", "REVERSE"):
        yield f"{name}(_1)", (_TEXT,)
    for call in (
        "SUBSTRING(_1, _2)", "SUBSTRING(_1, _2, _3)", "SUBSTRING(_1, 2@2, _3)", "SUBSTRING(_1, _2, 2@3)",
        "SUBSTRING(_1, -2@2)", "`LEFT`(_1, _2)", "`RIGHT`(_1, _2)", "REPEAT(_1, _2)", "CHR(_2)",
    ):  # fmt: skip
        yield call, (_TEXT, _INT, _INT)
    for call in (
        "LTRIM(_1, _2)", "RTRIM(_1, _2)", "BTRIM(_1, _2)", "TRIM(BOTH _2 FROM _1)", "TRIM(LEADING _2 FROM _1)",
        "TRIM(TRAILING _2 FROM _1)", "POSITION(_2 IN _1)", "INSTR(_1, _2)", "LOCATE(_2, _1)", "REGEXP(_1, 'x'@2)",
        "REGEXP_REPLACE(_1, 'x'@2, _3)", "REGEXP_EXTRACT(_1, 'x'@2)", "REGEXP_EXTRACT(_1, '(x)'@2, 1@3)", 
        "STARTSWITH(_1, _2)", "ENDSWITH(_1, _2)", "PARSE_URL(_1, 'HOST')", "PARSE_URL(_1, 'PATH')",
        "PARSE_URL(_1, 'QUERY')", "PARSE_URL(_1, 'QUERY', 'x'@2)", "PRINTF('%s'@2, _1)", "PRINTF('%s-%s'@3, _1, _2)",
        "ENCODE(_1, 'UTF-8')", "OVERLAY(_1 PLACING _2 FROM 1@3)", 
    ):  # fmt: skip
        yield call, (_TEXT, _TEXT, _TEXT)
    for call in (
        "OVERLAY(_1 PLACING _2 FROM _3)", "OVERLAY(_1 PLACING _2 FROM _3 FOR _4)", 
         "ELT(_3, _1, _2)",
    ):  # fmt: skip
        yield call, (_TEXT, _TEXT, _INT, _INT)
    for separator in (",", "|", "/", "-", "_", ".", ";", ":", " ", "#", "&"):
        yield f"SPLIT(_1, '{separator}')", (_TEXT,)
        yield f"SPLIT_INDEX(_1, '{separator}', _2)", (_TEXT, _INT)
        for place in range(4):
            yield f"SPLIT_INDEX(_1, '{separator}', {place})", (_TEXT,)
    yield "DECODE(_1, 'UTF-8')", (("BYTES",),)


def _of_numbers() -> Iterator[tuple[str, Sample]]:
    for name in ("CEIL", "FLOOR", "LN", "LOG10", "LOG2", "LOG", "SQRT", "ABS", "SIGN", "INET_NTOA", "BIN", "HEX"):
        yield f"{name}(_1)", (_NUMBERS,)
    yield "CEIL(_1)", (("FLOAT",),)
    yield "FLOOR(_1)", (("FLOAT",),)
    for name in ("POWER", "LOG", "MOD", "ATAN2"):
        yield f"{name}(_1, _2)", (_NUMBERS, (*_INT, *_DOUBLE))
    for places in range(4):
        yield f"ROUND(_1, {places})", (_NUMBERS,)
        yield f"TRUNCATE(_1, {places})", (tuple(f"DECIMAL(10, {digits})" for digits in range(1, 7)),)
    for target in _WHOLE:
        yield f"CAST(_1 AS {target})", ((*_WHOLE, "DECIMAL(10, 0)", "DECIMAL(20, 2)", "DECIMAL(38, 18)"),)
    yield "CAST(_1 AS STRING)", (("BOOLEAN",),)
    for sign in ("+", "-", "*"):
        yield f"_1 {sign} _2", (("DECIMAL(38, 2)",), ("DECIMAL(38, 2)",))
    for one, other in product(_REALS, (*_REALS, "INT", "BIGINT", "DECIMAL(10, 2)")):
        yield "_1 / _2", ((one,), (other,))
        yield "_1 / _2", ((other,), (one,))


def _of_json() -> Iterator[tuple[str, Sample]]:
    for kind in ("", " VALUE", " OBJECT", " ARRAY", " SCALAR"):
        yield f"_1 IS JSON{kind}", (_TEXT,)
    yield f"JSON_EXISTS({_MEMBER})", (_TEXT,)
    for word in ("TRUE", "FALSE", "UNKNOWN"):
        yield f"JSON_EXISTS({_MEMBER} {word} ON ERROR)", (_TEXT,)
    yield f"JSON_VALUE({_MEMBER})", (_TEXT,)
    for kind, default in (("STRING", "'b'"), ("INT", "12"), ("DOUBLE", "12.5E0"), ("BOOLEAN", "TRUE")):
        returning = "" if kind == "STRING" else f" RETURNING {kind}"
        yield f"JSON_VALUE({_MEMBER}{returning})", (_TEXT,)
        yield f"JSON_VALUE({_MEMBER}{returning} DEFAULT {default}@3 ON EMPTY)", (_TEXT,)
        yield f"JSON_VALUE({_MEMBER}{returning} DEFAULT {default}@3 ON ERROR)", (_TEXT,)
        other = _OTHER[kind]
        yield f"JSON_VALUE({_MEMBER}{returning} DEFAULT {default}@3 ON EMPTY DEFAULT {other}@4 ON ERROR)", (_TEXT,)
    yield f"JSON_QUERY({_MEMBER})", (_TEXT,)
    wrappers = ("", " WITHOUT ARRAY WRAPPER", " WITH CONDITIONAL ARRAY WRAPPER", " WITH UNCONDITIONAL ARRAY WRAPPER")
    for wrapper, empty, error in product(wrappers, _INSTEAD, _INSTEAD):
        clauses = (f" {empty} ON EMPTY" if empty else "") + (f" {error} ON ERROR" if error else "")
        yield f"JSON_QUERY({_MEMBER}{wrapper}{clauses})", (_TEXT,)


def _of_nested() -> Iterator[tuple[str, Sample]]:
    lists, maps = ("ARRAY<INT>", "ARRAY<STRING>"), ("MAP<STRING, INT>",)
    yield "CARDINALITY(_1)", ((*lists, *maps),)
    yield "_1[_2]", (lists, _INT)
    for call in (
        "ARRAY_CONTAINS(_1, _2)", "ARRAY_CONTAINS(_1, 1@2)", "ARRAY_CONTAINS(_1, 'a'@2)",
        "ARRAY_POSITION(_1, _2)", "ARRAY_REMOVE(_1, _2)", "ARRAY_APPEND(_1, _2)",
        "ARRAY_PREPEND(_1, _2)", "ARRAY_DISTINCT(_1)", "ARRAY_REVERSE(_1)", "ARRAY_MAX(_1)", "ARRAY_MIN(_1)",
        "ARRAY_SORT(_1)", "ARRAY_SORT(_1, FALSE)",
        "ARRAY_SORT(_1, TRUE, FALSE)", "ARRAY_SORT(_1, FALSE, TRUE)", "ELEMENT(_1)",
    ):  # fmt: skip
        yield call, (lists, (*_INT, *_TEXT))
    for call in ("ARRAY_JOIN(_1, ','@2)", "ARRAY_JOIN(_1, ','@2, '-'@3)"):
        yield call, (("ARRAY<STRING>",),)
    for call in ("ARRAY_CONCAT(_1, _2)", "ARRAY_UNION(_1, _2)", "ARRAY_EXCEPT(_1, _2)", "ARRAY_INTERSECT(_1, _2)"):
        yield call, (("ARRAY<INT>",), ("ARRAY<INT>",))
    yield "MAP_UNION(_1, _2)", (maps, maps)
    for sign in ("=", "<>", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"):
        yield f"_1 {sign} _2", (maps, maps)
    for call in ("MAP_KEYS(_1)", "MAP_VALUES(_1)", "MAP_ENTRIES(_1)"):
        yield call, (maps,)


_PLACE = re.compile(r"_\d")
_LITERAL = re.compile(r"('[^']*'|-?[\d.]+(?:E0)?|TRUE|FALSE)@(\d)")


def compiled(call: str, types: Sequence[str]) -> str | None:
    """Return the expression of a plan for ``call`` of columns of ``types``; None if there is not exactly one."""
    columns = ", ".join(f"_{n} {kind}" for n, kind in enumerate(types, 1)) or "_1 INT"
    script = (
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');\n"
        f"CREATE TABLE s WITH ('connector' = 'print') AS SELECT {call} AS r FROM t;"
    )
    try:
        plan = compile_script(script).plan
    except SqlError:
        return None
    items = [item for each in plan.operators if isinstance(each, Calc) for item in each.select]
    return items[0].expression if len(items) == 1 else None


def forms() -> dict[str, dict[str, list[str]]]:
    """What the compiler makes of each call, for columns of several types; by the roots of the trees."""
    found: dict[str, dict[str, list[str]]] = {}
    known: set[str] = set()
    for sample, alternatives in _samples():
        for types in product(*alternatives):
            spark = compiled(_LITERAL.sub(r"\1", sample), types)
            if spark is None:
                continue
            flink = sample
            for literal, place in _LITERAL.findall(sample):
                spark = _with_place(spark, literal, f"_{place}")
                flink = flink.replace(f"{literal}@{place}", f"_{place}")
            tree = read_expression(spark)
            # What depends on the value of a literal is no form for others.
            is_general = set(_PLACE.findall(flink)) == set(_PLACE.findall(spark))
            if tree is None or not is_general or spark in known or _is_plain(tree):
                continue
            known.add(spark)
            form = shown.form_of(spark)
            assert form is not None
            found.setdefault(shown.root_of(form), {}).setdefault(flink, []).append(spark)
    return found


def _is_plain(tree: Node) -> bool:
    """Tell whether ``tree`` reads as Flink SQL without a form: a cast, or a function that Flink calls alike."""
    if any(part.parts for part in tree.parts):
        return False
    if tree.kind == "call":
        places = [part.text for part in tree.parts if part.kind == "name"]
        return tree.text.upper() in known_functions() and places == sorted(places)
    return tree.kind in ("cast", "name", "number", "chain")


def _with_place(spark: str, literal: str, place: str) -> str:
    """``spark`` with ``place`` wherever it says ``literal``, or a text that begins with it."""
    if not literal.startswith("'"):
        return re.sub(rf"(?<![\w.']){re.escape(literal)}(?![\w.'])", place, spark)
    inside = re.escape(literal[1:-1])
    spark = spark.replace(literal, place)
    return re.sub(rf"'{inside}XXX'", f"'{place}XXX'", spark)


def forms_file_text() -> str:
    """The file as it is checked in."""
    return json.dumps(forms(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(forms_file_text(), encoding="utf-8")
