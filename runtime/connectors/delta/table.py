"""A Delta table through delta-rs: opened and created, and looked at, so that only what fits is written to.

Only where batches are committed: on the driver. Knows no Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.confined import refuse_files_elsewhere, refuse_links
from hintplan.runtime.connectors.delta.features import refuse_to_replace, refuse_to_write
from hintplan.runtime.connectors.delta.log_files import refuse_no_files, refuse_spoilt
from hintplan.runtime.connectors.lakes.commits import Changed
from hintplan.runtime.connectors.lakes.target import Target
from hintplan.runtime.lookup.sources.failures import redacted

_STORE = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}
_IGNORED = ("nullable", "containsNull", "valueContainsNull", "metadata")


def opened(target: Target) -> DeltaTable | None:
    """The table as it is now, None if it is not there; RunError if the sink cannot write to it."""
    target.refuse_lost_place()
    _refuse_file(target)
    refuse_links(target)
    refuse_no_files(target)
    with failures(target):
        try:
            table = DeltaTable(target.storage.root, storage_options=store_options(target))
        except TableNotFoundError:
            _refuse_other_files(target)
            return None
        except DeltaError as error:
            refuse_spoilt(target, error)
            raise
        _check(target, table)
        return table


def prepared(target: Target) -> DeltaTable:
    """The table, which is created if it is not there."""
    found = opened(target)
    if found is not None:
        return found
    with failures(target):
        if target.storage.is_local:
            os.makedirs(target.storage.root, exist_ok=True)
        DeltaTable.create(
            target.storage.root, schema=target.schema, mode="ignore", partition_by=list(target.partitioned_by),
            storage_options=store_options(target), configuration=_configuration(target),
        )  # fmt: skip
    made = opened(target)
    assert made is not None
    return made


def _configuration(target: Target) -> dict[str, str | None]:
    """What makes delta-rs list all features of the table: with TIMESTAMP it forgets NOT NULL, and Spark reads none."""
    ntz = '"timestamp_ntz"' in Schema.from_arrow(target.schema).to_json()
    return {"delta.minWriterVersion": "7"} if ntz else {}


def partitions(table: DeltaTable) -> tuple[str, ...]:
    """The columns by which the table is divided."""
    return tuple(table.metadata().partition_columns)


def is_empty(table: DeltaTable) -> bool:
    """Whether the table has no files."""
    return not table.file_uris()


def last_batch(target: Target, table: DeltaTable, writer: str) -> int:
    """The last batch of ``writer`` that the table has, -1 if it has none."""
    with failures(target):
        found = table.transaction_version(writer)
    return -1 if found is None else int(found)


def restored_to(target: Target, table: DeltaTable, version: int) -> int | None:
    """Return the version that the table was restored to after it had a later one, ``version``; None if it was not."""
    with failures(target):
        newer = table.history(table.version() - version) if table.version() > version else []
    for commit in newer:
        if commit.get("operation") == "RESTORE" and commit.get("version", 0) > version:
            back = str(commit.get("operationParameters", {}).get("version"))
            if back.isdecimal() and int(back) < version:
                return int(back)
    return None


def forgets(table: DeltaTable) -> bool:
    """Return true if the table forgets after a while who has written which batch."""
    return "delta.setTransactionRetentionDuration" in table.metadata().configuration


@contextmanager
def failures(target: Target) -> Iterator[None]:
    """Raises what delta-rs says as :class:`Changed` or as a RunError, without what came out of the environment."""
    try:
        yield
    except CommitFailedError as error:
        raise Changed(_told(error, target)) from None
    except (DeltaError, OSError, ValueError) as error:
        raise _failed(error, target) from None
    except Exception as error:
        if type(error) is not Exception:  # as which delta-rs raises what its engine says
            raise
        raise _failed(error, target) from None


def _failed(error: Exception, target: Target) -> RunError:
    return RunError(f"table {target.name}, {target.storage.root}: {_told(error, target)}", path=target.path)


def _told(error: Exception, target: Target) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return redacted(" ".join(plain.split()), target.options)


def store_options(target: Target) -> dict[str, str] | None:
    """What delta-rs has to know to reach the table; None if it is on this machine."""
    if target.storage.is_local:
        return None
    given = target.storage.resolved()
    options = {theirs: given[ours] for ours, theirs in _STORE.items() if ours in given}
    return {**options, **({"AWS_ALLOW_HTTP": "true"} if given.get("s3.endpoint", "").startswith("http:") else {})}


def _refuse_file(target: Target) -> None:
    if target.storage.is_local and os.path.exists(target.storage.root) and not os.path.isdir(target.storage.root):
        raise _no_table(target, "is a file")


def _refuse_other_files(target: Target) -> None:
    root = target.storage.root
    if target.storage.is_local and os.path.isdir(root) and os.listdir(root):
        raise _no_table(target, "has files, but no log of a Delta table")


def _no_table(target: Target, why: str) -> RunError:
    return RunError(
        f"{target.storage.root} {why}",
        hint="give the table a directory of its own",
        path=f"{target.path}.options.table-path",
    )


def _check(target: Target, table: DeltaTable) -> None:
    """RunError if the sink cannot write to the table."""
    there = {field.name: json.loads(field.to_json()) for field in table.schema().fields}
    metadata = table.metadata()
    refuse_to_write(target, table, there)
    if target.primary_key:
        refuse_to_replace(target, table)
        refuse_files_elsewhere(target, table)
    check_columns(target, there)
    for name, field in there.items():
        if name not in target.schema.names and not field["nullable"]:
            raise RunError(
                f"column {name!r} of the Delta table {target.storage.root} must have a value, and is not declared",
                hint="declare it in CREATE TABLE",
                path=target.path,
            )
    if target.partitioned_by and list(target.partitioned_by) != metadata.partition_columns:
        raise RunError(
            f"the Delta table {target.storage.root} is partitioned by "
            f"{', '.join(metadata.partition_columns) or 'nothing'}",
            hint="leave PARTITIONED BY out, or write to another table",
            path=f"{target.path}.partitioned-by",
        )


def check_columns(target: Target, there: Mapping[str, Any]) -> None:
    """RunError unless the declared columns are there, with their types."""
    wanted = {field.name: json.loads(field.to_json()) for field in Schema.from_arrow(target.schema).fields}
    types = {column.name: column.type for column in target.columns}
    for name, field in wanted.items():
        if name not in there:
            raise RunError(
                f"the Delta table {target.storage.root} has no column {name!r}",
                hint="add it there, or leave it out of CREATE TABLE",
                path=target.path,
            )
        if _plain(there[name]["type"]) != _plain(field["type"]):
            raise RunError(
                f"column {name!r} is {types[name]} here, but {json.dumps(there[name]['type'])} in the Delta table "
                f"{target.storage.root}",
                hint="declare it as the table has it, or name another table",
                path=target.path,
            )


def _plain(kind: Any) -> Any:
    """A type without what is said of NULLs."""
    if isinstance(kind, dict):
        return {name: _plain(value) for name, value in kind.items() if name not in _IGNORED}
    return [_plain(each) for each in kind] if isinstance(kind, list) else kind
