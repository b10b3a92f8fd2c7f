"""Each pair of types meets in UNION ALL, CASE, COALESCE and INSERT as in Flink, but where these tests say otherwise."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hintplan import compile_sql
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import SqlError
from tests.flink.type_pairs import COLUMNS, INSERT, QUERIES, TYPES

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "type_pairs.json").read_text(encoding="utf-8"))
OCTETS = ("BINARY", "VARBINARY", "BYTES")


def planned(name: str, one: int, other: int) -> str | None:
    """The type of the query, or of the column that takes it; None if it is refused."""
    query = (
        f"CREATE TABLE r WITH ('connector' = 'blackhole') AS {QUERIES[name].format(one=one, other=other)}"
        if (name != INSERT)
        else f"CREATE TABLE r (x {TYPES[other]}) WITH ('connector' = 'blackhole'); INSERT INTO r SELECT c{one} FROM o"
    )
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'o'"
    script = f"CREATE TABLE o ({COLUMNS}) WITH ({files}); {query};"
    try:
        plan = compile_sql(script, {"execution.runtime-mode": "batch"})
    except SqlError:
        return None
    return str(plan.tables["r"].columns[0].type)


def of_flink(name: str, one: str, other: str) -> str | None:
    """What Flink says, as it is written here."""
    found = RECORDED[name][one][other]
    if found is None or name == INSERT:
        return other if found else None
    text = re.sub(r"TIMESTAMP\((\d)\) WITH LOCAL TIME ZONE", r"TIMESTAMP_LTZ(\1)", found.replace("`", ""))
    text = text.replace("VARCHAR(2147483647)", "STRING").replace("VARBINARY(2147483647)", "BYTES")
    return str(parse_type(text.replace(" NOT NULL", "")))


def instead(name: str, one: DataType, other: DataType) -> tuple[str | None, ...]:
    """What comes of a pair that is not taken as in Flink; nothing if it is."""
    pair = {one.root, other.root}
    times = pair & {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ"}
    if name == INSERT:
        if pair == {"DATE", "TIMESTAMP"} and one.root == "DATE":
            return (str(other),)  # loses nothing; Flink refuses it
        return ()
    if times and (one.is_numeric or other.is_numeric):
        return (None,)  # a time, in Flink, which is computed of no number
    if pair == {"TIMESTAMP", "TIMESTAMP_LTZ"} and name != "coalesce":
        return (None,)  # one or the other, in Flink, by their order
    if pair == {"DATE", "TIMESTAMP"}:
        return (str(one if one.root == "TIMESTAMP" else other),)  # refused in Flink, or the DATE in COALESCE
    if (one.root, other.root) == ("FLOAT", "DOUBLE") or (name == "coalesce" and pair == {"FLOAT", "DECIMAL"}):
        return ("DOUBLE",)  # a FLOAT in Flink, by their order
    if pair == {"CHAR", "VARCHAR"}:
        return ("STRING",)
    if pair <= set(OCTETS) and pair != {one.root}:
        return ("BYTES",)
    return ()


@pytest.mark.part(of=2)
@pytest.mark.parametrize("name", [*QUERIES, INSERT])
def test_types_meet_as_in_flink(name: str) -> None:
    others: Counter[bool] = Counter()
    for place, one in enumerate(TYPES):
        for where, other in enumerate(TYPES):
            found, of_theirs = planned(name, place, where), of_flink(name, one, other)
            said = instead(name, parse_type(one), parse_type(other))
            assert found == (said[0] if said else of_theirs), (name, one, other, of_theirs)
            others[found != of_theirs] += 1
    assert others[True] < others[False] / 8
