"""The blackhole connector: a sink that drops its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hintplan.plans.connectors.connector import TASKS_WRITE, Writable


class Blackhole(Writable):
    """A sink that discards its rows."""

    name = "blackhole"
    description = "A sink that discards its rows."
    drops_rows = True
    times = "always"
    idle: ClassVar[Mapping[str, str]] = {"sink.parallelism": TASKS_WRITE}


BLACKHOLE = Blackhole()
