"""Functions that tests name in plans, which are given ROWs, ARRAYs and MAPs, and return them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.functions import AggregateFunction, AsyncScalarFunction, ScalarFunction, TableFunction

BUYER = "ROW<name STRING, address ROW<city STRING, zip INT>>"


class Moved(ScalarFunction):
    """The buyer, in another city; the zip is what it was."""

    arguments = (BUYER, "STRING")
    result = BUYER

    def eval(self, buyer: dict[str, Any] | None, city: str | None) -> dict[str, Any] | None:
        if buyer is None:
            return None
        zip_code = None if buyer["address"] is None else buyer["address"]["zip"]
        return {"name": buyer["name"], "address": (city, zip_code)}


class Counted(AsyncScalarFunction):
    """How often each tag is there."""

    arguments = ("ARRAY<STRING>",)
    result = "MAP<STRING, INT>"

    async def eval(self, tags: list[str | None] | None) -> dict[str, int] | None:
        if tags is None:
            return None
        return {tag: tags.count(tag) for tag in tags if tag is not None}


class Priced(TableFunction):
    """A row for each price, with its key and value as a ROW, and the tags that have its key as an ARRAY."""

    arguments = ("MAP<STRING, DOUBLE>", "ARRAY<STRING>")
    result = "ROW<entry ROW<k STRING, v DOUBLE>, tags ARRAY<STRING>>"

    def eval(self, prices: dict[str, float | None] | None, tags: list[str | None] | None) -> Iterator[Any]:
        for key, value in sorted((prices or {}).items()):
            yield (key, value), [tag for tag in tags or () if tag == key]


class Cities(AggregateFunction):
    """The zips of each city, sorted: a MAP of ARRAYs out of ROWs."""

    arguments = (BUYER,)
    accumulator = "MAP<STRING, ARRAY<INT>>"
    result = "ROW<cities ARRAY<STRING>, zips MAP<STRING, ARRAY<INT>>>"

    def create_accumulator(self) -> dict[str, list[int]]:
        return {}

    def accumulate(self, accumulator: dict[str, list[int]], buyer: dict[str, Any] | None) -> None:
        if place := _place(buyer):
            accumulator.setdefault(place[0], []).append(place[1])

    def retract(self, accumulator: dict[str, list[int]], buyer: dict[str, Any] | None) -> None:
        if place := _place(buyer):
            accumulator[place[0]].remove(place[1])
            if not accumulator[place[0]]:
                del accumulator[place[0]]

    def merge(self, accumulator: dict[str, list[int]], accumulators: list[dict[str, list[int]]]) -> None:
        for other in accumulators:
            for city, zips in other.items():
                accumulator.setdefault(city, []).extend(zips)

    def get_value(self, accumulator: dict[str, list[int]]) -> Any:
        ordered = {city: sorted(zips) for city, zips in sorted(accumulator.items())}
        return list(ordered), ordered


def _place(buyer: dict[str, Any] | None) -> tuple[str, int] | None:
    address = None if buyer is None else buyer["address"]
    if address is None or None in address.values():
        return None
    return address["city"], address["zip"]
