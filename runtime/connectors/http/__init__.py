"""The http connector: looks up rows in a web service."""

from __future__ import annotations

from hintplan.plans.connectors.http import HTTP
from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.source import source_of_classes
from hintplan.runtime.lookup.sources.addressing import addressed_columns

__all__ = ["CODE"]


def _check(mode: LookupMode, context: LookupContext) -> None:
    addressed_columns(context, "url")


_SOURCE = source_of_classes(
    HTTP.name,
    f"{__name__}.lookup",
    {"sync": "HttpLookup", "async": "AsyncHttpLookup"},
    check=_check,
    extra=HTTP.extras[0],
    packages=("httpx",),
)

CODE = ConnectorCode(connector=HTTP, lookup=lambda options: _SOURCE)
