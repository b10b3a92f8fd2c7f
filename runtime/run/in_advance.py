"""Checks, before Spark starts, that the checkpoint is one and can be written, and that local sources exist.

Spark would report the same errors half a minute later. Paths on other file systems are left to Spark, and so are all
paths if Spark's default file system is not on this machine.
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
from hintplan.runtime.secrets import resolve

_DEFAULT_SYSTEM = "spark.hadoop.fs.defaultFS"
_OTHERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT")
"""Environment variables that point to a Hadoop configuration, or that show that spark-submit started this process."""


def refuse_in_advance(plan: Plan, checkpoint: str | None, conf: Mapping[str, str]) -> None:
    """Raise RunError if a Spark of this machine with ``conf`` could not read a source or write ``checkpoint``."""
    _refuse_missing_variables(plan, conf)
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


def _refuse_missing_variables(plan: Plan, conf: Mapping[str, str]) -> None:
    """Raise RunError with all variables that ``plan`` refers to and that are not set, if workers run here, too."""
    from hintplan.runtime.spark.packages import spark_defaults  # it loads PySpark

    if not {**spark_defaults(), **conf}.get("spark.master", "local").startswith("local"):
        return
    resolve("\n".join(value for table in plan.tables.values() for value in table.options.values()))


def _is_of_this_machine(conf: Mapping[str, str]) -> bool:
    """Return whether a Spark with ``conf`` resolves paths without a scheme on this machine.

    Only the configuration that is visible to this process is checked.
    """
    from hintplan.runtime.spark.packages import conf_folder, spark_defaults  # it loads PySpark

    if any(os.environ.get(name) for name in _OTHERS) or os.path.exists(f"{conf_folder()}/core-site.xml"):
        return False
    system = {**spark_defaults(), **conf}.get(_DEFAULT_SYSTEM, "file:")
    return system.startswith("file:")


def _sources(plan: Plan) -> Iterator[tuple[str, FilePlace]]:
    """Yield the local paths that scans read, with the names of their tables."""
    for _, name in tables_used(plan.operators, "reads"):
        for place in places(plan.tables[name]):
            if isinstance(place, FilePlace) and place.option == "path" and place.is_local and "%" not in place.path:
                yield name, place


def _refuse_unwritable(directory: str) -> None:
    """Raise RunError if ``directory`` is not writable, or cannot be created in its nearest existing ancestor."""
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
