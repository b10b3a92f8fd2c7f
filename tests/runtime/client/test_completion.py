"""What could be typed next, at ``|``."""

from __future__ import annotations

import pytest

from hintplan.planner.statements.openings import ALL_OPENINGS
from hintplan.plans.client.completion import Names, complete

NAMES = Names(
    columns={"orders": ("id", "customer", "total"), "customers": ("id", "country")},
    functions=("COALESCE",),
    statements=tuple(sorted(ALL_OPENINGS)),
)


def at(text: str) -> list[str]:
    """The texts that completing at ``|`` could give, up to the cursor."""
    before, _, after = text.partition("|")
    length, found = complete(before, after, NAMES)
    return [before[: len(before) - length] + candidate for candidate in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sel|", ["SELECT "]),
        ("; exec|", ["; EXECUTE PLAN '", "; EXECUTE STATEMENT SET BEGIN "]),
        ("show ta|", ["SHOW TABLES"]),
        ("compile a|", ["COMPILE AND EXECUTE PLAN '"]),
        ("SELECT * FROM or|", ["SELECT * FROM orders"]),
        ("SELECT * FROM orders, x JOIN |",
         ["SELECT * FROM orders, x JOIN orders", "SELECT * FROM orders, x JOIN customers"]),
        ("INSERT INTO cu|", ["INSERT INTO customers"]),
        ("DROP TABLE IF EXISTS cu|", ["DROP TABLE IF EXISTS customers"]),
        ("DESC o|", ["DESC orders"]),
        ("alt|", ["ALTER TABLE ", "ALTER VIEW "]),
        ("cache|", ["CACHE LAZY TABLE ", "CACHE TABLE "]),
        ("CREATE F|", ["CREATE FUNCTION "]),
        ("ALTER TABLE cu|", ["ALTER TABLE customers"]),
        ("CACHE LAZY TABLE o|", ["CACHE LAZY TABLE orders"]),
        ("SELECT o.| FROM orders AS o", ["SELECT o.id", "SELECT o.customer", "SELECT o.total"]),
        ("SELECT c.co| FROM orders o JOIN customers c ON o.customer = c.id", ["SELECT c.country"]),
        ("SELECT tot| FROM orders", ["SELECT total"]),
        ("SELECT coal| FROM orders", ["SELECT COALESCE"]),
        ("SELECT id FROM orders whe|", ["SELECT id FROM orders WHERE"]),
        ("SET 'table.dml|", ["SET 'table.dml-sync"]),
        ("RESET 'pipeline|", ["RESET 'pipeline.name"]),
        ("CREATE TABLE t (a INT) WITH ('conn|", ["CREATE TABLE t (a INT) WITH ('connector"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'bl|", ["CREATE TABLE t (a INT) WITH ('connector' = 'blackhole"]),
        ("WITH ('connector' = 'print', 'print|", ["WITH ('connector' = 'print', 'print-identifier"]),
        ("WITH ('connector' = 'filesystem', 'format' = 'p|", ["WITH ('connector' = 'filesystem', 'format' = 'parquet"]),
        ("SELECT /*+ st| */", ["SELECT /*+ STATE_TTL('"]),
        ("SELECT /*+ STATE_TTL('| FROM orders o JOIN customers",
         ["SELECT /*+ STATE_TTL('o", "SELECT /*+ STATE_TTL('customers"]),
        ("SELECT /*+ LOOKUP('table'='cu| FROM orders o JOIN customers", ["SELECT /*+ LOOKUP('table'='customers"]),
        ("SELECT /*+ LOOKUP('table'='c', 'cap|", ["SELECT /*+ LOOKUP('table'='c', 'capacity"]),
        ("SELECT /*+ LOOKUP('table'='c', 'async'='t|", ["SELECT /*+ LOOKUP('table'='c', 'async'='true"]),
        ("SELECT * FROM orders JOIN customers /*+ OP|", ["SELECT * FROM orders JOIN customers /*+ OPTIONS('"]),
        ("SELECT 'sel|", []),
    ],
)  # fmt: skip
def test_what_could_be_typed_next(text: str, expected: list[str]) -> None:
    found = at(text)
    assert [shown for shown in found if shown in expected] == expected
    if "whe|" not in text and "coal|" not in text:
        assert len(found) == len(expected), found


def test_a_column_of_the_statement_comes_before_words() -> None:
    assert at("SELECT t| FROM orders")[0] == "SELECT total"
