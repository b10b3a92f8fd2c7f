"""Exceptions of the user's code: what is said of them, and whether another attempt may end otherwise.

>>> retried(ConnectionError("away"), (Exception,)), retried(TypeError("no len()"), (Exception,))
(True, False)
>>> retried(TypeError("no len()"), (ConnectionError, TypeError))
True
>>> said(OSError("no route to https://me:secret@example.org/"))
'OSError: no route to https://***@example.org/'
"""

from __future__ import annotations

import re

NEVER_HEAL = (TypeError, AttributeError, NameError, ImportError, SyntaxError, NotImplementedError)
"""What says that code is wrong, so that calling it again with the same arguments ends in the same way."""

_LONGEST = 500
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")


def retried(error: BaseException, retry_on: tuple[type[Exception], ...]) -> bool:
    """Whether a call that ended with ``error`` is made again, if there are attempts left.

    So it is for what ``retry_on`` names, but for ``NEVER_HEAL``, which it has to name itself and not by a base class.
    """
    if isinstance(error, NEVER_HEAL):
        retry_on = tuple(kind for kind in retry_on if issubclass(kind, NEVER_HEAL))
    return isinstance(error, retry_on)


def said(error: BaseException) -> str:
    """Type and text of ``error``, shortened, without credentials of URLs."""
    text = _CREDENTIALS.sub("***@", str(error))
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{type(error).__name__}: {shortened}" if text else type(error).__name__
