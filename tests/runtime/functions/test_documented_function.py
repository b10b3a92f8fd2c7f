"""The class in docs/table-functions.md does what the page says, as it stands there; the page names every metric."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import runtime.functions
from plans.errors import RunError
from runtime.functions import AsyncTableFunction, FunctionContext
from runtime.functions.metrics import FUNCTION_METRICS
from runtime.functions.rows import returned_rows

PAGE = (Path(__file__).parents[3] / "docs" / "table-functions.md").read_text(encoding="utf-8")


def documented() -> Any:
    """The function that the page begins with."""
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], names)
    (found,) = [
        each
        for each in names.values()
        if isinstance(each, type) and issubclass(each, AsyncTableFunction) and each is not AsyncTableFunction
    ]
    return found


def test_the_function_on_the_page_answers() -> None:
    async def answers() -> list[Any]:
        function = documented()()
        await function.open(FunctionContext(function="locate", operator="correlate_t"))
        return [await function.eval(address) for address in ("10.0.0.1", "10.9.9.9")]

    assert asyncio.run(answers()) == [[("Lisbon", 0.9), ("Porto", 0.1)], []]


def test_the_message_on_the_page_is_what_is_said() -> None:
    declared = returned_rows(documented().result, "async-table", ("city", "score"))
    with pytest.raises(RunError) as caught:
        declared.arrow([[("Lisbon",)]], lambda place: "operator correlate_t: locate('10.0.0.1')")
    assert str(caught.value) in PAGE


@pytest.mark.parametrize("name", [name for name, _ in FUNCTION_METRICS])
def test_every_metric_stands_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_interface_stands_on_the_page() -> None:
    base = "UserDefinedFunction"
    assert [name for name in runtime.functions.__all__ if name != base and f"`{name}`" not in PAGE] == []
