"""Classes that scripts of the tests declare as functions. The planner reads these three attributes and nothing else."""

from __future__ import annotations


class Locate:
    function_kind, arguments, result = "async-table", ("STRING",), "ROW<lat DOUBLE, lon DOUBLE>"


class DocumentedLocate:
    function_kind, arguments, result = "async-table", ("STRING",), "ROW<city STRING, score DOUBLE>"


class Route:
    function_kind, arguments, result = "async-table", ("DOUBLE", "BIGINT", "STRING"), "ROW<leg STRING, `to` STRING>"


class Words:
    function_kind, arguments, result = "table", ("STRING",), "STRING"


class Ticks:
    function_kind, arguments, result = "table", (), "INT"


class Clean:
    function_kind, arguments, result = "scalar", ("STRING",), "STRING"


class Score:
    function_kind, arguments, result = "async-scalar", ["STRING", "DOUBLE"], "DOUBLE"


class NoFunction:
    arguments, result = (), "INT"


class NoArguments:
    function_kind, result = "table", "INT"


class ArgumentsInOneText:
    function_kind, arguments, result = "table", "STRING", "INT"


class NoResult:
    function_kind, arguments = "table", ()


class BadType:
    function_kind, arguments, result = "table", ("STRING", "VARIANT"), "INT"


class NeverNull:
    function_kind, arguments, result = "scalar", ("STRING NOT NULL",), "INT"


class TwoAlike:
    function_kind, arguments, result = "table", (), "ROW<a INT, A INT>"


class Reserved:
    function_kind, arguments, result = "table", (), "ROW<__a INT>"


class RowOfScalar:
    function_kind, arguments, result = "scalar", ("ROW<a INT, b STRING>",), "ROW<a INT, b STRING>"


class Outer:
    class Inner:
        function_kind, arguments, result = "scalar", (), "INT"
