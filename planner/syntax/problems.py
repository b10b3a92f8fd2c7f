"""The errors of one compilation, and how it continues after an error.

Code that finds an error raises it. Code that has further parts to check records the error here and continues. An error
that may only follow from a recorded error is in doubt, and is dropped.

>>> problems = Problems()
>>> with problems.going_on():
...     raise SqlError("unknown column 'a'", line=1, column=8)
>>> with problems.going_on():
...     raise FollowUp()
>>> [found.message for found in problems.found]
["unknown column 'a'"]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hintplan.plans.errors import Diagnostic, SqlError

MOST = 100
"""The compilation ends after this number of errors."""


class FollowUp(SqlError):
    """Something cannot be compiled because of an error that is already recorded."""


class Ended(SqlError):
    """The compilation ends: its limits are exceeded, or it has too many errors."""


@dataclass(slots=True, kw_only=True)
class Problems:
    """The recorded errors and the doubts that they cause.

    - ``found`` has each error once. ``doubts`` counts the errors, and everything that was left out because of one.
    - ``before`` is the number of doubts before the current statement.
    - ``unsure``: the current statement uses a table with wrong options, so the properties of its connector are unknown.
    - ``never_sure``: the configuration is wrong, so only errors of expressions are certain.
    """

    found: dict[Diagnostic, None] = field(default_factory=dict)
    doubts: int = 0
    before: int = 0
    unsure: bool = False
    never_sure: bool = False

    def add(self, error: SqlError, since: int, *, certain: bool = False) -> None:
        """Record ``error``, unless it may follow from another one: ``doubts`` has grown since it was ``since``.

        A ``certain`` error does not depend on the configuration.
        """
        if isinstance(error, Ended):
            raise error
        is_certain = self.doubts == since and (certain or not self.never_sure)
        self.doubts += 1
        if is_certain:
            self._take(error)

    def add_known(self, error: SqlError) -> None:
        """Record ``error``, which casts doubt only on the properties of tables that depend on their options."""
        self.unsure = True
        self._take(error)

    def has_one_at(self, error: SqlError) -> bool:
        """Return True if an error is recorded at the position of ``error``."""
        places = {(diagnostic.file, diagnostic.line, diagnostic.column) for diagnostic in error.diagnostics}
        return any((recorded.file, recorded.line, recorded.column) in places for recorded in self.found)

    def _take(self, error: SqlError) -> None:
        self.found.update(dict.fromkeys(error.diagnostics))
        if len(self.found) > MOST:
            raise Ended

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Record an error that the ``with`` block raises, and continue after the block."""
        since = self.doubts
        try:
            yield
        except SqlError as error:
            self.add(error, since)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Record an error that the ``with`` block raises.

        Raise FollowUp at the end if anything in the block is in doubt.
        """
        since = self.doubts
        with self.going_on():
            yield
        if self.doubts != since:
            raise FollowUp
