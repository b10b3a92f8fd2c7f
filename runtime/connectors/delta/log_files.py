"""The entries of the log of a Delta table on this machine: which is none, where delta-rs does not say it.

    _delta_log/00000000000000000007.json     lines of JSON: what version 7 has done

delta-rs passes over a directory and a link to nowhere, and so reads an older version, and does not name what it cannot
parse.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.lakes.target import Target

_LOG = "_delta_log"
_ENTRY = re.compile(r"[0-9]{20}\.json")
_HINT = "put back what was there, from a backup or another copy of the table"


def refuse_no_files(target: Target) -> None:
    """RunError if the log is no directory, or what must be an entry of it is no file."""
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


def refuse_spoilt(target: Target, error: Exception) -> None:
    """RunError, instead of ``error`` of delta-rs, that names an entry which is gone, or has what is not JSON."""
    if target.storage.is_local:
        for what in _spoilt(os.path.join(target.storage.root, _LOG)):
            raise RunError(what, hint=_HINT) from error


def _spoilt(log: str) -> Iterator[str]:
    names = sorted(name for name in os.listdir(log) if _ENTRY.fullmatch(name))
    for name in reversed(names):
        path = os.path.join(log, name)
        try:
            with open(path, encoding="utf-8") as entry:
                for line in entry:
                    json.loads(line)
        except ValueError:
            yield f"{path} is not what a Delta table has there: a line is not JSON"
    numbers = [int(name.partition(".")[0]) for name in names]
    has_checkpoint = any(".checkpoint." in name for name in os.listdir(log))
    first = numbers[0] if has_checkpoint and numbers else 0
    for number in range(first, numbers[-1] if numbers else 0):
        if number not in numbers:
            yield f"{os.path.join(log, f'{number:020}.json')} is missing"
