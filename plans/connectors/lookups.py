"""The connectors that only look up, as data: redis, http and python, with the checks that take more than one option.

How they reach what they look up belongs to the runtime.

>>> from plans.declarations.tables import Table, TableColumn
>>> table = Table(columns=(TableColumn(name="code", type="STRING"),),
...     options={"connector": "http", "url": "ftp://rates/{code}"})
>>> print(*check_http("tables.rates.options", table))
tables.rates.options.url: the url must start with http:// or https:// and name a host
  hint: write 'url' = 'https://example.com/rates/{code}'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from plans.connectors.key_pattern import Text, check_pattern, parse_pattern, pattern_columns
from plans.connectors.options import ENVIRONMENT, ConnectorSpec, OptionSpec
from plans.connectors.reach import HostPlace, http_host
from plans.declarations.tables import Table
from plans.errors import Diagnostic

__all__ = ["HTTP", "PYTHON", "REDIS", "check_http", "check_python", "check_redis"]

HEADER, PROPERTY = "header.", "properties."
PYTHON_CLASSES = {"sync": "class", "async": "async-class", "full": "scan-class"}
"""The option that names the class for each mode of lookup."""

_ONLY_LOOKS_UP = "it serves lookup joins only: JOIN ... FOR SYSTEM_TIME AS OF"
_SECRET = re.compile(r"auth|cookie|credential|key|password|secret|token", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = frozenset(
    ("accept", "accept-encoding", "authorization", "connection", "content-length", "host", "transfer-encoding")
)
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")

REDIS = ConnectorSpec(
    name="redis",
    readable=False,
    writable=False,
    lookups=("sync", "async"),
    options=(
        OptionSpec(name="host", required=True),
        OptionSpec(name="port", kind="int", maximum=65_535, default="6379"),
        OptionSpec(name="database", kind="int", minimum=0, default="0"),
        OptionSpec(name="username", environment=True),
        OptionSpec(name="password", secret=True),
        OptionSpec(name="ssl", kind="bool", default="false"),
        OptionSpec(name="key-pattern", required=True, environment=True),
        OptionSpec(name="data-type", default="hash", choices=("hash", "json", "string")),
        OptionSpec(name="connection.pool-size", kind="int", maximum=1_000, default="10"),
        OptionSpec(name="timeout", kind="duration", default="10 s"),
    ),
    reaches=lambda table: (_redis(table.options),),
    refusal=_ONLY_LOOKS_UP,
)

HTTP = ConnectorSpec(
    name="http",
    readable=False,
    writable=False,
    lookups=("sync", "async"),
    options=(
        OptionSpec(name="url", required=True, environment=True),
        OptionSpec(name="authorization", secret=True),
        OptionSpec(name="response.pointer"),
        OptionSpec(name="response.max-bytes", kind="int", maximum=256 * 1024 * 1024, default="1048576"),
        OptionSpec(name="connection.pool-size", kind="int", maximum=1_000, default="10"),
        OptionSpec(name="timeout", kind="duration", default="10 s"),
    ),
    families=(HEADER,),
    reaches=lambda table: (http_host("url", table.options["url"]),),
    refusal=_ONLY_LOOKS_UP,
)

PYTHON = ConnectorSpec(
    name="python",
    readable=False,
    writable=False,
    lookups=("sync", "async", "full"),
    options=tuple(OptionSpec(name=name) for name in PYTHON_CLASSES.values()),
    families=(PROPERTY,),
    refusal=_ONLY_LOOKS_UP,
)


def _redis(options: Mapping[str, str]) -> HostPlace:
    return HostPlace("host", options["host"].lower(), int(options.get("port", "6379")), usual=6379)


def check_redis(path: str, table: Table) -> Iterator[Diagnostic]:
    """The key pattern, and for plain strings that one column is left for the value."""
    pattern = table.options.get("key-pattern", "")
    if not pattern:
        return
    yield from check_pattern(path, "key-pattern", pattern, table)
    if table.options.get("data-type") == "string":
        try:
            keys = pattern_columns(pattern)
        except ValueError:
            return
        values = [column.name for column in table.columns if column.expression is None and column.name not in keys]
        if len(values) != 1:
            yield Diagnostic(
                message=f"a string has one value, but the table has {len(values)} columns besides those in "
                "'key-pattern'",
                hint="declare one column for the value, or use 'data-type' = 'hash' or 'json'",
                path=f"{path}.data-type",
            )


def check_http(path: str, table: Table) -> Iterator[Diagnostic]:
    """The url's pattern and host, and the headers: what authenticates must come from the environment."""
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


def _check_host(path: str, url: str) -> Iterator[Diagnostic]:
    try:
        first = parse_pattern(url)[0]
    except ValueError:
        return
    start = first.text if isinstance(first, Text) else ""
    if re.match(r"[^:]*:?/{0,2}[^/?#]*\$\{env:", start):
        yield Diagnostic(
            message="the environment must not say which host a url has",
            hint="write the host itself; ${env:NAME} may stand in the path or the query",
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
        yield from _check_secret(path, f"the header {name}", value)


def _check_secret(path: str, what: str, value: str) -> Iterator[Diagnostic]:
    if _SECRET.search(what) and not ENVIRONMENT.fullmatch(value):
        yield Diagnostic(
            message=f"{what} may be a secret, which must not stand in the text",
            hint="write '${env:NAME}' and set NAME for the run",
            path=path,
        )


def check_python(path: str, table: Table) -> Iterator[Diagnostic]:
    """That at least one class is named, and each as ``module.Class``."""
    given = {name: table.options[name] for name in PYTHON_CLASSES.values() if name in table.options}
    if not given:
        yield Diagnostic(
            message="the python connector needs one of the options 'class', 'async-class' and 'scan-class'",
            hint="write 'class' = 'module.Class', the name of a LookupFunction",
            path=f"{path}.class",
        )
    for key, value in table.options.items():
        if key.startswith(PROPERTY):
            yield from _check_secret(f"{path}.{key}", f"the property {key.removeprefix(PROPERTY)}", value)
    for name, value in given.items():
        if not _CLASS.fullmatch(value):
            yield Diagnostic(
                message=f"{name!r} is {value!r}, expected the dotted name of a class",
                hint="write 'module.Class'",
                path=f"{path}.{name}",
            )
