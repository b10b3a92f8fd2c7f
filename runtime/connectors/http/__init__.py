"""The http connector: looks up rows in a web service."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.connectors.http import HTTP
from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.connectors.connector import LookupTable
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.source import LookupSource, source_of_classes
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


class HttpCode(LookupTable):
    """Looks rows up in a web service, at an address with the key columns."""

    connector = HTTP

    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        return _SOURCE


CODE = HttpCode()
