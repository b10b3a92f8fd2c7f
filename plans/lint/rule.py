"""What a rule of the linter is, and what it finds.

>>> Finding(path="name", message="it is short").fix is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hintplan.plans.model.plan import Plan
from hintplan.plans.review.annotations import RemarkLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How a finding is mended: ``change`` gives the plan without it.

    A fix changes nothing that runs. With ``facts``, it changes what digests cover, and a checkpoint records.
    """

    change: Callable[[Plan], Plan]
    facts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of the place at ``path``; ``advice`` is what to do, if the rule's own advice does not fit.

    ``respelled`` is the text that says the same as what stands there: writing it is the fix.
    """

    path: str
    message: str
    advice: str | None = None
    fix: Fix | None = None
    respelled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. ``id`` and ``slug`` are stable; ``about`` says in a line what it finds,
    ``why`` what is bad about it, ``advice`` what to do then."""

    id: str
    slug: str
    level: RemarkLevel
    about: str
    why: str
    advice: str
    check: Callable[[Plan], Iterator[Finding]] | None = None
    fixable: bool = False
