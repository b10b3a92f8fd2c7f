"""Random aggregate calls, in Flink's spelling and in DuckDB's.

What is in no order is made comparable: of an array its length, or the least of its values. A MULTISET is DuckDB's
histogram, which is a MAP from values to their number, or, where UNNEST takes it apart, a list of the values.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.expressions import Sql, decimal_of, duck_type, family, wrapped

__all__ = ["call", "collected"]

_COLLECTED = ("int", "text", "date", "decimal", "boolean", "timestamp", "bytes")


def call(dice: Random, value: Sql, clause: tuple[str, str], *, over: bool = False) -> Sql:
    """An aggregate call of ``value`` with a FILTER clause, or with ``over``, an OVER clause, in both spellings."""
    kind = family(value.type)
    flink, duck = value.flink, value.duck
    choices = ["COUNT"]
    small = kind != "decimal" or (decimal_of(value.type)[0] <= 20 and decimal_of(value.type)[1] <= 6)
    if kind in ("int", "double", "decimal") and value.exact and small:
        choices += ["SUM", "SUM", "AVG"]
    if kind not in ("bytes", "nested"):
        choices += ["MIN", "MAX"]
    if kind in ("int", "text", "date") and not value.nan and not over:
        choices += ["ARRAY_AGG"]
    if kind in ("int", "double") and value.exact and not value.nan and not over:
        choices += ["PERCENTILE"]
    if over and kind == "double" and value.exact and not value.nan:
        choices += ["VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP"]
    name = dice.choice(choices)
    if name == "ARRAY_AGG":
        return _array(dice, value, clause)
    if name == "PERCENTILE":
        part = dice.choice(("0", "0.25", "0.5", "0.9", "1"))
        once = dice.choice(("", "DISTINCT "))
        plain = f"quantile_cont({once}CAST({duck} AS DOUBLE), {part}){clause[1]}"
        return Sql(f"PERCENTILE({once}{flink}, {part}){clause[0]}", plain, "DOUBLE", exact=False)
    if name.startswith(("VAR", "STDDEV")):
        return Sql(f"{name}({flink}){clause[0]}", f"{name}({duck}){clause[1]}", "DOUBLE", exact=False)
    distinct = "DISTINCT " if not over and dice.random() < 0.25 and name not in ("MIN", "MAX") else ""
    written = f"{name}({distinct}{flink}){clause[0]}"
    plain = f"{name}({distinct}{duck}){clause[1]}"
    if name == "COUNT":
        return Sql(written, plain, "BIGINT")
    if name in ("MIN", "MAX"):
        return Sql(written, plain, value.type, nan=value.nan, exact=value.exact)
    total = f"SUM({distinct}{duck}){clause[1]}"
    count = f"COUNT({distinct}{duck}){clause[1]}"
    if kind == "int":
        bits = "BIGINT" if name == "AVG" else value.type
        wide = wrapped(f"SUM({distinct}CAST({duck} AS HUGEINT)){clause[1]}", bits)
        return Sql(written, wide if name == "SUM" else f"CAST({wide} // NULLIF({count}, 0) AS {duck_type(value.type)})",
                   value.type)  # fmt: skip
    if kind == "double":
        return Sql(written, plain, "DOUBLE", exact=name == "SUM")
    _, scale = decimal_of(value.type)
    if name == "SUM":
        return Sql(written, f"CAST({plain} AS DECIMAL(38, {scale}))", f"DECIMAL(38, {scale})")
    # Rounded half up at six digits, in whole numbers.
    units = f"CAST(({total}) * {10**scale} AS HUGEINT) * {10 ** (6 - scale)}"
    rounded = f"sign({units}) * ((2 * abs({units}) + {count}) // NULLIF(2 * {count}, 0))"
    return Sql(written, f"CAST({rounded} AS DECIMAL(30, 0)) * 0.000001", "DECIMAL(38, 6)", exact=False)


def _array(dice: Random, value: Sql, clause: tuple[str, str]) -> Sql:
    """How many values an array of ``value`` has, or the first of them in order, NULL before others."""
    flink, duck = f"ARRAY_AGG({value.flink}){clause[0]}", f"list({value.duck}){clause[1]}"
    if not clause[0] and dice.random() < 0.4:
        once = dice.choice(("DISTINCT ", ""))
        flink = f"ARRAY_AGG({once}{value.flink}) IGNORE NULLS"
        duck = f"list({once}{value.duck}) FILTER (WHERE {value.duck} IS NOT NULL)"
    if dice.random() < 0.5:
        return Sql(f"CARDINALITY({flink})", f"CAST(len({duck}) AS INTEGER)", "INT")
    return Sql(f"ARRAY_SORT({flink})[1]", f"list_sort({duck}, 'ASC', 'NULLS FIRST')[1]", value.type)


def collected(dice: Random, value: Sql, clause: tuple[str, str] = ("", ""), *, as_list: bool = False) -> Sql | None:
    """COLLECT of ``value`` with a FILTER clause; None where values that are equal may look different."""
    if value.nan or family(value.type) not in _COLLECTED:
        return None
    once = dice.choice(("", "", "DISTINCT "))
    plain = f"histogram({once}{value.duck}){clause[1]}"
    if as_list:
        plain = f"list({once}{value.duck}) FILTER (WHERE {value.duck} IS NOT NULL)"
    else:
        plain = f"COALESCE({plain}, MAP {{}})"
    return Sql(f"COLLECT({once}{value.flink}){clause[0]}", plain, f"MULTISET<{value.type}>")
