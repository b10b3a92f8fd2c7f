"""The classes in docs/lookup-functions.md do what the page says, as they stand there."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hintplan.plans.declarations.tables import Column
from hintplan.runtime.lookup.api import CacheReloadTrigger, LookupCache, LookupContext, LookupFunction
from hintplan.runtime.lookup.caches.full_cache import FullCache, Reloads
from hintplan.runtime.lookup.metrics import LOOKUP_METRICS
from tests.connectors.lookup.simulation import FOUND, VirtualClock, VirtualScheduler, spec

PAGE = (Path(__file__).parents[3] / "docs" / "lookup-functions.md").read_text(encoding="utf-8")


def documented(kind: type) -> Any:
    """The class on the page that implements ``kind``."""
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        names: dict[str, Any] = {}
        exec(block, names)
        for found in names.values():
            if isinstance(found, type) and issubclass(found, kind) and found is not kind:
                return found
    raise AssertionError(f"no {kind.__name__} on the page")


def test_the_source_answers_with_the_columns_asked_for() -> None:
    code, rate = Column(name="code", type="STRING"), Column(name="rate", type="DECIMAL(10, 4)")
    source = documented(LookupFunction)()
    source.open(LookupContext(table="rates", options={}, keys=(code,), columns=(rate, code)))
    assert source.lookup_many([("EUR",), ("XXX",)]) == [[(Decimal("1.08"), "EUR")], []]


def test_the_cache_keeps_what_it_is_given() -> None:
    cache = documented(LookupCache)({})
    assert cache.put(("EUR",), [("EUR", 1)]) is None
    assert cache.get_if_present(("EUR",)) == [("EUR", 1)]
    cache.invalidate(("EUR",))
    assert (cache.get_if_present(("EUR",)), cache.size()) == (None, 0)


def test_the_trigger_reloads_a_minute_after_each_load() -> None:
    clock = VirtualClock(0)
    scheduler, loads = VirtualScheduler(clock), []

    def load() -> list[Any]:
        loads.append(clock.now())
        return []

    cache = FullCache(load, FOUND, ["k"], clock, retry_on=(), policy=spec().policy)
    trigger = documented(CacheReloadTrigger)({})
    trigger.open(Reloads(cache, clock, scheduler))
    scheduler.advance(150_000)
    trigger.close()
    scheduler.advance(150_000)
    assert loads == [60_000, 120_000]


@pytest.mark.parametrize("name", [name for name, _ in LOOKUP_METRICS])
def test_every_metric_stands_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE
