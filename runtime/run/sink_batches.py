"""Which batches a sink has had, so that none is taken for one that another checkpoint wrote.

Spark's file sink, and a jdbc sink without a key, skip a batch whose number they have had: it is one that runs again.
That is so only of the checkpoint that wrote them. A new checkpoint, or an older copy of one, begins with numbers that
the sink has had, and the rows of its batches would be lost. Knows what a sink has had by its table, and starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from plans.analysis.streaming_queries import Query
from plans.checkpoint.record import CheckpointRecord
from plans.compare.carryover import QueryRecord
from plans.connectors.table import SQLITE_URL
from plans.declarations.tables import Table
from plans.errors import RunError
from plans.model.plan import Plan
from runtime.build.sub_plans import sinks
from runtime.checkpoint.files import CheckpointFiles
from runtime.checkpoint.parts import last_batches
from runtime.connectors.sqlite import last_appended

__all__ = ["refuse_other_batches"]

FilesAt = Callable[[str], CheckpointFiles]
"""Lists what is below a directory."""


def refuse_other_batches(
    plan: Plan,
    queries: Sequence[Query],
    checkpoint: CheckpointFiles,
    recorded: CheckpointRecord | None,
    files_at: FilesAt,
) -> None:
    """RunError if a sink has had batches that ``checkpoint``, which ``recorded`` is of, has not begun."""
    before = {query.id: query for query in recorded.queries} if recorded is not None else {}
    places: dict[str, str] = {}
    tables = {sink.id: sink.table for sink in sinks(plan)}
    for query in queries:
        began, ended = last_batches(checkpoint, query.id)
        for name in query.sinks:
            table_name = tables[name]
            table = plan.tables[table_name]
            if table.options["connector"] == "filesystem":
                other = places.setdefault(table.options["path"].rstrip("/"), name)
                if other != name:
                    raise RunError(
                        f"{other} and {name} would write files to the same directory, {table.options['path']!r}: of "
                        "two batches with the same number one would be taken for written, and its rows lost",
                        hint="give them a directory each, or write both with one INSERT of a UNION ALL",
                        path=f"tables.{table_name}.options.path",
                    )
            try:
                had = _had(table, query, name, checkpoint, files_at)
            except RunError as error:
                (found,) = error.diagnostics
                where = f"tables.{table_name}"
                raise RunError(f"table {table_name}: {found.message}", hint=found.hint, path=where) from error
            ours = had == began and _is_written_to(before.get(query.id), table)
            if had <= ended or ours:
                continue
            where = table.options["path" if "path" in table.options else "table-name"]
            reached = f"ends with batch {began}" if began >= 0 else "has none yet"
            raise RunError(
                f"table {table_name}: a streaming job has written batches up to {had} to {where!r}, and this "
                f"checkpoint {reached}: batches with these numbers would be taken for written, and their rows lost",
                hint="go on with the checkpoint that wrote there, or give the table another place; to write all "
                "anew, remove first what is there",
                path=f"tables.{table_name}",
            )


def _is_written_to(before: QueryRecord | None, table: Table) -> bool:
    """Whether the query has written to the table's place, so that its last batch may be there without its commit."""
    if table.options["connector"] != "filesystem":
        return True
    return before is not None and before.files == table.options["path"].rstrip("/")


def _had(table: Table, query: Query, sink: str, checkpoint: CheckpointFiles, files_at: FilesAt) -> int:
    """The last batch that a sink has had, -1 if it does not count them or has had none."""
    if table.options["connector"] == "filesystem":
        log = files_at(f"{table.options['path'].rstrip('/')}/_spark_metadata")
        numbers = (name.removesuffix(".compact") for name in log.sizes)
        return max((int(number) for number in numbers if number.isdecimal()), default=-1)
    if table.options["connector"] == "jdbc" and not table.primary_key:
        found = checkpoint.read([f"{query.id}/metadata"]).get(f"{query.id}/metadata")
        if found is None:
            return -1
        part = f"/{sink}" if query.is_shared else ""
        path = table.options["url"].removeprefix(SQLITE_URL)
        return last_appended(path, table.options["table-name"], json.loads(found)["id"] + part)
    return -1
