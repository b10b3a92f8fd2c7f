"""The abstract class of operators that send a request to another system for every row, and may wait for the answer.

An edit returns the operator with its new settings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.declared import Declared
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.setting import Value


@frozen
class RequestIdentity:
    """The identity of an operator's requests.

    Operators of one class send the same requests if they have the same ``target``, a table or function, and ``key``.
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


class Requesting(Operator):
    """An operator that sends a request for every row; it always has its groups of settings."""

    __slots__ = ()

    request_noun: ClassVar[str]
    """The noun for one request in messages."""
    same_requests_text: ClassVar[str]
    """The description of operators with the same requests, with ``{}`` for their target."""

    @property
    @abstractmethod
    def request_identity(self) -> RequestIdentity:
        """The identity of its requests."""

    @property
    @abstractmethod
    def waits(self) -> Waits | None:
        """The number of requests in flight; None if it handles one row after the other."""

    @property
    @abstractmethod
    def settable(self) -> tuple[str, ...]:
        """The groups that can be set, including groups that it does not have now."""

    @property
    @abstractmethod
    def nothing_to_set(self) -> str:
        """The reason why an operator without settings has nothing to set."""

    @abstractmethod
    def config_groups(self, plan: Declared) -> Mapping[str, Group]:
        """Return the groups with its configuration keys, by name."""

    @abstractmethod
    def with_setting(self, plan: Declared, path: str, group: str, name: str, value: Value) -> Self:
        """Return the operator with one setting changed; ``path`` is for messages.

        Raise PlanError if it has no such setting, or if the setting would have no effect.
        """

    @abstractmethod
    def with_retry(self, plan: Declared, wanted: tuple[Value, Value] | None) -> Self:
        """Return the operator with the attempts and the delay in ``wanted``; None turns retries off."""

    @abstractmethod
    def resettled(self, plan: Declared, insert_only: bool | None) -> Self:
        """Return the operator with its settings resolved from the layers that the plan has now; edits stay edits.

        ``insert_only`` is true if the input is insert-only, and None if invalid edges or tables leave that open.
        """

    @abstractmethod
    def check_settings(self, plan: Declared, insert_only: bool | None) -> Iterator[Diagnostic]:
        """Yield the problems of the settings; ``insert_only`` is as for :meth:`resettled`."""
