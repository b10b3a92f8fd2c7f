"""SQL programs for which Flink's results are recorded, and the rows that their tables hold.

Data only: it is read both by record_programs.py, in Flink's environment, and by our tests. A table is its columns and
its rows, each with its kind first; tables whose rows are not all ``+I`` are changelogs. A program is the columns of its
result and its query. A file has the programs of a subject; the tables have NULLs, duplicates, keys without a partner and
keys that change.
"""

from __future__ import annotations

from .aggregates import AGGREGATES, NULL_FOR_MINUS_ONE
from .conditions import CONDITIONS, MEMBERSHIP
from .documents import DOCUMENTS
from .first_rows import FIRST_ROWS
from .hinted import CONFIGURED_TTL, HINTED
from .joins import JOINS
from .laterals import LATERALS, WITHOUT_ROW_OF_NONE
from .sets import SETS
from .shop import SHOP
from .sources import SOURCES
from .subqueries import NULL_FOR_ZERO, SUBQUERIES
from .tables import TABLES, UPSERTED, WATERMARKED, Program
from .whole_groups import WHOLE_GROUPS

__all__ = [
    "CONFIGURED_TTL",
    "DOCUMENTS",
    "HINTED",
    "NULL_FOR_MINUS_ONE",
    "NULL_FOR_ZERO",
    "PROGRAMS",
    "TABLES",
    "UPSERTED",
    "WATERMARKED",
    "WITHOUT_ROW_OF_NONE",
]

PROGRAMS: dict[str, Program] = (
    JOINS
    | AGGREGATES
    | SETS
    | LATERALS
    | WHOLE_GROUPS
    | SUBQUERIES
    | SHOP
    | MEMBERSHIP
    | FIRST_ROWS
    | SOURCES
    | CONDITIONS
)
"""In the order of programs.json."""
