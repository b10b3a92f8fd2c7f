"""Which file systems other machines may see, too: those that are mounted from somewhere.

>>> is_shared("/proc/self")
True
"""

from __future__ import annotations

import os
from pathlib import Path

_OF_ONE_MACHINE = frozenset(("apfs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "overlay", "tmpfs", "xfs", "zfs"))


def is_shared(path: Path | str) -> bool:
    """Whether other machines may see ``path``, or it is not known that none do."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    where = os.path.realpath(path)
    longest, kind = "", ""
    for line in lines:
        mounted, _, rest = line.partition(" - ")
        point = mounted.split()[4].encode().decode("unicode_escape")
        if len(point) >= len(longest) and (where + "/").startswith(point.rstrip("/") + "/"):
            longest, kind = point, rest.split()[0]
    return kind not in _OF_ONE_MACHINE
