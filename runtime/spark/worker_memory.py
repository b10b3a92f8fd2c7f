"""Settings of the memory of Python workers.

A batch allocates arrays of many megabytes again and again. If a worker returns each of them to the system, the system
clears the same pages again for the next array. So workers keep free memory for later arrays: Arrow for a minute, and
glibc, whose memory numpy uses, in blocks of up to 256 MiB and in 512 MiB at the end of its heap.

The variables belong to glibc (``man mallopt``) and to mimalloc, Arrow's allocator on Linux. An operator that merges
large segments still returns all memory of Arrow after each range of them.
"""

from __future__ import annotations

import os

from pyspark import SparkContext

SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MIMALLOC_PURGE_DELAY": "60000",
}


def keep_free_memory(context: SparkContext) -> None:
    """Let workers that Spark starts from now on keep free memory.

    A variable of this process, or a setting ``spark.executorEnv.*``, has precedence.
    """
    conf = context.getConf()
    for name, value in SETTINGS.items():
        if name not in os.environ and not conf.contains(f"spark.executorEnv.{name}"):
            context.environment.setdefault(name, value)
