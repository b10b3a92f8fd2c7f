"""Resolves secrets in options: ``${env:NAME}`` becomes the value of the environment variable NAME, as late as possible.

A resolved text goes directly to the code that needs it. It is never logged, added to an error message, or stored in a
plan or a checkpoint. Texts that cannot contain a placeholder are not passed to this module.

>>> import os; os.environ["DB_DIR"] = "/srv"
>>> resolve("jdbc:sqlite:${env:DB_DIR}/results.db")
'jdbc:sqlite:/srv/results.db'
"""

from __future__ import annotations

import os
import re

from hintplan.plans.errors import RunError

_PLACEHOLDER = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def resolve(text: str) -> str:
    """Replace every ``${env:NAME}`` in ``text``; RunError with the names of variables that are not set."""
    missing = sorted({name for name in _PLACEHOLDER.findall(text) if name not in os.environ})
    if missing:
        settings = " ".join(f"{name}=..." for name in missing)
        raise RunError(
            f"environment variable {', '.join(missing)} is not set, but the plan refers to it",
            hint=f"set it before Spark starts, also where its workers run: export {settings}",
        )
    return _PLACEHOLDER.sub(lambda match: os.environ[match.group(1)], text)
