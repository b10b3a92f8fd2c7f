"""The description of one lookup operator for Python workers, as plain data that travels with the task.

:mod:`hintplan.runtime.lookup.plan` builds it from the plan on the driver, and :mod:`hintplan.runtime.lookup.worker`
opens the lookup. A digest separates lookups that must not share a cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.request import FetchPolicy
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.worker.shared import shared_identity


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """The cache of one lookup. Times are in ms, None if the plan sets none; ``time_zone`` applies to times of day."""

    kind: Literal["NONE", "PARTIAL", "FULL"]
    max_rows: int | None = None
    expire_after_access: int | None = None
    expire_after_write: int | None = None
    cache_missing_key: bool = True
    cache_class: str | None = None
    reload: Literal["PERIODIC", "TIMED", "CUSTOM"] = "PERIODIC"
    interval: int | None = None
    schedule_mode: Literal["FIXED_DELAY", "FIXED_RATE"] = "FIXED_DELAY"
    iso_time: str | None = None
    interval_in_days: int = 1
    trigger_class: str | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSpec:
    """One lookup operator. ``run`` identifies the run on its cluster; ``pins`` is None if answers are not pinned."""

    run: str
    source: LookupSource
    mode: LookupMode
    context: LookupContext
    policy: FetchPolicy
    cache: CacheSpec
    rows: LookupRows
    pins: PinPlace | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """The operator, and a digest of the run, the settings and the table: the key of a shared cache."""
        context = self.context
        facts = (self.run, self.source.connector, self.mode, self.policy, self.cache, context.table)
        columns = (sorted(context.options.items()), context.keys, context.columns)
        return shared_identity(self.policy.operator, facts, columns)
