"""Column types in Flink's notation: parsed, printed in canonical form, and compared.

    BIGINT   DECIMAL(10, 2)   TIMESTAMP(3)   ARRAY<STRING>   MAP<STRING, INT>   ROW<a INT, b STRING NOT NULL>
    MULTISET<STRING>

Synonyms become one type: INTEGER is INT, NUMERIC is DECIMAL, VARCHAR and VARCHAR(2147483647) are STRING. CHAR and
BINARY without a length have length 1, as in Flink's SQL. Knows neither Spark nor Arrow types; the runtime maps them.

>>> str(parse_type("numeric(10,2) not null"))
'DECIMAL(10, 2) NOT NULL'
>>> str(parse_type("ROW<name VARCHAR, grade CHAR>"))
'ROW<name STRING, grade CHAR(1)>'
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from hintplan.plans.frozen import frozen

_MAX_LENGTH = 2147483647
_SYNONYMS = {
    "INTEGER": "INT",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "DOUBLE PRECISION": "DOUBLE",
    "CHARACTER": "CHAR",
}
_PLAIN = {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES"}
_SIZED = {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}
_NESTED = {"ARRAY", "MAP", "MULTISET", "ROW"}
ROOTS = (*sorted(_PLAIN), "DECIMAL", *sorted(_SIZED), "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", *sorted(_NESTED))
"""The names of all types, without their parameters."""
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


@frozen
class DataType:
    """A type: ``root`` and the parameters of this root.

    ``precision`` is the precision of DECIMAL (1..38), TIMESTAMP and TIMESTAMP_LTZ (0..6) and TIME (0..3), and the
    length of CHAR, VARCHAR, BINARY and VARBINARY. ``children`` holds the element of an ARRAY or a MULTISET, key and
    value of a MAP, or the fields of a ROW in the order of ``names``.
    """

    root: str
    precision: int | None = None
    scale: int | None = None
    children: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()
    nullable: bool = True

    def __str__(self) -> str:
        text = self.root
        if self.root == "DECIMAL":
            text = f"DECIMAL({self.precision}, {self.scale})"
        elif self.root == "ROW":
            fields = (f"{_identifier(n)} {t}" for n, t in zip(self.names, self.children, strict=True))
            text = f"ROW<{', '.join(fields)}>"
        elif self.children:
            text = f"{self.root}<{', '.join(map(str, self.children))}>"
        elif self.precision is not None:
            text = f"{self.root}({self.precision})"
        return text if self.nullable else f"{text} NOT NULL"

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.root in ("FLOAT", "DOUBLE", "DECIMAL")

    @property
    def is_integer(self) -> bool:
        return self.root in _INTEGERS

    @property
    def is_text(self) -> bool:
        return self.root in ("STRING", "VARCHAR", "CHAR")

    def as_nullable(self) -> DataType:
        """Return the same type, nullable at all levels."""
        children = tuple(child.as_nullable() for child in self.children)
        return replace(self, nullable=True, children=children)

    @property
    def is_nested(self) -> bool:
        return bool(self.children)

    @property
    def has_entries(self) -> bool:
        """True for a type of unordered entries: MAP, or MULTISET, which counts each element."""
        return self.root in ("MAP", "MULTISET")

    @property
    def contains_entries(self) -> bool:
        """True if the type is or contains a MAP or a MULTISET."""
        return self.has_entries or any(child.contains_entries for child in self.children)

    def contains(self, root: str) -> bool:
        """Return True if the type has this ``root``, or contains such a type."""
        return self.root == root or any(child.contains(root) for child in self.children)

    @property
    def parts(self) -> tuple[DataType, ...]:
        """The types of a stored value: ``children``; for a MULTISET, its elements and their counts."""
        return (*self.children, DataType(root="INT")) if self.root == "MULTISET" else self.children


def _identifier(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"


_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<mark>[<>(),]))"
)


@lru_cache(maxsize=4096)
def parse_type(text: str) -> DataType:
    """Parse a type in Flink's notation; raise ValueError with the reason if hintplan does not support it."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if not match:
            raise ValueError(f"unexpected {text[position:].strip()[:10]!r} in type {text!r}")
        kind = match.lastgroup or ""
        tokens.append((kind, match.group(kind)))
        position = match.end()
    parser = _Parser(text, tokens)
    result = parser.type()
    if parser.index != len(tokens):
        raise ValueError(f"unexpected {tokens[parser.index][1]!r} in type {text!r}")
    return result


