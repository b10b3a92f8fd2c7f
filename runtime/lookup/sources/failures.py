"""Failures of sources: final ones (RunError), and ones that another attempt may mend (:class:`SourceUnavailable`).

A message names the table, the answer of the server and a remedy. It never contains values of environment variables:
:func:`redacted` replaces them with their placeholders. Errors of drivers are not chained, because their texts and
tracebacks may contain addresses and credentials.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import ModuleType

from hintplan.plans.errors import Diagnostic, RunError
from hintplan.plans.text import redaction


class SourceUnavailable(Exception):
    """The source did not answer, or refused for a temporary reason.

    It is not a RunError, which is final: the engine repeats the call up to ``lookup.max-retries`` times.
    """

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(str(Diagnostic(message=message, hint=hint, path=path)))


def import_extra(
    module: str, extra: str, connector: str, *, where: str = "on every machine that runs Python workers"
) -> ModuleType:
    """Import ``module``, which the distribution's ``extra`` installs; RunError with its name if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RunError(
            f"the {connector} connector needs the package {(error.name or module).partition('.')[0]}, which this "
            "Python does not have",
            hint=f"pip install 'hintplan[{extra}]', {where}",
        ) from None


def redacted(text: str, options: Mapping[str, str]) -> str:
    """Return ``text`` with each value of an environment variable in ``options`` replaced with the reference to it."""
    return redaction.redact(text, {name: os.environ.get(name, "") for name in redaction.variables_in(options)})
