"""Random expressions over columns, each in two spellings: Flink's, which hintplan compiles, and DuckDB's, the oracle.

Where the two engines mean different things by the same text, the second spelling says in DuckDB what Flink means:

- integer arithmetic, SUM and CAST wrap around in Flink and fail in DuckDB: computed in HUGEINT, then wrapped;
- ``/`` of integers is ``//`` in DuckDB; a divisor of zero fails in Flink, so it is made NULL, or guarded by CASE;
- DECIMAL beyond its digits is NULL in Flink, an error in DuckDB: ``TRY``;
- CAST to an integer truncates in Flink and rounds in DuckDB;
- GREATEST and LEAST are NULL if an argument is; DuckDB passes over NULLs;
- BOOLEAN as text is TRUE and FALSE; Sunday is day 1; a DATE plus days stays a DATE.

What is left out, and where it is tested instead: NaN in comparisons (Flink: equal to nothing, DuckDB: the greatest;
tests/runtime has it), sums that depend on the order of additions or overflow DECIMAL(38) on the way, DECIMAL division,
text of DOUBLE and TIMESTAMP, upper case beyond ASCII, arguments that fail (tests/flink has answers of Flink to those).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

__all__ = ["MACROS", "Expressions", "Sql", "decimal_of", "duck_type", "family", "wrapped"]

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
MACROS = tuple(
    f"CREATE MACRO wrap{n}(x) AS CAST((((CAST(x AS HUGEINT) + {1 << n - 1}) % {1 << n} + {1 << n}) % {1 << n}) "
    f"- {1 << n - 1} AS {name if n != 32 else 'INTEGER'})"
    for name, n in _BITS.items()
)
"""What the second spellings call."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression: Flink's spelling, DuckDB's, Flink's type; whether it may be NaN, and adds up in any order."""

    flink: str
    duck: str
    type: str
    nan: bool = False
    exact: bool = True


def family(type_: str) -> str:
    """The group of types whose expressions may stand for each other."""
    root = re.split(r"[(<]", type_)[0]
    if root in _BITS:
        return "int"
    if root in ("FLOAT", "DOUBLE", "DECIMAL"):
        return root.lower()
    if root in ("STRING", "VARCHAR", "CHAR"):
        return "text"
    if root in ("BYTES", "BINARY", "VARBINARY"):
        return "bytes"
    return "nested" if root in ("ARRAY", "MAP", "MULTISET", "ROW") else root.lower()


def decimal_of(type_: str) -> tuple[int, int]:
    """Precision and scale of a DECIMAL."""
    precision, scale = re.findall(r"\d+", type_)
    return int(precision), int(scale)


def duck_type(type_: str) -> str:
    """DuckDB's spelling of a scalar type."""
    kind = family(type_)
    if kind == "text":
        return "VARCHAR"
    if kind == "bytes":
        return "BLOB"
    return {"INT": "INTEGER"}.get(type_, "TIMESTAMP" if kind.startswith("timestamp") else type_)


def wrapped(duck: str, type_: str) -> str:
    """``duck``, an integer of any size, as ``type_``."""
    return f"wrap{_BITS[type_]}({duck})"


def _common(a: Sql, b: Sql) -> str:
    return max(a.type, b.type, key=lambda t: _BITS[t])


