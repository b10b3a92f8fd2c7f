"""The start and the end of a scan of topics: modes, timestamps, and offsets of partitions.

>>> partition_offsets("partition:0,offset:42;partition:1,offset:300")
{0: 42, 1: 300}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hintplan.plans.connectors.options import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

MODE = "scan.startup.mode"
BOUNDED = "scan.bounded.mode"
_TIMESTAMP = "timestamp-millis"
_OFFSETS = "specific-offsets"
_OF_MODE = {"timestamp": _TIMESTAMP, "specific-offsets": _OFFSETS}
_PARTITION = re.compile(r"partition:([0-9]{1,9}),offset:([0-9]{1,18})")

BOUNDED_OPTIONS = (
    option(
        BOUNDED,
        "choice",
        choices=("unbounded", "latest-offset", "timestamp", "specific-offsets"),
        default="unbounded",
        description="The position at which a batch job stops.",
    ),
    option(
        f"scan.bounded.{_OFFSETS}", description="The first offset not read of each partition, for specific-offsets."
    ),
    option(f"scan.bounded.{_TIMESTAMP}", "int", maximum=2**53, description="The first moment not read, for timestamp."),
)

STARTUP_OPTIONS = (
    option(
        MODE,
        "choice",
        choices=("earliest-offset", "latest-offset", "timestamp", "specific-offsets"),
        description="The start position of a source with a new checkpoint; required for a source.",
    ),
    option(f"scan.startup.{_OFFSETS}", description="The offsets of partitions, for specific-offsets."),
    option(f"scan.startup.{_TIMESTAMP}", "int", maximum=2**53, description="Milliseconds since 1970, for timestamp."),
)


def partition_offsets(text: str) -> dict[int, int]:
    """Return the offsets by number of partition. Raise ValueError if the text has another form."""
    offsets: dict[int, int] = {}
    for part in filter(None, text.strip().split(";")):
        match = _PARTITION.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is not of the form partition:0,offset:42")
        if int(match[1]) in offsets:
            raise ValueError(f"partition {match[1]} is there twice")
        offsets[int(match[1])] = int(match[2])
    if not offsets:
        raise ValueError("there is no partition")
    return offsets


def is_bounded_topic(table: Table) -> bool:
    """Return True if a scan of the table ends."""
    return table.options.get(BOUNDED, "unbounded").lower() != "unbounded"


def check_start(path: str, table: Table) -> Iterator[Diagnostic]:
    """Require the startup mode in a table that is a source."""
    if MODE not in table.options:
        yield Diagnostic(
            message=f"there is no start position: {MODE!r} is not set, and the offsets of consumer groups, with "
            f"which Flink starts in this case, are not used",
            hint=f"set '{MODE}' = 'earliest-offset', or to 'latest-offset', 'timestamp' or 'specific-offsets'",
            path=f"{path}.{MODE}",
        )


def check_startup(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of the options for the start and the end of a scan."""
    for mode in (MODE, BOUNDED):
        chosen = table.options.get(mode, "").lower()
        start = mode.removesuffix("mode")
        for name, detail in _OF_MODE.items():
            key = start + detail
            if chosen == name and key not in table.options:
                message = f"{mode!r} is {name!r}, which needs {key!r}"
                yield Diagnostic(message=message, hint=f"add '{key}' = '...'", path=f"{path}.{mode}")
            if chosen != name and key in table.options:
                message, hint = f"{key!r} belongs to {mode!r} = {name!r}", f"remove it, or write '{mode}' = '{name}'"
                yield Diagnostic(message=message, hint=hint, path=f"{path}.{key}")
        key = start + _OFFSETS
        if key in table.options:
            try:
                partition_offsets(table.options[key])
            except ValueError as error:
                hint = f"write '{key}' = 'partition:0,offset:42;partition:1,offset:300'"
                yield Diagnostic(message=f"{key!r}: {error}", hint=hint, path=f"{path}.{key}")
            if ";" in table.options.get("topic", ""):
                message = f"{key!r} has offsets of one topic, and the table has several"
                yield Diagnostic(message=message, hint="name one topic", path=f"{path}.{key}")
            elif "topic-pattern" in table.options:
                message = f"{key!r} has offsets of one topic, and the table has a pattern"
                yield Diagnostic(message=message, hint="write 'topic' instead of 'topic-pattern'", path=f"{path}.{key}")
