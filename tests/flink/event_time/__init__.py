"""Programs that go by event time or processing time, for which Flink's output is recorded in event_time.json.

Data only: record_event_time.py reads it in Flink's environment, and our tests read it. A file has the programs of a
subject.
"""

from __future__ import annotations

from .changes import CHANGES
from .group_windows import GROUP_WINDOWS
from .interval_joins import INTERVAL_JOINS
from .nexmark import NEXMARK
from .over import OVER
from .patterns import PATTERNS
from .processing_time import PROCESSING_TIME
from .rows_of_keys import ROWS_OF_KEYS
from .sessions import SESSIONS
from .settings import SETTINGS
from .steps import timeline
from .tables import Program
from .temporal_joins import TEMPORAL_JOINS
from .watermarks import WATERMARKS
from .window_joins import WINDOW_JOINS
from .window_rows import WINDOW_ROWS
from .windows import WINDOWS
from .zones import ZONES

__all__ = ["PROGRAMS", "Program", "timeline"]

PROGRAMS: dict[str, Program] = (
    WINDOWS
    | SESSIONS
    | ZONES
    | CHANGES
    | SETTINGS
    | PROCESSING_TIME
    | WINDOW_ROWS
    | WINDOW_JOINS
    | GROUP_WINDOWS
    | INTERVAL_JOINS
    | TEMPORAL_JOINS
    | OVER
    | ROWS_OF_KEYS
    | WATERMARKS
    | NEXMARK
    | PATTERNS
)
"""In the order of event_time.json."""
