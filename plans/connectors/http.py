"""The http connector: looks rows up in a web service. The path or the query of a URL contains the key.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> table = Table(columns=(TableColumn(name="code", type="STRING"),),
...     options={"connector": "http", "url": "ftp://rates/{code}"})
>>> print(*HTTP.check("tables.rates.options", table))
tables.rates.options.url: the url must start with http:// or https:// and name a host
  hint: write 'url' = 'https://example.com/rates/{code}'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.key_pattern import Text, check_pattern, parse_pattern
from hintplan.plans.connectors.options import check_secret, option
from hintplan.plans.connectors.reach import Place, http_host
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

HEADER = "header."
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = frozenset(
    ("accept", "accept-encoding", "authorization", "connection", "content-length", "host", "transfer-encoding")
)


def _check_host(path: str, url: str) -> Iterator[Diagnostic]:
    try:
        first = parse_pattern(url)[0]
    except ValueError:
        return
    start = first.text if isinstance(first, Text) else ""
    if re.match(r"[^:]*:?/{0,2}[^/?#]*\$\{env:", start):
        yield Diagnostic(
            message="the environment must not set the host of a url",
            hint="write the host itself; ${env:NAME} is allowed in the path and the query",
            path=f"{path}.url",
        )
    elif not re.match(r"https?://[^/?#\s@]+[/?]", start, re.IGNORECASE):
        problem = "the url must start with http:// or https:// and name a host"
        if re.match(r"https?://[^/?#\s]*@", start, re.IGNORECASE):
            problem = "a user does not belong into the url; use 'authorization'"
        elif isinstance(first, Text) and re.match(r"https?://", start, re.IGNORECASE):
            problem = "the key belongs into the path or the query of the url, after a host"
        yield Diagnostic(message=problem, hint="write 'url' = 'https://example.com/rates/{code}'", path=f"{path}.url")
    elif "#" in url:
        yield Diagnostic(message="the url has a fragment, which no server sees", hint="remove it", path=f"{path}.url")


def _check_header(path: str, name: str, value: str) -> Iterator[Diagnostic]:
    if not _HEADER_NAME.fullmatch(name):
        yield Diagnostic(message=f"{name!r} cannot be the name of a header", hint="write header.X-Name", path=path)
    elif name.lower() in _OWN_HEADERS:
        hint = "write 'authorization' = '${env:NAME}'" if name.lower() == "authorization" else "remove it"
        yield Diagnostic(message=f"the header {name} is set by the connector", hint=hint, path=path)
    elif "\n" in value or "\r" in value:
        yield Diagnostic(message="the value of a header is one line", hint="remove the line break", path=path)
    else:
        yield from check_secret(path, f"the header {name}", value)


class Http(LookedUp):
    """Lookups in a web service."""

    name = "http"
    description = "Looks rows up in a web service that answers in JSON."
    options = (
        option(
            "url",
            required=True,
            environment=True,
            description="The address, with key columns in braces in the path or the query.",
        ),
        option("authorization", secret=True, description="The header of that name, as ${env:NAME}."),
        option("response.pointer", description="A JSON pointer to the rows of the answer, such as /data/items."),
        option(
            "response.max-bytes",
            "int",
            maximum=256 * 1024 * 1024,
            default="1048576",
            description="A longer answer fails the query.",
        ),
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
    families = (HEADER,)
    lookup_modes = ("sync", "async")
    extras = ("http",)
    stands_in: ClassVar[Mapping[str, str]] = {"rest-lookup": "write 'connector' = 'http'"}

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        """Check the pattern and host of the URL, the JSON pointer, and the headers, which must not contain a secret."""
        url = table.options.get("url", "")
        if url:
            yield from check_pattern(path, "url", url, table)
            yield from _check_host(path, url)
        pointer = table.options.get("response.pointer", "")
        if pointer and not pointer.startswith("/"):
            yield Diagnostic(
                message=f"'response.pointer' is {pointer!r}, expected a JSON pointer such as '/data/items'",
                hint="begin with a slash",
                path=f"{path}.response.pointer",
            )
        for key, value in table.options.items():
            if key.startswith(HEADER) and key != HEADER:
                yield from _check_header(f"{path}.{key}", key.removeprefix(HEADER), value)

    def reaches(self, table: Table) -> Iterable[Place]:
        return (http_host("url", table.options["url"]),)

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("http",)


HTTP = Http()
