"""Which tests one process runs after another with `pytest -n 2 --dist loadgroup`: a file's, for most fixtures are a
file's; and all that ask for a fixture of ``SHARED``, from whatever files, so that it starts once.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

__all__ = ["SharedFixtures", "group_of"]

ROOT = Path(__file__).parents[1]
SHARED = ("cluster", "yarn", "connect_server")
"""Fixtures that take long to start, by the names of which tests ask for them."""


class SharedFixtures(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups of tests; that of xdist knows none with this pytest, which has made the ids of tests fixed."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Give the fixture that the test shares, or else its file."""
    file, _, name = nodeid.partition("::")
    asked = _arguments(ROOT / file).get(name.partition("[")[0], frozenset())
    return next((fixture for fixture in SHARED if fixture in asked), file)


@cache
def _arguments(file: Path) -> dict[str, frozenset[str]]:
    """Give what each test of ``file`` asks for; read, as it is not imported where tests are handed out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        each.name: frozenset(argument.arg for argument in each.args.args)
        for each in tree.body
        if isinstance(each, ast.FunctionDef)
    }
