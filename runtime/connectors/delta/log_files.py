"""Checks of the log files of a local Delta table, for the errors that delta-rs does not report.

    _delta_log/00000000000000000007.json     lines of JSON: the actions of version 7

delta-rs ignores a directory or a dangling link in place of a log file, and so reads an older version. Its errors do not
name the file that it cannot parse.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.lakes.target import LakeTarget

_LOG = "_delta_log"
_ENTRY = re.compile(r"[0-9]{20}\.json")
_HINT = "restore the file from a backup or another copy of the table"


def refuse_no_files(target: LakeTarget) -> None:
    """Raise RunError if the log is not a directory, or a log file is not a file."""
    log = os.path.join(target.storage.root, _LOG)
    if not target.storage.is_local or not os.path.lexists(log):
        return
    if not os.path.isdir(log):
        raise RunError(link_to_nowhere(log) or f"{log} is a file, where a directory must be", hint=_HINT)
    for entry in os.scandir(log):
        if _ENTRY.fullmatch(entry.name) and not entry.is_file():
            raise RunError(
                link_to_nowhere(entry.path) or f"{entry.path} is a directory, where a file must be", hint=_HINT
            )


def refuse_spoilt(target: LakeTarget, error: Exception) -> None:
    """Raise RunError, from the ``error`` of delta-rs, with the name of a log file that is missing or not JSON."""
    if target.storage.is_local:
        for problem in _spoilt(os.path.join(target.storage.root, _LOG)):
            raise RunError(problem, hint=_HINT) from error


def _spoilt(log: str) -> Iterator[str]:
    entry_names = sorted(name for name in os.listdir(log) if _ENTRY.fullmatch(name))
    for name in reversed(entry_names):
        path = os.path.join(log, name)
        try:
            with open(path, encoding="utf-8") as entry:
                for line in entry:
                    json.loads(line)
        except ValueError:
            yield f"{path} is not a log file of a Delta table: a line is not JSON"
    numbers = [int(name.partition(".")[0]) for name in entry_names]
    has_checkpoint = any(".checkpoint." in name for name in os.listdir(log))
    first = numbers[0] if has_checkpoint and numbers else 0
    for number in range(first, numbers[-1] if numbers else 0):
        if number not in numbers:
            yield f"{os.path.join(log, f'{number:020}.json')} is missing"
