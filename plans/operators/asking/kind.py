"""What a kind says of operators that ask another system for every row: what, how they wait, and how they are edited.

An edit gives the groups of settings that the operator has after it; that of a retry is None where it is switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.errors import Diagnostic
from hintplan.plans.operators.spec.declared import Declared
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Value

Groups = Mapping[str, Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Operators of a kind that ask ``target``, a table or a function, with the same ``key`` ask the same."""

    target: str
    key: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """``attempts`` after the first, ``delay`` apart, for all of which together there is one ``timeout``."""

    attempts: int
    delay: str
    timeout: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How many questions are in flight at once, by the setting ``capacity_name``, and how they are asked again."""

    capacity: int
    capacity_name: str
    retries: Retries | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskingKind:
    """Nothing has a default: whoever adds a kind that asks decides all of it."""

    question: str
    """What a message calls one time that it asks."""
    alike: Callable[[Any], Alike]
    """What an operator asks."""
    alike_text: str
    """What those that are alike do, with ``{}`` for their target."""
    waits: Callable[[Any], Waits | None]
    """How an operator waits; None if it asks for one row after the other."""
    parks_rows: Callable[[Any], bool]
    """Whether rows of an operator wait in a checkpoint to be asked again, beside its states."""
    keys: Callable[[Any, Declared], Mapping[str, Group]]
    """The groups with the configuration keys of an operator."""
    settable: Callable[[Any], tuple[str, ...]]
    """The groups of an operator that can be set, whether it has them now or not."""
    idle: Callable[[Any], str]
    """Why nothing can be set of an operator without any settings."""
    with_setting: Callable[[Any, Declared, str, str, str, Value], Groups]
    """Sets a setting, given the path for messages, its group and its name; PlanError if it has no effect."""
    with_retry: Callable[[Any, Declared, tuple[Value, Value] | None], Groups]
    """Sets the attempts and the delay; None never asks again."""
    resettled: Callable[[Any, Declared, bool | None], Groups]
    """Resolves the settings from the layers that the plan has now; edits stay edits.

    Told whether rows are only ever added to its input, or None if wrong edges or tables leave that open.
    """
    check: Callable[[Any, Declared, bool | None], Iterator[Diagnostic]]
    """What is wrong with the settings; told the same."""
