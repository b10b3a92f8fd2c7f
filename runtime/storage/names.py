"""The names of files in the folder of a partition, and the information in them.

>>> parse_name("12.7.manifest")
Name(batch=12, run=7, kind='manifest')
>>> newest(["12.7.manifest", "12.9.manifest", "13.9.manifest"], before=13)
'12.9.manifest'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MANIFEST, SEGMENT, WRITTEN, DRAFT, PIN = "manifest", "arrow", "written", "tmp", "pin"
PINS = "pins"
"""The folder of a query's pins (:mod:`hintplan.runtime.storage.pins`), next to the folder of its states."""

_NAME = re.compile(r"\.?(\d+)\.(\d+)\.(?:.*\.)?(\w+)")


class Name(NamedTuple):
    """A file that ``run`` has written in ``batch``."""

    batch: int
    run: int
    kind: str


def parse_name(name: str) -> Name | None:
    """Parse the name of a file; None if it is not a file of hintplan."""
    match = _NAME.fullmatch(name)
    return None if match is None else Name(int(match[1]), int(match[2]), match[3])


def file_name(batch: int, run: int, kind: str, token: str = "") -> str:
    """Return the name of a file; ``token`` distinguishes segments."""
    return ".".join([str(batch), str(run), *([token] if token else []), kind])


def newest(names: Iterable[str], *, before: int, since: int = 0, kind: str = MANIFEST) -> str | None:
    """Return the manifest of the last batch from ``since`` to before ``before``; for a repeated batch, of the last run.

    A run that was replaced by another may still be writing its last batch. The new run repeats that batch and always
    writes a manifest of it.
    """
    candidates = [(name, text) for text in names if (name := parse_name(text)) is not None and name.kind == kind]
    return max(((n.batch, n.run, text) for n, text in candidates if since <= n.batch < before), default=(0, 0, None))[2]


def batch_of(name: str) -> int | None:
    """Return the batch of a file, or of an incomplete one, from its name; None if it is not a file of hintplan."""
    file_name = parse_name(name)
    return None if file_name is None else file_name.batch
