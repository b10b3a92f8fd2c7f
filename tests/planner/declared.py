"""Classes that scripts of the tests declare as functions. The planner looks at them, and never calls them."""

from __future__ import annotations

from typing import Any


class Plain:
    def eval(self, *arguments: Any) -> Any: ...


class Awaited:
    async def eval(self, *arguments: Any) -> Any: ...


class Locate(Awaited):
    function_kind, arguments, result = "async-table", ("STRING",), "ROW<lat DOUBLE, lon DOUBLE>"


class DocumentedLocate(Awaited):
    function_kind, arguments, result = "async-table", ("STRING",), "ROW<city STRING, score DOUBLE>"


class Route(Awaited):
    function_kind, arguments, result = "async-table", ("DOUBLE", "BIGINT", "STRING"), "ROW<leg STRING, `to` STRING>"


class Words(Plain):
    function_kind, arguments, result = "table", ("STRING",), "STRING"


class Ticks(Plain):
    function_kind, arguments, result = "table", (), "INT"


class Clean(Plain):
    function_kind, arguments, result = "scalar", ("STRING",), "STRING"


class Score(Awaited):
    function_kind, arguments, result = "async-scalar", ["STRING", "DOUBLE"], "DOUBLE"


class NoFunction(Plain):
    arguments, result = (), "INT"


class NoArguments(Plain):
    function_kind, result = "table", "INT"


class ArgumentsInOneText(Plain):
    function_kind, arguments, result = "table", "STRING", "INT"


class NoResult(Plain):
    function_kind, arguments = "table", ()


class BadType(Plain):
    function_kind, arguments, result = "table", ("STRING", "VARIANT"), "INT"


class NeverNull(Plain):
    function_kind, arguments, result = "scalar", ("STRING NOT NULL",), "INT"


class TwoAlike(Plain):
    function_kind, arguments, result = "table", (), "ROW<a INT, A INT>"


class Reserved(Plain):
    function_kind, arguments, result = "table", (), "ROW<__a INT>"


class RowOfScalar(Plain):
    function_kind, arguments, result = "scalar", ("ROW<a INT, b STRING>",), "ROW<a INT, b STRING>"


class Outer(Plain):
    class Inner:
        function_kind, arguments, result = "scalar", (), "INT"


class WeightedAvg:
    function_kind, arguments, result = "aggregate", ("BIGINT", "INT"), "DOUBLE"
    accumulator = "ROW<total BIGINT, weight BIGINT>"

    def create_accumulator(self) -> Any: ...
    def accumulate(self, accumulator: Any, value: Any, weight: Any) -> Any: ...
    def get_value(self, accumulator: Any) -> Any: ...
    def retract(self, accumulator: Any, value: Any, weight: Any) -> Any: ...
    def merge(self, accumulator: Any, accumulators: Any) -> Any: ...


class ListsAvg(WeightedAvg):
    arguments = ("ARRAY<INT>",)  # type: ignore[assignment]

    def accumulate(self, accumulator: Any, values: Any) -> Any: ...  # type: ignore[override]
    def retract(self, accumulator: Any, values: Any) -> Any: ...  # type: ignore[override]


class CountAll(WeightedAvg):
    arguments = ()  # type: ignore[assignment]

    def accumulate(self, accumulator: Any) -> Any: ...  # type: ignore[override]
    def retract(self, accumulator: Any) -> Any: ...  # type: ignore[override]
