"""A rule of the linter, and its findings.

>>> Finding(path="name", message="it is short").fix is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.annotations import RemarkLevel


@frozen
class Fix:
    """A fix of a finding: ``change`` returns the plan without the finding.

    A fix changes nothing that runs. With ``facts``, it changes facts, which digests cover and checkpoints record.
    """

    change: Callable[[Plan], Plan]
    facts: bool = False


@frozen
class Finding:
    """A finding at ``path``; ``advice`` replaces the rule's own advice where that does not fit.

    ``respelled`` is an equal value in another spelling; writing it into the plan is the fix.
    """

    path: str
    message: str
    advice: str | None = None
    fix: Fix | None = None
    respelled: str | None = None


@frozen
class Rule:
    """A rule with a stable ``id`` and ``slug``.

    ``about`` describes in a line what it finds, ``why`` the harm, and ``advice`` the remedy.
    """

    id: str
    slug: str
    level: RemarkLevel
    about: str
    why: str
    advice: str
    check: Callable[[Plan], Iterator[Finding]] | None = None
    fixable: bool = False
