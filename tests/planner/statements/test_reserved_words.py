"""Words that Flink reserves: who uses one as a name without quotes is told to quote it."""

from __future__ import annotations

from pathlib import Path

import pytest

import hintplan
from hintplan.planner.syntax.reserved import LIKE_NAMES, RESERVED
from hintplan.plans.errors import SqlError

RECORDED = Path(__file__).parents[2] / "flink" / "reserved.txt"
DECLARED = """
CREATE TABLE t (`{word}` INT, b INT) WITH ('connector' = 'datagen');
CREATE TABLE s (x INT) WITH ('connector' = 'print');
"""


def test_they_are_those_that_flink_refuses() -> None:
    assert frozenset(RECORDED.read_text(encoding="utf-8").split()) == RESERVED


@pytest.mark.parametrize("word", ["create", "alter", "drop"])
@pytest.mark.parametrize("query", ["SELECT {word} FROM t", "SELECT b FROM t WHERE {word} > 3"])
def test_a_query_that_cannot_be_read_for_one_says_to_quote_it(word: str, query: str) -> None:
    with pytest.raises(SqlError) as error:
        hintplan.compile_sql(f"{DECLARED} INSERT INTO s {query};".format(word=word))
    assert f"'{word}' is a word of the language: as the name of a column, write `{word}`" in str(error.value)
    quoted = query.format(word=f"`{word}`")
    assert hintplan.compile_sql(f"{DECLARED.format(word=word)} INSERT INTO s {quoted};")


@pytest.mark.parametrize("query", ["SELECT b FROM WHERE b > 3", "SELECT b, FROM t", "SELECT b FROM t ORDER BY"])
def test_words_of_clauses_are_not_taken_for_names(query: str) -> None:
    with pytest.raises(SqlError) as error:
        hintplan.compile_sql(f"{DECLARED} INSERT INTO s {query};".format(word="a"))
    assert "is a word of the language" not in str(error.value)


def test_words_that_may_be_names_are_reserved() -> None:
    assert LIKE_NAMES < RESERVED
    assert {"PERIOD", "MODELS", "VALUE", "DAY"} < LIKE_NAMES
