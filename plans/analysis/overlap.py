"""Batch plans that read what they write: what such a job reads depends on how far its writing has come.

Places are compared as they are written, without asking any file system: files by their path, a directory contains all
paths below it; tables of a database by its address and their name.

>>> _covers("/data", "file:///data/out/"), _covers("/data/out", "/data")
(True, False)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from plans.declarations.tables import Table
from plans.errors import Diagnostic
from plans.model.plan import Plan
from plans.operators import LookupJoin, Scan, Sink

__all__ = ["check_overlap"]


def check_overlap(plan: Plan) -> Iterator[Diagnostic]:
    """A problem for each sink of a batch ``plan`` that writes where the plan reads."""
    if plan.mode != "batch":
        return
    read = {o.table: o.id for o in reversed(plan.operators) if isinstance(o, Scan | LookupJoin)}
    for sink in plan.operators:
        if not isinstance(sink, Sink) or sink.table not in plan.tables:
            continue
        for table, operator in read.items():
            if table in plan.tables and _reads(plan.tables[table], plan.tables[sink.table]):
                what = f"table '{table}'" if table == sink.table else f"table '{table}', which is at the same place,"
                yield Diagnostic(
                    message=f"table '{sink.table}' is written while {what} is read by '{operator}': what a batch job "
                    "reads must not change under it",
                    path=f"operators.{sink.id}.table",
                    hint="write to another place, and move it when the job has ended",
                )
                break


def _reads(source: Table, sink: Table) -> bool:
    """Whether what is written to ``sink`` could be read from ``source``."""
    connector = source.options.get("connector")
    if connector != sink.options.get("connector"):
        return False
    if connector == "filesystem":
        return _covers(source.options.get("path", ""), sink.options.get("path", ""))
    names = ("url", "table-name")
    return connector == "jdbc" and all(source.options.get(n) == sink.options.get(n) for n in names)


def _covers(directory: str, path: str) -> bool:
    """Whether ``path`` is ``directory`` or below it."""
    above, below = _plain(directory), _plain(path)
    return below == above or below.startswith(above.rstrip("/") + "/") or above == "."


def _plain(path: str) -> str:
    """``path`` without the scheme of local files, dots and doubled slashes."""
    return posixpath.normpath(re.sub(r"/+", "/", re.sub(r"^file:(?://)?(?=/)", "", path)))
