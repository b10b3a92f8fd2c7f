"""Refuses before Spark starts: a checkpoint that is none or read-only, and a source that is not there.

A run would be refused for it all the same, half a minute later. What only Spark can tell is left to it: places on other
file systems, and those of a Spark whose file system is not this machine's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.connectors.reach import FilePlace
from hintplan.plans.connectors.table import places
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import tables_used
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.checkpoint.foreign import refuse_foreign, upper_paths

_DEFAULT_SYSTEM = "spark.hadoop.fs.defaultFS"
_OTHERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT")
"""Variables that say where Hadoop is configured, or that spark-submit has started this process."""


def refuse_in_advance(plan: Plan, checkpoint: str | None, conf: Mapping[str, str]) -> None:
    """RunError if a Spark of this machine, configured by ``conf``, could not read a source or write ``checkpoint``."""
    if not _is_of_this_machine(conf):
        return
    if checkpoint is not None and is_local_path(checkpoint):
        directory = absolute(checkpoint).removeprefix("file://")
        _refuse_unwritable(directory)
        refuse_foreign(checkpoint, upper_paths(directory))
    for name, place in _sources(plan):
        path = place.path
        if not os.path.lexists(path) or link_to_nowhere(path):
            raise RunError(
                f"table {name} cannot be read: {link_to_nowhere(path) or f'there is nothing at {path!r}'}",
                hint="create the directory, or correct the path; a relative path starts where the run starts",
                path=f"tables.{name}.options.{place.option}",
            )


def _is_of_this_machine(conf: Mapping[str, str]) -> bool:
    """Whether a plain path is one of this machine to a Spark that starts here with ``conf``, as far as can be seen."""
    from hintplan.runtime.spark.packages import conf_folder, spark_defaults  # which loads PySpark

    if any(os.environ.get(name) for name in _OTHERS) or os.path.exists(f"{conf_folder()}/core-site.xml"):
        return False
    system = {**spark_defaults(), **conf}.get(_DEFAULT_SYSTEM, "file:")
    return system.startswith("file:")


def _sources(plan: Plan) -> Iterator[tuple[str, FilePlace]]:
    """The local places that scans read, with their tables."""
    for _, name in tables_used(plan.operators, "reads"):
        for place in places(plan.tables[name]):
            if isinstance(place, FilePlace) and place.option == "path" and place.is_local and "%" not in place.path:
                yield name, place


def _refuse_unwritable(directory: str) -> None:
    """RunError if neither ``directory`` nor, if it is not there yet, the one it would be made in can be written to."""
    above = directory
    while not os.path.lexists(above) and os.path.dirname(above) != above:
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        reason = link_to_nowhere(above) or os.strerror(errno.ENOTDIR)
    elif not os.access(above, os.W_OK | os.X_OK):
        reason = os.strerror(errno.EROFS if os.statvfs(above).f_flag & os.ST_RDONLY else errno.EACCES)
    else:
        return
    raise RunError(
        f"the checkpoint {directory} cannot be written: {reason} ({above})",
        hint="the user of the run needs the right to write there, and the disk must have room",
    )
