"""The options of connectors: settings that a table's WITH clause sets, and the check of their values.

Each connector combines its options in a file of its own. This module knows no connector and no table.

>>> port = option("port", "int", default="6379", description="The port of the server.")
>>> bad_value(port, "many")
("'port' is 'many', expected a whole number of at least 1", 'write 1 or more, in digits')
>>> print(*check_secret("tables.rates.options.header.X-Token", "the header X-Token", "hunter2"))
tables.rates.options.header.X-Token: the header X-Token may be a secret, which must not be in the text
  hint: write '${env:NAME}' and set NAME for the run
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from hintplan.plans.declarations.durations import DurationError
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.effects import OPTION
from hintplan.plans.settings.setting import Kind, Setting, SettingError, SettingFacts, parse_value

ENVIRONMENT = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")
"""A reference to an environment variable. A run resolves it as late as possible."""
_SECRET = re.compile(r"auth|cookie|credential|key|password|secret|token", re.IGNORECASE)


def option(name: str, kind: Kind = "text", *, description: str = "", **facts: Unpack[SettingFacts]) -> Setting:
    """Return an option of a connector, with a default in the option's syntax.

    By default, numbers and durations must be positive.
    """
    limits: SettingFacts = {"minimum": 1, "maximum": 10**18 - 1}
    return Setting(name=name, option=name, kind=kind, description=description, effect=OPTION, **limits | facts)


def check_secret(path: str, what: str, value: str) -> Iterator[Diagnostic]:
    """Yield a problem if ``what`` suggests a secret and ``value`` does not refer to the environment."""
    if _SECRET.search(what) and not ENVIRONMENT.fullmatch(value):
        yield Diagnostic(
            message=f"{what} may be a secret, which must not be in the text",
            hint="write '${env:NAME}' and set NAME for the run",
            path=path,
        )


def bad_value(setting: Setting, value: str) -> tuple[str, str] | None:
    """Return the problem of ``value`` and a hint, or None. The message never repeats a secret."""
    name = setting.name
    if setting.secret:
        if ENVIRONMENT.fullmatch(value):
            return None
        return f"{name!r} is a secret and must not be in the text", "write '${env:NAME}' and set NAME for the run"
    if setting.verbatim and not setting.environment and "${" in value:
        return f"{name!r} must not refer to the environment: it is stored and shown", "write the text itself"
    if setting.verbatim and "${" in ENVIRONMENT.sub("", value):
        return f"{name!r} has a placeholder that is not of the form ${{env:NAME}}", "write ${env:NAME}"
    if setting.required and not setting.choices and not value.strip():
        return f"{name!r} is empty", "give it a value"
    try:
        parse_value(setting, value)
    except SettingError as error:
        if not setting.verbatim:
            return f"{name!r}: {error}", error.hint
        if isinstance(error.__cause__, DurationError):
            return f"{name!r} is {value!r}: {error.__cause__.reason}", "write a number with a unit, such as '30 s'"
        return f"{name!r} is {value!r}, expected {error.expected}", error.hint
    return None
