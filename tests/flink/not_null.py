"""Sinks with columns that are NOT NULL, and rows for them, for Flink and for here."""

from __future__ import annotations

ROWS = ({"a": 1, "b": "x"}, {"b": "y"}, {"a": 3})
ENFORCERS = ("ERROR", "DROP")
SINKS = {
    "nothing declared": "a INT, b STRING",
    "one column": "a INT NOT NULL, b STRING",
    "both columns": "a INT NOT NULL, b STRING NOT NULL",
    "a key": "a INT, b STRING, PRIMARY KEY (a) NOT ENFORCED",
    "a key and a column": "a INT, b STRING NOT NULL, PRIMARY KEY (a) NOT ENFORCED",
    "an element": "a INT, b ROW<c STRING NOT NULL>",
}
