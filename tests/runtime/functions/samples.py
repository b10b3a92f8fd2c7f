"""Functions that tests name in plans."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

from runtime.functions import AsyncScalarFunction, AsyncTableFunction, FunctionContext, TableFunction


class Words(TableFunction):
    """The words of a text with their lengths."""

    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    def eval(self, text: str | None, mark: str) -> Iterator[tuple[str, int]]:
        for word in (text or "").split(mark):
            if word:
                yield word, len(word)


class AsyncWords(AsyncTableFunction):
    """The same, but the first call for each text fails, and answers come in another order than calls."""

    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    async def open(self, context: FunctionContext) -> None:
        self.seen: set[str | None] = set()

    async def eval(self, text: str | None, mark: str) -> list[dict[str, Any]]:
        await asyncio.sleep(0.01 / (1 + len(text or "")))
        if text not in self.seen:
            self.seen.add(text)
            raise ConnectionError("at the first attempt")
        return [{"word": word, "length": len(word)} for word in (text or "").split(mark) if word]


class Together(AsyncTableFunction):
    """Answers only when twenty calls are in flight."""

    arguments = ("BIGINT",)
    result = "BIGINT"

    async def open(self, context: FunctionContext) -> None:
        self.barrier = asyncio.Barrier(20)

    async def eval(self, number: int) -> list[int]:
        await self.barrier.wait()
        return [number, -number]


class Never(AsyncTableFunction):
    """Never answers."""

    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    async def eval(self, text: str | None, mark: str) -> list[Any]:
        await asyncio.Event().wait()
        return []


class Hangs(AsyncTableFunction):
    """Never gives the event loop back."""

    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    async def eval(self, text: str | None, mark: str) -> list[Any]:
        threading.Event().wait()
        return []


class Broken(AsyncTableFunction):
    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    async def eval(self, text: str | None, mark: str) -> list[Any]:
        raise ConnectionError("nobody answers")


class AsyncLength(AsyncScalarFunction):
    arguments = ("STRING",)
    result = "INT"

    async def eval(self, text: str | None) -> int | None:
        await asyncio.sleep(0)
        return None if text is None else len(text)


class Gate(TableFunction):
    """The words of a text, which is a path, once there is a file; until then it waits."""

    arguments = ("STRING", "STRING")
    result = "ROW<word STRING, length INT>"

    def eval(self, text: str, mark: str) -> Iterator[tuple[str, int]]:
        while not os.path.exists(text):
            threading.Event().wait(0.05)
        yield text, len(text)
