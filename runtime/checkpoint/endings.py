"""Finds the batch that ends event time in a query, in the logs that Spark has written.

    <checkpoint>/<query>/sources/<s>/0    the only entry of the source that ends event time, with its file

Spark writes this entry before the offsets of the batch. So the batch may have begun without offsets.
"""

from __future__ import annotations

import re

from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.compare.sources import ENDING
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.spark.ending import ending_batch

_LARGEST = 1 << 14
"""The maximum size in bytes of an entry with one file. Larger entries belong to tables."""


def last_of_event_time(files: CheckpointFiles, query: QueryRecord) -> int | None:
    """Return the batch that ends event time in ``query``, or None if no such batch has begun."""
    operators = {source.operator for source in query.sources if source.table == ENDING}
    if not operators:
        return None
    # The order of the sources is unknown on Spark Connect. Then the entries of all sources are read.
    numbers = {str(number) for operator, number in query.order if operator in operators} if query.order else {r"\d+"}
    entry = re.compile(rf"{re.escape(query.logs)}/sources/(?:{'|'.join(sorted(numbers))})/0")
    paths = [path for path, size in files.sizes.items() if size <= _LARGEST and entry.fullmatch(path)]
    batches = [ending_batch(log, query.id) for log in files.read(paths).values()] if paths else []
    return max((batch for batch in batches if batch is not None), default=None)
