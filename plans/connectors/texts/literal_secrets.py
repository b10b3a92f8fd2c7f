"""Values that a name of the user's gives away as secrets, which must not stand in the text of a plan.

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
    """A problem if ``what`` sounds like a secret and ``value`` is no reference to the environment."""
    if _SECRET.search(what) and not ENVIRONMENT.fullmatch(value):
        yield Diagnostic(
            message=f"{what} may be a secret, which must not stand in the text",
            hint="write '${env:NAME}' and set NAME for the run",
            path=path,
        )
