"""How sources fail: for good, as a RunError, or so that another attempt may help, as a :class:`SourceUnavailable`.

A message says which table, what the server answered and what to do. It never holds what came out of the environment:
:func:`redacted` puts the placeholders back. Errors of drivers are not chained, for their texts and tracebacks may hold
addresses and credentials.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import ModuleType

from hintplan.plans.errors import Diagnostic, RunError
from hintplan.plans.text import redaction


class SourceUnavailable(Exception):
    """The source did not answer, or refused for a reason that passes.

    Not a RunError, which is final: the engine asks again as often as ``lookup.max-retries`` allows.
    """

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(str(Diagnostic(message=message, hint=hint, path=path)))


def import_extra(
    module: str, extra: str, connector: str, *, where: str = "on every machine that runs Python workers"
) -> ModuleType:
    """Import ``module``, which the distribution's ``extra`` installs; RunError naming it if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RunError(
            f"the {connector} connector needs the package {(error.name or module).partition('.')[0]}, which this "
            "Python does not have",
            hint=f"pip install 'hintplan[{extra}]', {where}",
        ) from None


def redacted(text: str, options: Mapping[str, str]) -> str:
    """``text`` with the values of the environment variables that ``options`` refer to replaced by the references."""
    return redaction.redacted(text, {name: os.environ.get(name, "") for name in redaction.variables_in(options)})