class _Parser:
    def __init__(self, text: str, tokens: list[tuple[str, str]]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0

    def word(self) -> str | None:
        if self.index < len(self.tokens) and self.tokens[self.index][0] == "word":
            return self.tokens[self.index][1].upper()
        return None

    def take(self, *words: str) -> bool:
        saved = self.index
        for word in words:
            if self.word() != word:
                self.index = saved
                return False
            self.index += 1
        return True

    def mark(self, mark: str, required: bool = True) -> bool:
        if self.index < len(self.tokens) and self.tokens[self.index] == ("mark", mark):
            self.index += 1
            return True
        if required:
            raise ValueError(f"expected {mark!r} in type {self.text!r}")
        return False

    def numbers(self) -> tuple[int, ...]:
        if not self.mark("(", required=False):
            return ()
        values = []
        while True:
            if self.index >= len(self.tokens) or self.tokens[self.index][0] != "number":
                raise ValueError(f"expected a number in type {self.text!r}")
            values.append(int(self.tokens[self.index][1]))
            self.index += 1
            if self.mark(")", required=False):
                return tuple(values)
            self.mark(",")

    def type(self) -> DataType:
        root = self.word()
        if root is None:
            raise ValueError(f"expected a type in {self.text!r}")
        self.index += 1
        if root == "DOUBLE":
            self.take("PRECISION")
        root = _SYNONYMS.get(root, root)
        if root in ("CHAR", "BINARY") and self.take("VARYING"):
            root = f"VAR{root}"
        result = self.body(root)
        while (collection := self.word()) in ("ARRAY", "MULTISET"):  # INT ARRAY is ARRAY<INT>
            self.index += 1
            result = DataType(root=collection, children=(result,))
        if self.take("NOT", "NULL"):
            return replace(result, nullable=False)
        self.take("NULL")
        return result

    def body(self, root: str) -> DataType:
        if root in _PLAIN:
            return DataType(root=root)
        if root == "DECIMAL":
            return self.decimal(self.numbers())
        if root in _SIZED:
            return self.length(root, self.numbers())
        if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self.timestamp(root, self.numbers())
        if root in ("ARRAY", "MULTISET"):
            self.mark("<")
            element = self.type()
            self.mark(">")
            return DataType(root=root, children=(element,))
        if root == "MAP":
            self.mark("<")
            key = self.type()
            self.mark(",")
            value = self.type()
            self.mark(">")
            return DataType(root="MAP", children=(key, value))
        if root == "ROW":
            return self.row()
        if root == "TIME":
            return self.time_of_day(self.numbers())
        raise ValueError(f"type {root} is not supported")

    def decimal(self, numbers: tuple[int, ...]) -> DataType:
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
        if len(numbers) > 2 or not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise ValueError(f"DECIMAL needs a precision of 1 to 38 and a scale up to the precision, in {self.text!r}")
        return DataType(root="DECIMAL", precision=precision, scale=scale)

    def length(self, root: str, numbers: tuple[int, ...]) -> DataType:
        varies = root.startswith("VAR")
        size = numbers[0] if numbers else _MAX_LENGTH if varies else 1
        if len(numbers) > 1 or not 1 <= size <= _MAX_LENGTH:
            raise ValueError(f"{root} needs one length from 1 to {_MAX_LENGTH}, in {self.text!r}")
        if size == _MAX_LENGTH and varies:
            return DataType(root="STRING" if root == "VARCHAR" else "BYTES")
        return DataType(root=root, precision=size)

    def timestamp(self, root: str, numbers: tuple[int, ...]) -> DataType:
        precision = numbers[0] if numbers else 6
        if len(numbers) > 1 or precision > 6:
            raise ValueError(f"{root} is supported with a precision of 0 to 6 (microseconds), in {self.text!r}")
        if self.take("WITH", "LOCAL", "TIME", "ZONE"):
            root = "TIMESTAMP_LTZ"
        elif not self.take("WITHOUT", "TIME", "ZONE") and self.word() == "WITH":
            raise ValueError("TIMESTAMP WITH TIME ZONE is not supported; use TIMESTAMP_LTZ")
        return DataType(root=root, precision=precision)

    def time_of_day(self, numbers: tuple[int, ...]) -> DataType:
        precision = numbers[0] if numbers else 0
        if len(numbers) > 1 or precision > 3:
            raise ValueError(f"TIME is supported with a precision of 0 to 3 (milliseconds), in {self.text!r}")
        if not self.take("WITHOUT", "TIME", "ZONE") and self.word() == "WITH":
            raise ValueError("TIME WITH TIME ZONE is not supported")
        return DataType(root="TIME", precision=precision)

    def row(self) -> DataType:
        close = ">" if self.mark("<", required=False) else ")"
        if close == ")":
            self.mark("(")
        names: list[str] = []
        children: list[DataType] = []
        while True:
            kind, value = self.tokens[self.index] if self.index < len(self.tokens) else ("", "")
            if kind not in ("word", "quoted"):
                raise ValueError(f"expected a field name in type {self.text!r}")
            self.index += 1
            names.append(value.replace("``", "`"))
            if names[-1].lower() in {name.lower() for name in names[:-1]}:
                raise ValueError(f"two fields of a ROW are called '{names[-1]}', up to their case, in {self.text!r}")
            children.append(self.type())
            if self.mark(close, required=False):
                return DataType(root="ROW", names=tuple(names), children=tuple(children))
            self.mark(",")
