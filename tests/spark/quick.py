"""Lets the JVMs that this process starts, and those of its clusters, use the compiler that starts quickest.

quick_jvms()  # before the first of them
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["quick_jvms"]


def quick_jvms() -> None:
    """Set it in the environment, which other processes inherit; what is set there already wins."""
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", "-XX:TieredStopAtLevel=1")