class Expressions:
    """Expressions over ``columns``; ``simple`` ones may stand in ON of an outer join."""

    def __init__(self, dice: Random, columns: Sequence[Sql], *, simple: bool = False) -> None:
        self.dice = dice
        self.columns = tuple(columns)
        self.simple = simple

    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(family(c.type) for c in self.columns))

    def column(self, kind: str) -> Sql | None:
        found = [c for c in self.columns if family(c.type) == kind]
        return self.dice.choice(found) if found else None

    def of(self, kind: str, depth: int = 2) -> Sql:
        """An expression of the family ``kind``."""
        plain = self.column(kind)
        if kind == "boolean" and plain is None and self.dice.random() < 0.9:
            return self._boolean(depth)
        if depth <= 0 or kind in ("bytes", "nested", "timestamp_ltz") or self.dice.random() < 0.5:
            if plain is not None and (self.dice.random() < 0.85 or kind in ("bytes", "nested", "timestamp_ltz")):
                return plain
            return self.literal(kind)
        if self.dice.random() < 0.25:
            return self._choice(kind, depth)
        return getattr(self, f"_{kind}")(depth)

    def literal(self, kind: str) -> Sql:
        dice = self.dice
        if kind == "int":
            text = str(dice.choice((0, 1, 2, 3, -1, 2, 7, 3_000_000_000 if dice.random() < 0.2 else 4)))
            return Sql(text, text, "BIGINT" if len(text) > 9 else "INT")
        if kind in ("float", "double"):
            text = dice.choice(("0.0e0", "5e-1", "1e0", "-1.5e0", "2e0"))
            return _cast(Sql(text, text, "DOUBLE"), "FLOAT") if kind == "float" else Sql(text, text, "DOUBLE")
        if kind == "decimal":
            text = dice.choice(("0.57", "0.35", "1.00", "2.50", "0.01", "-1.25"))
            return Sql(text, text, "DECIMAL(3, 2)")
        if kind == "text":
            text = "'" + dice.choice(("", "a", "ab", "A", "é", "it''s", "日本", " ", "x")) + "'"
            return _cast(Sql(text, text, "CHAR(5)"), "STRING")
        if kind == "boolean":
            text = dice.choice(("TRUE", "FALSE"))
        elif kind == "date":
            text = dice.choice(("DATE '2020-02-28'", "DATE '2020-02-29'", "DATE '2020-03-01'"))
        elif kind == "timestamp":
            text = dice.choice(("TIMESTAMP '2020-02-28 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00'"))
        else:
            text = "NULL"
        return Sql(text, text, "TIMESTAMP(0)" if kind == "timestamp" else kind.upper())

    def condition(self, depth: int = 2) -> Sql:
        return self.of("boolean", depth)

    def _boolean(self, depth: int) -> Sql:
        dice = self.dice
        shape = dice.random()
        if depth > 0 and shape < 0.2:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return _both(dice.choice(("({0} AND {1})", "({0} OR {1})")), "BOOLEAN", a, b)
        if depth > 0 and shape < 0.28:
            return _both("NOT ({0})", "BOOLEAN", self.condition(depth - 1))
        if depth > 0 and shape < 0.33:
            test = dice.choice(("TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))
            return _both(f"(({{0}}) IS {test})", "BOOLEAN", self.condition(depth - 1))
        if shape < 0.42:
            one = dice.choice(self.columns)
            return _both(dice.choice(("{0} IS NULL", "{0} IS NOT NULL")), "BOOLEAN", one)
        kinds = [k for k in self.families() if k not in ("nested", "boolean")] or ["int"]
        kind = dice.choice(kinds)
        a = self._comparable(kind, depth)
        if kind == "text" and shape < 0.55:
            pattern = dice.choice(("a%", "%b", "_", "%é%", "", "a_b", "%"))
            return _both(f"{{0}} {dice.choice(('LIKE', 'NOT LIKE'))} '{pattern}'", "BOOLEAN", a)
        if shape < 0.55 and kind != "bytes":
            listed = ", ".join(dict.fromkeys(self.literal(kind).flink for _ in range(dice.randint(1, 3))))
            return (
                _both(f"{{0}} {dice.choice(('IN', 'NOT IN'))} ({listed})", "BOOLEAN", a)
                if kind in ("int", "decimal", "date")
                else _both("({0} = {1})", "BOOLEAN", a, self._comparable(kind, depth))
            )
        b = self._comparable(kind, depth, beside=a)
        if shape < 0.63 and kind != "bytes":
            c = self._comparable(kind, depth, beside=a)
            word = dice.choice(("BETWEEN", "NOT BETWEEN"))
            if dice.random() < 0.3:
                either = _both("({0} BETWEEN {1} AND {2} OR {0} BETWEEN {2} AND {1})", "BOOLEAN", a, b, c)
                negated = "NOT " if word != "BETWEEN" else ""
                written = f"{a.flink} {word} SYMMETRIC {b.flink} AND {c.flink}"
                return Sql(written, negated + either.duck, "BOOLEAN")
            return _both(f"{{0}} {word} {{1}} AND {{2}}", "BOOLEAN", a, b, c)
        if shape < 0.7:
            word = dice.choice(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            return _both(f"({{0}} {word} {{1}})", "BOOLEAN", a, b)
        signs = ("=", "<>") if kind == "bytes" else ("=", "<>", "<", "<=", ">", ">=")
        return _both(f"({{0}} {dice.choice(signs)} {{1}})", "BOOLEAN", a, b)

    def _comparable(self, kind: str, depth: int, beside: Sql | None = None) -> Sql:
        """An expression to compare with ``beside``; never NaN, at times of another numeric type."""
        if beside is not None and kind in ("int", "decimal", "double") and self.dice.random() < 0.2:
            kind = self.dice.choice(("int", "decimal", "double"))
        for _ in range(9):
            found = self.of(kind, depth - 1)
            if not found.nan and (beside is None or _fit(found, beside)):
                return found
        return self.literal(kind)

    def _choice(self, kind: str, depth: int) -> Sql:
        dice = self.dice
        a, b = self.of(kind, depth - 1), self.of(kind, depth - 1)
        shape = dice.random()
        type_ = _meeting(a, b)
        if type_ is None or shape < 0.4:
            if type_ is None:
                b, type_ = a, a.type
            when = self.condition(depth - 1)
            return _both("CASE WHEN {2} THEN {0} ELSE {1} END", type_, a, b, when)
        if shape < 0.8 or self.simple or kind in ("boolean", "float", "double"):
            return _both("COALESCE({0}, {1})", type_, a, b)
        if shape < 0.9:
            return _both("NULLIF({0}, {1})", a.type, a, b) if not (a.nan or b.nan) else a
        word = dice.choice(("GREATEST", "LEAST"))
        duck = f"CASE WHEN {a.duck} IS NOT NULL AND {b.duck} IS NOT NULL THEN {word}({a.duck}, {b.duck}) END"
        return Sql(f"{word}({a.flink}, {b.flink})", duck, type_)

    def _int(self, depth: int) -> Sql:
        dice = self.dice
        a, b = self.of("int", depth - 1), self.of("int", depth - 1)
        shape = dice.random()
        type_ = _common(a, b)
        wide = f"CAST({a.duck} AS HUGEINT)"
        if shape < 0.4:
            sign = dice.choice("+-*")
            return Sql(f"({a.flink} {sign} {b.flink})", wrapped(f"({wide} {sign} {b.duck})", type_), type_)
        if shape < 0.5:
            return Sql(f"ABS({a.flink})", wrapped(f"ABS({wide})", a.type), a.type)
        if shape < 0.56:
            return Sql(f"(- {a.flink})", wrapped(f"(- {wide})", a.type), a.type)
        if self.simple:
            return a
        if shape < 0.64:
            divided = wrapped(f"({wide} // NULLIF({b.duck}, 0))", type_)
            if dice.random() < 0.5:
                return Sql(f"({a.flink} / NULLIF({b.flink}, 0))", divided, type_)
            return Sql(f"CASE WHEN {b.flink} <> 0 THEN {a.flink} / {b.flink} END", divided, type_)
        if shape < 0.7:
            rest = f"CAST({wide} % NULLIF(CAST({b.duck} AS HUGEINT), 0) AS {b.type})"
            return Sql(f"({a.flink} % NULLIF({b.flink}, 0))", rest, b.type)
        if shape < 0.78:
            return _cast(a, dice.choice(tuple(_BITS)))
        if shape < 0.84:
            text = self.of("text", depth - 1)
            return Sql(f"CHAR_LENGTH({text.flink})", f"CAST(length({text.duck}) AS INTEGER)", "INT")
        if shape < 0.9:
            kind = dice.choice(("date", "timestamp"))
            units = ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "DOW")
            unit = dice.choice(units if kind == "date" else (*units, "HOUR", "MINUTE"))
            when = self.of(kind, 0)
            text = f"EXTRACT({unit} FROM {{}})"
            more = " + 1" if unit == "DOW" else ""
            return Sql(text.format(when.flink), f"({text.format(when.duck)}{more})", "BIGINT")
        if shape < 0.95:
            return _cast(self.of("boolean", depth - 1), "INT")
        value = self.of("decimal", depth - 1)
        precision, scale = decimal_of(value.type)
        return _cast(value, "BIGINT") if precision - scale <= 18 else a

    def _double(self, depth: int) -> Sql:
        a, b = self.of("double", depth - 1), self.of("double", depth - 1)
        shape = self.dice.random()
        exact = a.exact and b.exact
        if shape < 0.6:
            sign = self.dice.choice("+-*" if depth < 2 else "+-")
            nan = a.nan or b.nan or not exact
            return Sql(f"({a.flink} {sign} {b.flink})", f"({a.duck} {sign} {b.duck})", "DOUBLE", nan, exact)
        if shape < 0.75:
            return replace(_both("ABS({0})", "DOUBLE", a), nan=a.nan, exact=a.exact)
        if self.simple or shape < 0.85:
            return a
        kind = self.dice.choice(("int", "decimal", "float"))
        one = self.column(kind) or self.literal(kind)
        return replace(_cast(one, "DOUBLE"), nan=one.nan, exact=False)

    def _float(self, depth: int) -> Sql:
        a, b = self.of("float", depth - 1), self.of("float", depth - 1)
        if self.dice.random() < 0.5 and a.exact and b.exact:
            sign = self.dice.choice("+-")
            return Sql(f"({a.flink} {sign} {b.flink})", f"({a.duck} {sign} {b.duck})", "FLOAT")
        return a

    def _decimal(self, depth: int) -> Sql:
        dice = self.dice
        a, b = self.of("decimal", depth - 1), self.of("decimal", depth - 1)
        (p1, s1), (p2, s2) = decimal_of(a.type), decimal_of(b.type)
        shape = dice.random()
        if shape < 0.4:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
            if precision <= 38:
                type_ = f"DECIMAL({precision}, {scale})"
                sign = dice.choice("+-")
                # Duck's sum may have a digit less than Flink's, so both are made wide first.
                wide = [f"CAST({x.duck} AS {type_})" for x in (a, b)]
                return Sql(f"({a.flink} {sign} {b.flink})", f"({wide[0]} {sign} {wide[1]})", type_)
        if shape < 0.55 and p1 + p2 + 1 <= 38 and p2 <= 19:
            type_ = f"DECIMAL({p1 + p2 + 1}, {s1 + s2})"
            # DuckDB multiplies two short numbers in 64 bits, and fails if that is too short.
            wide = f"CAST({a.duck} AS DECIMAL({max(p1, 19)}, {s1}))"
            return Sql(f"({a.flink} * {b.flink})", f"CAST({wide} * {b.duck} AS {type_})", type_)
        if shape < 0.65:
            return _both("ABS({0})", a.type, a)
        if self.simple or shape < 0.75:
            return a
        if shape < 0.88:
            return _cast(a, dice.choice(("DECIMAL(10, 2)", "DECIMAL(5, 0)", "DECIMAL(20, 4)", "DECIMAL(3, 1)")))
        return _cast(self.column("int") or self.literal("int"), "DECIMAL(20, 1)")

    def _text(self, depth: int) -> Sql:
        dice = self.dice
        a = self.of("text", depth - 1)
        shape = dice.random()
        if self.simple:
            return a
        if shape < 0.3:
            return _both("({0} || {1})", "STRING", a, self.of("text", depth - 1))
        if shape < 0.4:
            return _both(f"SUBSTRING({{0}}, {dice.randint(1, 3)}, {dice.randint(0, 3)})", "STRING", a)
        if shape < 0.5:
            return _both("REPLACE({0}, 'a', 'bc')", "STRING", a)
        if shape < 0.58:
            return _both("TRIM({0})", "STRING", a)
        if shape < 0.66:
            return _cast(self.column("int") or self.literal("int"), "STRING")
        if shape < 0.74:
            return _cast(self.condition(depth - 1), "STRING")
        if shape < 0.8:
            return _cast(self.column("date") or self.literal("date"), "STRING")
        if shape < 0.86:
            found = self.column("decimal")
            return a if found is None else _cast(found, "STRING")
        if shape < 0.93:
            # Upper case of ASCII: beyond it, DuckDB has other mappings than Java.
            return Sql(f"UPPER(REPLACE({a.flink}, 'é', 'e'))", f"UPPER(REPLACE({a.duck}, 'é', 'e'))", "STRING")
        return _cast(a, "VARCHAR(2)")

    def _bytes(self, depth: int) -> Sql:
        return self.of("bytes", 0)

    def _date(self, depth: int) -> Sql:
        a = self.of("date", depth - 1)
        if self.simple:
            return a
        if self.dice.random() < 0.4:
            return _cast(self.of("timestamp", depth - 1), "DATE")
        guarded = _both("CASE WHEN EXTRACT(YEAR FROM {0}) BETWEEN 1900 AND 2200 THEN {0} END", "DATE", a)
        days = self.dice.choice(("INTERVAL '1' DAY", "INTERVAL '2' DAY"))
        return Sql(f"({guarded.flink} + {days})", f"CAST({guarded.duck} + {days} AS DATE)", "DATE")

    def _timestamp(self, depth: int) -> Sql:
        a = self.of("timestamp", depth - 1)
        span = self.dice.choice(("INTERVAL '1' HOUR", "INTERVAL '30' SECOND", "INTERVAL '1' DAY"))
        return a if self.simple else _both(f"({{0}} {self.dice.choice('+-')} {span})", a.type, a)


def _both(template: str, type_: str, *parts: Sql) -> Sql:
    """The same text in both spellings."""
    return Sql(
        template.format(*(p.flink for p in parts)),
        template.format(*(p.duck for p in parts)),
        type_,
        nan=type_ != "BOOLEAN" and any(p.nan for p in parts),
        exact=type_ == "BOOLEAN" or all(p.exact for p in parts),
    )


def _fit(a: Sql, b: Sql) -> bool:
    """Whether DuckDB compares the two as Flink does."""
    kinds = {family(a.type), family(b.type)}
    if kinds == {"decimal"} or kinds == {"decimal", "int"}:
        sizes = [decimal_of(x.type) if family(x.type) == "decimal" else (19, 0) for x in (a, b)]
        return max(p - s for p, s in sizes) + max(s for _, s in sizes) <= 38
    return len(kinds) == 1 or kinds <= {"int", "decimal", "double"}


def _meeting(a: Sql, b: Sql) -> str | None:
    """The common type, if both spellings agree on it."""
    kind = family(a.type)
    if kind == "int":
        return _common(a, b)
    if kind == "decimal":
        (p1, s1), (p2, s2) = decimal_of(a.type), decimal_of(b.type)
        scale, whole = max(s1, s2), max(p1 - s1, p2 - s2)
        return f"DECIMAL({whole + scale}, {scale})" if whole + scale <= 38 else None
    if kind == "text":
        return "STRING" if a.type != b.type or not a.type.startswith("CHAR") else a.type
    if kind == "timestamp":
        return max(a.type, b.type)
    return a.type if a.type == b.type else None


def _cast(a: Sql, type_: str) -> Sql:
    """A CAST that both engines can be brought to agree on."""
    source, target = family(a.type), family(type_)
    duck = f"CAST({a.duck} AS {'INTEGER' if type_ == 'INT' else 'VARCHAR' if target == 'text' else type_})"
    if source == "int" and target == "int":
        duck = wrapped(a.duck, type_)
    elif target == "int" and source == "decimal":
        duck = wrapped(f"CAST(trunc({a.duck}) AS HUGEINT)", type_)
    elif target == "decimal":
        duck = f"TRY_CAST({a.duck} AS {type_})"
    elif source == "boolean" and target == "text":
        duck = f"upper({duck})"
    elif type_.startswith("VARCHAR"):
        duck = f"substring({duck}, 1, {int(type_[8:-1])})"
    return Sql(f"CAST({a.flink} AS {type_})", duck, type_, nan=a.nan, exact=a.exact)
