"""The file systems that other machines may see: the file systems mounted from elsewhere.

>>> is_shared("/proc/self")
True
"""

from __future__ import annotations

import os
from pathlib import Path

_OF_ONE_MACHINE = frozenset(("apfs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "overlay", "tmpfs", "xfs", "zfs"))
"""The file systems that only this machine mounts."""


def is_shared(path: Path | str) -> bool:
    """Return whether other machines may share ``path``; True if that is unknown.

    >>> is_shared("/proc/self")
    True
    """
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    real_path = os.path.realpath(path)
    longest, kind = "", ""
    for line in lines:
        mounted, _, details = line.partition(" - ")
        point = mounted.split()[4].encode().decode("unicode_escape")
        if len(point) >= len(longest) and (real_path + "/").startswith(point.rstrip("/") + "/"):
            longest, kind = point, details.split()[0]
    return kind not in _OF_ONE_MACHINE
