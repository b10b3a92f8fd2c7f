"""Aggregate functions that tests name in plans, those among them that PyFlink runs, too."""

from __future__ import annotations

from typing import Any

from runtime.functions import AggregateFunction, FunctionContext
from tests.flink.aggregate_functions import TYPES


def declared(name: str) -> type[AggregateFunction]:
    """The function of that name that PyFlink runs, too."""
    methods, arguments, fields, result = TYPES[name]
    listed = ", ".join(f"`{field}` {kind}" for field, kind in fields.items())
    said = {"arguments": arguments, "accumulator": f"ROW<{listed}>", "result": result, "__module__": __name__}
    return type(methods.__name__, (methods, AggregateFunction), said)


WeightedAverage, Bag, Calls = declared("weighted"), declared("bag"), declared("calls")


class Rows(AggregateFunction):
    """The number of rows, in an accumulator that is a scalar and returned."""

    arguments = ()
    accumulator = "BIGINT"
    result = "BIGINT"

    def create_accumulator(self) -> int:
        return 0

    def accumulate(self, accumulator: int) -> int:
        return accumulator + 1

    def retract(self, accumulator: int) -> int:
        return accumulator - 1

    def merge(self, accumulator: int, accumulators: list[int]) -> int:
        return accumulator + sum(accumulators)

    def get_value(self, accumulator: int) -> int:
        return accumulator


class Mode(AggregateFunction):
    """The value that is there most often, the least of several; it forgets nothing and takes nothing back."""

    arguments = ("BIGINT",)
    accumulator = "MAP<BIGINT, BIGINT>"
    result = "BIGINT"

    def open(self, context: FunctionContext) -> None:
        self.name = context.function

    def create_accumulator(self) -> dict[int, int]:
        return {}

    def accumulate(self, accumulator: dict[int, int], value: int | None) -> None:
        if value is not None:
            accumulator[value] = accumulator.get(value, 0) + 1

    def merge(self, accumulator: dict[int, int], accumulators: list[dict[int, int]]) -> None:
        for other in accumulators:
            for value, number in other.items():
                accumulator[value] = accumulator.get(value, 0) + number

    def get_value(self, accumulator: dict[int, int]) -> int | None:
        return min(accumulator, key=lambda value: (-accumulator[value], value), default=None)


class Broken(Rows):
    """Fails, or leaves what is no accumulator, as its argument says."""

    arguments: Any = ("STRING",)
    accumulator = "ROW<rows BIGINT>"

    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, what: str | None) -> Any:  # type: ignore[override]
        if what == "fails":
            raise LookupError("of its own")
        if what == "leaves a text":
            accumulator[0] = "x"
        return [1] if what == "returns" else None

    def retract(self, accumulator: Any, what: str | None) -> Any:  # type: ignore[override]
        return None

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]


class Values(Bag):  # type: ignore[misc, valid-type]
    """The values that are there, as an array."""

    result = "ARRAY<STRING>"

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]
