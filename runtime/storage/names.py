"""The names of files in the folder of a partition, and what they say.

>>> parsed("12.7.manifest")
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
"""The folder of a query's pins (:mod:`hintplan.runtime.storage.pins`), beside that of its states."""

_NAME = re.compile(r"\.?(\d+)\.(\d+)\.(?:.*\.)?(\w+)")


class Name(NamedTuple):
    """A file that the run ``run`` wrote in ``batch``."""

    batch: int
    run: int
    kind: str


def parsed(name: str) -> Name | None:
    """What a file is by its name, None if it is none of ours."""
    match = _NAME.fullmatch(name)
    return None if match is None else Name(int(match[1]), int(match[2]), match[3])


def named(batch: int, run: int, kind: str, token: str = "") -> str:
    """The name of such a file; ``token`` tells segments apart."""
    return ".".join([str(batch), str(run), *([token] if token else []), kind])


def newest(names: Iterable[str], *, before: int, since: int = 0, kind: str = MANIFEST) -> str | None:
    """The manifest of the last batch ``before`` another, from ``since`` on; of a batch that ran twice, the last run's.

    A run that is followed by another may still write what it began, and its last batch is run again by the next one,
    which writes a manifest of it in any case.
    """
    found = [(name, text) for text in names if (name := parsed(text)) is not None and name.kind == kind]
    return max(((n.batch, n.run, text) for n, text in found if since <= n.batch < before), default=(0, 0, None))[2]


def batch_of(name: str) -> int | None:
    """The batch that a file of that name, or what is left of one, is of; None if it is none of ours."""
    found = parsed(name)
    return None if found is None else found.batch
