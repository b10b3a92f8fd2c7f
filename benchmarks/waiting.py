"""Functions for the benchmark: what they do is wait."""

from __future__ import annotations

import asyncio
import time

from hintplan.runtime.functions import AsyncTableFunction, TableFunction

__all__ = ["DELAY_SECONDS", "Wait", "WaitAsync"]

DELAY_SECONDS = 0.01


class Wait(TableFunction):
    """One row, after the delay."""

    arguments = ("BIGINT",)
    result = "ROW<n BIGINT, name STRING>"

    def eval(self, number: int) -> list[tuple[int, str]]:
        time.sleep(DELAY_SECONDS)
        return [(number, f"name {number}")]


class WaitAsync(AsyncTableFunction):
    """The same, for any number of calls at once."""

    arguments = ("BIGINT",)
    result = "ROW<n BIGINT, name STRING>"

    async def eval(self, number: int) -> list[tuple[int, str]]:
        await asyncio.sleep(DELAY_SECONDS)
        return [(number, f"name {number}")]
