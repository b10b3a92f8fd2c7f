"""Opens, creates and checks a Delta table through delta-rs, so that the sink writes only to a table that fits.

Runs where batches are committed: on the driver. Knows no Spark.
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
from hintplan.runtime.connectors.delta.confined import refuse_files_elsewhere, refuse_outer_links
from hintplan.runtime.connectors.delta.features import refuse_to_replace, refuse_to_write
from hintplan.runtime.connectors.delta.log_files import refuse_no_files, refuse_spoilt
from hintplan.runtime.connectors.lakes.commits import Changed
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.lookup.sources.failures import redacted

_STORE = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}
_IGNORED = ("nullable", "containsNull", "valueContainsNull", "metadata")


def open_delta_table(target: LakeTarget) -> DeltaTable | None:
    """Return the newest version of the table, None if there is none; raise RunError if the sink cannot write to it."""
    target.refuse_lost_place()
    _refuse_file(target)
    refuse_outer_links(target)
    refuse_no_files(target)
    with delta_failures(target):
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


def ensure_delta_table(target: LakeTarget) -> DeltaTable:
    """Return the table, and create it first if it does not exist."""
    table = open_delta_table(target)
    if table is not None:
        return table
    with delta_failures(target):
        if target.storage.is_local:
            os.makedirs(target.storage.root, exist_ok=True)
        DeltaTable.create(
            target.storage.root, schema=target.schema, mode="ignore", partition_by=list(target.partitioned_by),
            storage_options=store_options(target), configuration=_configuration(target),
        )  # fmt: skip
    created = open_delta_table(target)
    assert created is not None
    return created


def _configuration(target: LakeTarget) -> dict[str, str | None]:
    """Return the properties with which delta-rs lists all features of a new table.

    Without them, a table with TIMESTAMP does not list NOT NULL (invariants), and Spark cannot read it.
    """
    ntz = '"timestamp_ntz"' in Schema.from_arrow(target.schema).to_json()
    return {"delta.minWriterVersion": "7"} if ntz else {}


def partitions(table: DeltaTable) -> tuple[str, ...]:
    """Return the partition columns of the table."""
    return tuple(table.metadata().partition_columns)


def is_delta_table_empty(table: DeltaTable) -> bool:
    """Return true if the table has no files."""
    return not table.file_uris()


def last_delta_batch(target: LakeTarget, table: DeltaTable, writer: str) -> int:
    """Return the last batch of ``writer`` that the table has, or -1 if it has none."""
    with delta_failures(target):
        batch = table.transaction_version(writer)
    return -1 if batch is None else int(batch)


def restored_to(target: LakeTarget, table: DeltaTable, version: int) -> int | None:
    """Return the older version to which the table was restored after ``version``; None if it was not restored."""
    with delta_failures(target):
        newer = table.history(table.version() - version) if table.version() > version else []
    for commit in newer:
        if commit.get("operation") == "RESTORE" and commit.get("version", 0) > version:
            back = str(commit.get("operationParameters", {}).get("version"))
            if back.isdecimal() and int(back) < version:
                return int(back)
    return None


def forgets(table: DeltaTable) -> bool:
    """Return true if the table forgets after a while which writer wrote which batch."""
    return "delta.setTransactionRetentionDuration" in table.metadata().configuration


@contextmanager
def delta_failures(target: LakeTarget) -> Iterator[None]:
    """Raise errors of delta-rs as :class:`Changed` or as RunError, without values from the environment."""
    try:
        yield
    except CommitFailedError as error:
        raise Changed(_message(error, target)) from None
    except (DeltaError, OSError, ValueError) as error:
        raise _failed(error, target) from None
    except Exception as error:
        if type(error) is not Exception:  # delta-rs raises errors of its engine as plain Exception
            raise
        raise _failed(error, target) from None


def _failed(error: Exception, target: LakeTarget) -> RunError:
    return RunError(f"table {target.name}, {target.storage.root}: {_message(error, target)}", path=target.path)


def _message(error: Exception, target: LakeTarget) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return redacted(" ".join(plain.split()), target.options)


def store_options(target: LakeTarget) -> dict[str, str] | None:
    """Return the storage options with which delta-rs reaches the table, or None if it is local."""
    if target.storage.is_local:
        return None
    settings = target.storage.resolved()
    options = {theirs: settings[ours] for ours, theirs in _STORE.items() if ours in settings}
    return {**options, **({"AWS_ALLOW_HTTP": "true"} if settings.get("s3.endpoint", "").startswith("http:") else {})}


def _refuse_file(target: LakeTarget) -> None:
    if target.storage.is_local and os.path.exists(target.storage.root) and not os.path.isdir(target.storage.root):
        raise _no_table(target, "is a file")


def _refuse_other_files(target: LakeTarget) -> None:
    root = target.storage.root
    if target.storage.is_local and os.path.isdir(root) and os.listdir(root):
        raise _no_table(target, "has files, but no log of a Delta table")


def _no_table(target: LakeTarget, why: str) -> RunError:
    return RunError(
        f"{target.storage.root} {why}",
        hint="give the table a directory of its own",
        path=f"{target.path}.options.table-path",
    )


def _check(target: LakeTarget, table: DeltaTable) -> None:
    """Raise RunError if the sink cannot write to the table."""
    fields = {field.name: json.loads(field.to_json()) for field in table.schema().fields}
    metadata = table.metadata()
    refuse_to_write(target, table, fields)
    if target.primary_key:
        refuse_to_replace(target, table)
        refuse_files_elsewhere(target, table)
    check_delta_columns(target, fields)
    for name, field in fields.items():
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


def check_delta_columns(target: LakeTarget, there: Mapping[str, Any]) -> None:
    """Raise RunError unless the table has the declared columns with their types."""
    wanted = {field.name: json.loads(field.to_json()) for field in Schema.from_arrow(target.schema).fields}
    types = {column.name: column.type for column in target.columns}
    for name, field in wanted.items():
        if name not in there:
            raise RunError(
                f"the Delta table {target.storage.root} has no column {name!r}",
                hint="add it there, or remove it from CREATE TABLE",
                path=target.path,
            )
        if _plain(there[name]["type"]) != _plain(field["type"]):
            raise RunError(
                f"column {name!r} is {types[name]} here, but {json.dumps(there[name]['type'])} in the Delta table "
                f"{target.storage.root}",
                hint="declare it as the table has it, or name another table",
                path=target.path,
            )


def _plain(kind: object) -> Any:
    """Return a type without its nullability and metadata."""
    if isinstance(kind, dict):
        return {name: _plain(value) for name, value in kind.items() if name not in _IGNORED}
    return [_plain(item) for item in kind] if isinstance(kind, list) else kind
