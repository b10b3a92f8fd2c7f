"""The print connector: a sink that prints its rows in Flink's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hintplan.plans.connectors.connector import TASKS_WRITE, Writable
from hintplan.plans.connectors.options import option


class Print(Writable):
    """A sink that prints its rows."""

    name = "print"
    description = "A sink that prints its rows as Flink does."
    options = (option("print-identifier", description="The prefix of each line."),)
    suggested_as_sink = True
    updates_condition = ""
    times = "always"
    idle: ClassVar[Mapping[str, str]] = {"sink.parallelism": TASKS_WRITE}


PRINT = Print()
