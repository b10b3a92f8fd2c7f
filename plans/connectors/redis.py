"""The redis connector: looks rows up in Redis, by a key that a pattern makes from the join's key columns."""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.key_pattern import check_pattern, pattern_columns
from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import HostPlace, Place
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

KEY_PATTERN = "key-pattern"


class Redis(LookedUp):
    """Lookups in Redis."""

    name = "redis"
    description = "Looks rows up in Redis."
    options = (
        option("host", required=True, description="The host of the server."),
        option("port", "int", maximum=65_535, default="6379", description="The port of the server."),
        option("database", "int", minimum=0, default="0", description="The number of the database."),
        option("username", environment=True, description="The user."),
        option("password", secret=True, description="The password, as ${env:NAME}."),
        option(
            "ssl",
            "bool",
            default="false",
            description="true: the connection is encrypted, and the certificate verified.",
        ),
        option(
            KEY_PATTERN,
            required=True,
            environment=True,
            description="The pattern of keys, with columns in braces, such as user:{id}.",
        ),
        option("data-type", default="hash", choices=("hash", "json", "string"), description="The type of the values."),
        option(
            "connection.pool-size",
            "int",
            maximum=1_000,
            default="10",
            description="The most connections of a Python worker for asynchronous lookups.",
        ),
        option(
            "timeout", "duration", default="10 s", description="The time limit for connecting, and for each response."
        ),
    )
    lookup_modes = ("sync", "async")
    extras = ("redis",)

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        """Check the key pattern. With ``'data-type' = 'string'``, exactly one column must remain for the value."""
        pattern = table.options.get(KEY_PATTERN, "")
        if not pattern:
            return
        yield from check_pattern(path, KEY_PATTERN, pattern, table)
        if table.options.get("data-type") == "string":
            try:
                keys = pattern_columns(pattern)
            except ValueError:
                return
            values = [column.name for column in table.columns if column.is_physical and column.name not in keys]
            if len(values) != 1:
                yield Diagnostic(
                    message=f"a string has one value, but the table has {len(values)} columns besides those in "
                    f"{KEY_PATTERN!r}",
                    hint="declare one column for the value, or use 'data-type' = 'hash' or 'json'",
                    path=f"{path}.data-type",
                )

    def reaches(self, table: Table) -> Iterator[Place]:
        options = table.options
        yield HostPlace("host", options["host"].lower(), int(options.get("port", "6379")), usual=6379)

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("redis",)


REDIS = Redis()
