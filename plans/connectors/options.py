"""What an option of a connector may be: its kind, default and limits, and what is wrong with a value.

Connectors are put together from these, each in a file of its own. Knows no connector and no table.

>>> port = OptionSpec(name="port", kind="int", default="6379", description="The port of the server.")
>>> bad_value(port, "many")
("'port' is 'many', expected a whole number of at least 1", 'write digits only')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from plans.declarations.durations import DurationError, parse_duration

__all__ = ["ENVIRONMENT", "OptionSpec", "bad_value"]

ENVIRONMENT = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")
"""A reference to an environment variable, which the run replaces as late as possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option of a connector; ``default`` is what holds when it is not given, in the spelling of the option.

    ``description`` says what it means in a line, which editors show while a plan is typed.

    An ``int`` is from ``minimum`` to ``maximum``; a ``duration`` is longer than nothing; a ``character`` is one
    character or ``\\t``; ``choices`` are the only values, of a ``word`` in any case. A ``secret`` must be written as
    ``${env:NAME}``. Such a reference may also stand in what goes to a server only, ``environment``: elsewhere a plan
    could send, print or store any variable of the run.
    """

    name: str
    kind: Literal["string", "int", "bool", "word", "character", "duration"] = "string"
    required: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    minimum: int = 1
    maximum: int = 10**18 - 1
    secret: bool = False
    environment: bool = False
    description: str = ""


def bad_value(spec: OptionSpec, value: str) -> tuple[str, str] | None:
    """What is wrong with ``value``, and what to write instead; a secret's value is never repeated."""
    if spec.secret:
        if ENVIRONMENT.fullmatch(value):
            return None
        return (
            f"{spec.name!r} is a secret and must not stand in the text",
            "write '${env:NAME}' and set NAME for the run",
        )
    if not spec.environment and "${" in value:
        return f"{spec.name!r} must not refer to the environment: it is stored and shown", "write the text itself"
    if "${" in ENVIRONMENT.sub("", value):
        return f"{spec.name!r} has a placeholder that is not of the form ${{env:NAME}}", "write ${env:NAME}"
    if spec.choices and (value.lower() if spec.kind == "word" else value) not in spec.choices:
        close = get_close_matches(value.lower(), spec.choices, n=1)
        choices, advice = ", ".join(spec.choices), f"write {close[0]!r}" if close else "write one of these"
        return f"{spec.name!r} is {value!r}, expected one of {choices}", advice
    if spec.kind == "bool" and value.lower() not in ("true", "false"):
        return f"{spec.name!r} is {value!r}, expected true or false", "write 'true' or 'false'"
    if spec.kind == "int" and not (re.fullmatch(r"[0-9]{1,18}", value) and int(value) >= spec.minimum):
        return f"{spec.name!r} is {value!r}, expected a whole number of at least {spec.minimum}", "write digits only"
    if spec.kind == "int" and int(value) > spec.maximum:
        return f"{spec.name!r} is {value}, expected at most {spec.maximum:,}", f"write {spec.maximum} or less"
    if spec.kind == "character" and value != "\\t" and len(value) != 1:
        return f"{spec.name!r} is {value!r}, expected one character", "write one character, or \\t for a tab"
    if spec.kind == "duration":
        return _bad_duration(spec.name, value)
    if spec.kind == "string" and spec.required and not value.strip():
        return f"{spec.name!r} is empty", "give it a value"
    return None


def _bad_duration(name: str, value: str) -> tuple[str, str] | None:
    try:
        milliseconds = parse_duration(value, require_unit=True)
    except DurationError as error:
        return f"{name!r} is {value!r}: {error.reason}", "write a number with a unit, such as '30 s'"
    if milliseconds < 1:
        return f"{name!r} is {value!r}, expected a duration longer than nothing", "write, for example, '30 s'"
    return None
