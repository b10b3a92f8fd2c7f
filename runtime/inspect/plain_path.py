"""A path to a checkpoint that Spark's reader of state can take.

Spark encodes the path that it is given, ``[`` as ``%5B``, and then looks for a directory of that name. Where Spark runs
on this machine, it is led there by a link with a plain name; elsewhere nobody can make one for it.

    with plain_path(spark, "/data/run [1]") as path:
        spark.read.format("statestore").load(f"{path}/sink_r")
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from plans.errors import RunError
from runtime.spark.session import shares_machine

_ENCODED = re.compile(r"[^\w!.~'()*,;:$&+=/@-]")
"""What Java does not leave alone in the path of a URI."""


@contextmanager
def plain_path(spark: SparkSession, checkpoint: str) -> Iterator[str]:
    """``checkpoint`` under a name that needs no encoding; RunError if that takes a link that cannot be made."""
    found = _ENCODED.search(checkpoint)
    if found is None:
        yield checkpoint
        return
    if "://" in checkpoint or not shares_machine(spark):
        raise RunError(
            f"Spark cannot read state below {checkpoint}, because of the {found[0]!r} in its name",
            hint="copy the checkpoint to a directory without such characters, or make a link to it",
        )
    with tempfile.TemporaryDirectory(prefix="hintplan-state-") as folder:
        link = Path(folder) / "checkpoint"
        link.symlink_to(Path(checkpoint).absolute(), target_is_directory=True)
        yield str(link)
