"""A check for literal secrets: an option whose user-chosen name suggests a secret must refer to the environment.

>>> print(*check_secret("tables.rates.options.header.X-Token", "the header X-Token", "hunter2"))
tables.rates.options.header.X-Token: the header X-Token may be a secret, which must not stand in the text
  hint: write '${env:NAME}' and set NAME for the run
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hintplan.plans.connectors.options import ENVIRONMENT
from hintplan.plans.errors import Diagnostic

_SECRET = re.compile(r"auth|cookie|credential|key|password|secret|token", re.IGNORECASE)


def check_secret(path: str, what: str, value: str) -> Iterator[Diagnostic]:
    """Yield a problem if ``what`` suggests a secret and ``value`` does not refer to the environment."""
    if _SECRET.search(what) and not ENVIRONMENT.fullmatch(value):
        yield Diagnostic(
            message=f"{what} may be a secret, which must not stand in the text",
            hint="write '${env:NAME}' and set NAME for the run",
            path=path,
        )
