"""Lookups in Redis: ``'connector' = 'redis'``.

One call looks up many keys: a pipeline of HMGET for hashes, otherwise MGET. HMGET gives the same answer for a missing
hash as for a hash without the fields. MGET gives the same answer for a missing key as for a value of another type. A
second call distinguishes these cases. :mod:`hintplan.runtime.connectors.redis.values` defines names and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.redis.values import redis_values
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row
from hintplan.runtime.lookup.sources.failures import SourceUnavailable, redacted
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve


class RedisLookup(LookupFunction):
    """Answers keys while the caller waits."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def open(self, context: LookupContext) -> None:
        self._stored = redis_values(context)
        pool_class: Any = redis.BlockingConnectionPool
        connection_class = redis.SSLConnection if _ssl(context) else redis.Connection
        pool = pool_class(connection_class=connection_class, **_settings(context))
        self._client: Any = redis.Redis.from_pool(pool)

    def lookup(self, key: Key) -> Sequence[Row]:
        return self.lookup_many([key])[0]

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Sequence[Row]]:
        stored = self._stored
        names = [stored.name(key) for key in keys]
        with _failures(stored.context):
            if stored.fields is None:
                values = self._client.mget(names)
                missing = [name for name, value in zip(names, values, strict=True) if value is None]
                if missing and self._client.exists(*missing):
                    stored.refuse_others(missing, self._run("TYPE", missing))
                return [stored.from_text(key, value) for key, value in zip(keys, values, strict=True)]
            hashes = self._run("HMGET", names, *stored.fields)
            empty = [name for name, field_values in zip(names, hashes, strict=True) if stored.is_empty(field_values)]
            exists = dict(zip(empty, self._run("EXISTS", empty), strict=True)) if empty else {}
        return [stored.from_hash(*item, exists) for item in zip(keys, names, hashes, strict=True)]

    def _run(self, command: str, names: Sequence[bytes], *arguments: str) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.execute_command(command, name, *arguments)
            return list(pipeline.execute())

    def close(self) -> None:
        self._client.close()


class AsyncRedisLookup(AsyncLookupFunction):
    """Answers keys on up to ``connection.pool-size`` connections."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    async def open(self, context: LookupContext) -> None:
        self._stored = redis_values(context)
        pool = redis.asyncio.BlockingConnectionPool(
            connection_class=redis.asyncio.SSLConnection if _ssl(context) else redis.asyncio.Connection,
            **_settings(context),
        )
        self._client: Any = redis.asyncio.Redis.from_pool(pool)

    async def lookup(self, key: Key) -> Sequence[Row]:
        return (await self.lookup_many([key]))[0]

    async def lookup_many(self, keys: Sequence[Key]) -> Sequence[Sequence[Row]]:
        stored = self._stored
        names = [stored.name(key) for key in keys]
        with _failures(stored.context):
            if stored.fields is None:
                values = await self._client.mget(names)
                missing = [name for name, value in zip(names, values, strict=True) if value is None]
                if missing and await self._client.exists(*missing):
                    stored.refuse_others(missing, await self._run("TYPE", missing))
                return [stored.from_text(key, value) for key, value in zip(keys, values, strict=True)]
            hashes = await self._run("HMGET", names, *stored.fields)
            empty = [name for name, field_values in zip(names, hashes, strict=True) if stored.is_empty(field_values)]
            exists = dict(zip(empty, await self._run("EXISTS", empty), strict=True)) if empty else {}
        return [stored.from_hash(*item, exists) for item in zip(keys, names, hashes, strict=True)]

    async def _run(self, command: str, names: Sequence[bytes], *arguments: str) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.execute_command(command, name, *arguments)
            return list(await pipeline.execute())

    async def close(self) -> None:
        await self._client.aclose()


def _ssl(context: LookupContext) -> bool:
    return context.options.get("ssl", "false").lower() == "true"


def _settings(context: LookupContext) -> dict[str, Any]:
    options = context.options
    seconds = parse_duration(options.get("timeout", "10 s")) / 1000
    port = int(options.get("port", "6379"))
    refuse_link_local(options["host"], port, path=f"tables.{context.table}.options.host")
    settings: dict[str, Any] = {
        "host": options["host"],
        "port": port,
        "db": int(options.get("database", "0")),
        "max_connections": int(options.get("connection.pool-size", "10")),
        "timeout": seconds,
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "client_name": "hintplan",
        # No retries here: the engine retries, and counts its attempts.
        "retry": Retry(NoBackoff(), 0),
    }
    settings |= {name: resolve(options[name]) for name in ("username", "password") if name in options}
    return settings


@contextmanager
def _failures(context: LookupContext) -> Iterator[None]:
    path = f"tables.{context.table}"
    try:
        yield
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise RunError(
            f"Redis refused the user: {redacted(str(error), context.options)}",
            hint="check 'username' and the variable that 'password' refers to",
            path=path,
        ) from None
    except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError) as error:
        raise SourceUnavailable(
            f"Redis did not answer a lookup: {redacted(str(error), context.options)}", path=path
        ) from None
    except redis.RedisError as error:
        hint = "check 'data-type'" if "WRONGTYPE" in str(error) else None
        raise RunError(
            f"Redis refused a lookup: {redacted(str(error), context.options)}", hint=hint, path=path
        ) from None
