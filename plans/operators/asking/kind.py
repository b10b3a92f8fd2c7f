"""The specification of operators that call another system for every row: their requests, waiting, retries and edits.

An edit returns the operator's groups of settings after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.declared import Declared
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Value

Groups = Mapping[str, Settings]


@frozen
class Alike:
    """The identity of an operator's requests.

    Operators of one kind send the same requests if they have the same ``target``, a table or function, and ``key``.
    """

    target: str
    key: tuple[object, ...]


@frozen
class Retries:
    """The retries of a request: ``attempts`` after the first, ``delay`` apart; one ``timeout`` covers all attempts."""

    attempts: int
    delay: str
    timeout: str


@frozen
class Waits:
    """The number of requests in flight at once, set by the setting ``capacity_name``, and their retries."""

    capacity: int
    capacity_name: str
    retries: Retries | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskingKind:
    """The specification of operators of a kind that call another system; no field has a default."""

    question: str
    """The noun for one request in messages."""
    alike: Callable[[Any], Alike]
    """Returns the identity of an operator's requests."""
    alike_text: str
    """The description of operators with the same requests, with ``{}`` for their target."""
    waits: Callable[[Any], Waits | None]
    """Returns how many requests an operator has in flight; None if it handles one row after the other."""
    parks_rows: Callable[[Any], bool]
    """Returns True if rows of an operator wait for a retry in the checkpoint, in addition to its states."""
    keys: Callable[[Any, Declared], Mapping[str, Group]]
    """Returns the groups with the configuration keys of an operator, by name."""
    settable: Callable[[Any], tuple[str, ...]]
    """Returns the groups of an operator that can be set, including groups that it does not have now."""
    idle: Callable[[Any], str]
    """Returns the reason why an operator without settings has nothing to set."""
    with_setting: Callable[[Any, Declared, str, str, str, Value], Groups]
    """Sets a setting; the strings are the path for messages, the group and the name. PlanError if it has no effect."""
    with_retry: Callable[[Any, Declared, tuple[Value, Value] | None], Groups]
    """Sets the attempts and the delay of retries; None turns retries off."""
    resettled: Callable[[Any, Declared, bool | None], Groups]
    """Resolves the settings from the layers that the plan has now; edits stay edits.

    The last argument is True if the input is insert-only, and None if invalid edges or tables leave that open.
    """
    check: Callable[[Any, Declared, bool | None], Iterator[Diagnostic]]
    """Yields the problems of the settings; the last argument is as for ``resettled``."""
