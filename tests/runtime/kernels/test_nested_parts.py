"""Parts of nested values in Arrow, against the same in Python: of whole arrays, and of slices of longer ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.condition import compile_values
from tests.runtime.expressions.checking import checked_over
from tests.sample import sampled

ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.int32())])
SCHEMA = pa.schema(
    [
        ("buyer", pa.struct([("name", pa.string()), ("address", ADDRESS)])),
        ("tags", pa.list_(pa.string())),
        ("lines", pa.list_(ADDRESS)),
        ("prices", pa.map_(pa.string(), pa.float64())),
        ("counts", pa.map_(pa.int64(), pa.int32())),
        ("i", pa.int32()),
        ("n", pa.int64()),
    ]
)
Row = Mapping[str, Any]


def of(whole: Any, part: str) -> Any:
    return None if whole is None else whole[part]


def at(whole: Sequence[Any] | None, place: int | None) -> Any:
    return None if whole is None or place is None or not 0 <= place < len(whole) else whole[place]


def first(whole: Sequence[tuple[Any, Any]] | None, key: Any) -> Any:
    return next((value for each, value in whole or () if each == key), None)


PARTS: dict[str, Callable[[Row], Any]] = {
    "buyer.name": lambda row: of(row["buyer"], "name"),
    "buyer.address.city": lambda row: of(of(row["buyer"], "address"), "city"),
    "get(tags, 0)": lambda row: at(row["tags"], 0),
    "get(tags, 2)": lambda row: at(row["tags"], 2),
    "get(tags, i)": lambda row: at(row["tags"], row["i"]),
    "get(lines, 1).city": lambda row: of(at(row["lines"], 1), "city"),
    "prices['b']": lambda row: first(row["prices"], "b"),
    "counts[7]": lambda row: first(row["counts"], 7),
    "size(tags)": lambda row: None if row["tags"] is None else len(row["tags"]),
    "size(prices)": lambda row: None if row["prices"] is None else len(row["prices"]),
    "CASE WHEN get(tags, 0) = 'a' THEN buyer.address.zip ELSE size(lines) END": lambda row: (
        of(of(row["buyer"], "address"), "zip")
        if at(row["tags"], 0) == "a"
        else (None if row["lines"] is None else len(row["lines"]))
    ),
}


def some_row(random: Random) -> Row:
    def maybe(value: Any) -> Any:
        return None if random.random() < 0.2 else value

    def address() -> Any:
        return maybe({"city": maybe(random.choice("xyz")), "zip": maybe(random.randrange(9))})

    return {
        "buyer": maybe({"name": maybe(random.choice("pq")), "address": address()}),
        "tags": maybe([maybe(random.choice("abc")) for _ in range(random.randrange(4))]),
        "lines": maybe([address() for _ in range(random.randrange(3))]),
        "prices": maybe([(key, maybe(random.random())) for key in random.sample("abcb", random.randrange(4))]),
        "counts": maybe([(key, maybe(random.randrange(5))) for key in random.sample(range(6, 9), random.randrange(3))]),
        "i": maybe(random.randrange(-2, 4)),
        "n": random.randrange(4),
    }


@pytest.mark.parametrize("seed", sampled(range(20), keep=5))
@pytest.mark.parametrize("text", PARTS)
def test_a_part_is_what_python_takes(text: str, seed: int) -> None:
    random = Random(seed)
    rows = [some_row(random) for _ in range(random.randrange(12))]
    compiled = compile_values(checked_over(text, SCHEMA.names), SCHEMA)
    assert not compiled.expression.may_fail
    assert not compiled.expression.by_row
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    begin = random.randrange(3)
    for part, given in ((table, rows), (table.slice(begin, 5), rows[begin : begin + 5])):
        found = compiled.answers(part.select([]), part.select(list(compiled.right)), part.num_rows)
        assert found.to_pylist() == [PARTS[text](row) for row in given]


REFUSED = [
    "buyer.nothing",
    "buyer.NAME",
    "tags.name",
    "tags[0]",
    "get(tags, n)",
    "get(prices, 0)",
    "prices[n]",
    "prices[CAST(NULL AS STRING)]",
    "counts['x']",
    "size(buyer)",
    "element_at(tags, 1)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_reads_otherwise_is_left_to_it(text: str) -> None:
    with pytest.raises(RunError):
        compile_values(checked_over(text, SCHEMA.names), SCHEMA)
