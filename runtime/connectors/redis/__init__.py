"""The redis connector: looks up rows in Redis."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.connectors.redis import KEY_PATTERN, REDIS
from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.connectors.connector import LookupTable
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.source import LookupSource, source_of_classes
from hintplan.runtime.lookup.sources.addressing import addressed_columns

__all__ = ["CODE"]


def _check(mode: LookupMode, context: LookupContext) -> None:
    addressed_columns(context, KEY_PATTERN)


_SOURCE = source_of_classes(
    REDIS.name,
    f"{__name__}.lookup",
    {"sync": "RedisLookup", "async": "AsyncRedisLookup"},
    check=_check,
    extra=REDIS.extras[0],
    packages=("redis",),
)


class RedisCode(LookupTable):
    """Looks rows up in Redis, by a key that a pattern makes from the key columns."""

    connector = REDIS

    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        return _SOURCE


CODE = RedisCode()
