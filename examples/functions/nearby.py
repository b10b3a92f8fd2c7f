"""An asynchronous table function: asks a web service, whose address is in the environment."""

from __future__ import annotations

import os
from typing import Any

import httpx

from hintplan.runtime.functions.api import AsyncTableFunction, FunctionContext


class Nearby(AsyncTableFunction):
    """What there is to see near an airport, nearest first."""

    arguments = ("STRING",)
    result = "ROW<place STRING, km DOUBLE>"
    retry_on = (httpx.TransportError, httpx.HTTPStatusError)

    async def open(self, context: FunctionContext) -> None:
        self.client = httpx.AsyncClient(base_url=os.environ["NEARBY_URL"])

    async def eval(self, airport: str | None) -> list[dict[str, Any]]:
        if airport is None:
            return []
        answer = await self.client.get(f"/near/{airport}")
        answer.raise_for_status()
        return sorted(answer.json(), key=lambda place: place["km"])

    async def close(self) -> None:
        await self.client.aclose()
