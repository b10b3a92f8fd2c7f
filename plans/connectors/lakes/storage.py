"""The location of a data lake's files: a directory that all machines share, or an S3 object store.

A table may set credentials for its store. Otherwise, the environment or the role of the machine provides them.

>>> place_of("table-path", "s3a://lake/orders").scheme
's3a'
>>> from hintplan.plans.declarations.tables import Table
>>> table = Table(columns=(), options={"connector": "x", "at": "hdfs://name/orders"})
>>> print(*check_place("tables.orders.options", table, "at"))
tables.orders.options.at: the path is of 'hdfs', and only local directories and s3:// are supported
  hint: write 'at' = 's3://bucket/orders', or the path of a directory
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import FilePlace, Place, file_place, http_host
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

_S3 = ("s3", "s3a")
_ENDPOINT = "s3.endpoint"
_REGION = "s3.region"

S3_OPTIONS = (
    option(_ENDPOINT, description="The address of an object store other than Amazon's, such as http://minio:9000."),
    option(_REGION, description="The region of the bucket; the region of the machine if absent."),
    option(
        "s3.access-key-id",
        environment=True,
        description="The key id of the account that writes; the account of the machine if absent.",
    ),
    option("s3.secret-access-key", secret=True, description="The key of who writes, as ${env:NAME}."),
    option("s3.session-token", secret=True, description="The token of a session of who writes, as ${env:NAME}."),
)


def place_of(option_name: str, path: str) -> FilePlace:
    """Return the location that ``path`` refers to."""
    return file_place(option_name, path)


def places_of_storage(table: Table, option_name: str) -> tuple[Place, ...]:
    """Return the location of a checked table's files, and the endpoint of their store if the table sets it."""
    place = place_of(option_name, table.options[option_name])
    endpoint = table.options.get(_ENDPOINT)
    return (place,) if endpoint is None else (place, http_host(_ENDPOINT, endpoint))


def check_place(path: str, table: Table, option_name: str) -> Iterator[Diagnostic]:
    """Yield the problems of the location in ``option_name``, and of its object store."""
    text = table.options.get(option_name, "")
    place, option_path = place_of(option_name, text), f"{path}.{option_name}"
    if not place.is_local and place.scheme not in _S3:
        yield Diagnostic(
            message=f"the path is of {place.scheme or text!r}, and only local directories and s3:// are supported",
            hint=f"write '{option_name}' = 's3://bucket/orders', or the path of a directory",
            path=option_path,
        )
    elif "@" in place.authority:
        yield Diagnostic(
            message="a path must not contain a user or a password",
            hint="write 's3.access-key-id' and 's3.secret-access-key' = '${env:NAME}'",
            path=option_path,
        )
    elif any(character in text for character in "%#?"):
        yield Diagnostic(
            message="a path with %, # or ? means another one to some who read the table",
            hint="give the table a path without them",
            path=option_path,
        )
    elif place.is_local:
        for name in (s3_option.name for s3_option in S3_OPTIONS if s3_option.name in table.options):
            yield Diagnostic(message=f"{name!r} has no effect on local files", hint="remove it", path=f"{path}.{name}")
    yield from _check_store(path, table)


def _check_store(path: str, table: Table) -> Iterator[Diagnostic]:
    endpoint = table.options.get(_ENDPOINT)
    if endpoint is not None and not _is_address(endpoint):
        yield Diagnostic(
            message=f"{_ENDPOINT!r} is {endpoint!r}, expected http:// or https:// with a host",
            hint=f"write '{_ENDPOINT}' = 'https://minio.example.com:9000'",
            path=f"{path}.{_ENDPOINT}",
        )
    region = table.options.get(_REGION)
    if region is not None and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", region):
        # The region is part of the host name.
        yield Diagnostic(
            message=f"{_REGION!r} is {region!r}, expected lower-case letters, digits and hyphens",
            hint=f"write '{_REGION}' = 'eu-central-1'",
            path=f"{path}.{_REGION}",
        )
    pair = ("s3.access-key-id", "s3.secret-access-key")
    present = [name for name in pair if name in table.options]
    if len(present) == 1:
        (lacking,) = set(pair) - set(present)
        yield Diagnostic(
            message=f"{present[0]!r} needs {lacking!r}, which the table does not have",
            hint=f"add '{lacking}' = '${{env:NAME}}'",
            path=f"{path}.{present[0]}",
        )


def _is_address(endpoint: str) -> bool:
    try:
        host = http_host(_ENDPOINT, endpoint)
    except ValueError:
        return False
    plain = not any(character in endpoint for character in "@?#$ ")
    return bool(host.usual and host.host and plain and endpoint.count("/") <= 3)
