"""The errors that one compilation has found so far, and how it goes on after one.

Whoever finds an error in a part raises it; whoever has other parts to look at takes it down here and goes on. What
would only follow from an error that was taken down is in doubt, and dropped.

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
"""After so many errors a compilation ends."""


class FollowUp(SqlError):
    """Something cannot be compiled because of an error that was taken down already."""


class Ended(SqlError):
    """The compilation ends here: its limits are exceeded, or it has too many errors."""


@dataclass(slots=True, kw_only=True)
class Problems:
    """``found`` are the errors, once each. ``doubts`` counts them, and all that was left out because of one.

    ``before`` is how many doubts there were before the statement in work.
    ``unsure`` says that the statement in work reads or writes a table whose options are wrong: nobody knows what its
    connector would do. ``never_sure`` says that the configuration is wrong: only what expressions say is certain.
    """

    found: dict[Diagnostic, None] = field(default_factory=dict)
    doubts: int = 0
    before: int = 0
    unsure: bool = False
    never_sure: bool = False

    def add(self, error: SqlError, since: int, *, certain: bool = False) -> None:
        """Take ``error`` down, unless it may follow from one that was added when there were more than ``since`` doubts.

        One that is ``certain`` does not depend on the configuration.
        """
        if isinstance(error, Ended):
            raise error
        known = self.doubts == since and (certain or not self.never_sure)
        self.doubts += 1
        if known:
            self._take(error)

    def add_known(self, error: SqlError) -> None:
        """Take ``error`` down, which leaves nothing in doubt but what tables do with their options."""
        self.unsure = True
        self._take(error)

    def has_one_at(self, error: SqlError) -> bool:
        """True if an error was taken down that stands where ``error`` does."""
        places = {(each.file, each.line, each.column) for each in error.diagnostics}
        return any((known.file, known.line, known.column) in places for known in self.found)

    def _take(self, error: SqlError) -> None:
        self.found.update(dict.fromkeys(error.diagnostics))
        if len(self.found) > MOST:
            raise Ended

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Take down the error that is raised inside, and go on behind it."""
        since = self.doubts
        try:
            yield
        except SqlError as error:
            self.add(error, since)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Take down the error that is raised inside; FollowUp at the end if anything inside is in doubt."""
        since = self.doubts
        with self.going_on():
            yield
        if self.doubts != since:
            raise FollowUp
