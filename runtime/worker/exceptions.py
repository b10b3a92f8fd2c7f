"""Exceptions of the user's code: their text in messages, and the decision whether to try again.

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
"""Exceptions that mean the code is wrong, so that another call with the same arguments would fail again."""

_LONGEST = 500
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")


def retried(error: BaseException, retry_on: tuple[type[Exception], ...]) -> bool:
    """Return True if a call that ended with ``error`` is repeated while attempts are left.

    It is repeated for the classes in ``retry_on``. An exception of ``NEVER_HEAL`` is repeated only if ``retry_on`` has
    such a class, not just a base class.
    """
    if isinstance(error, NEVER_HEAL):
        retry_on = tuple(kind for kind in retry_on if issubclass(kind, NEVER_HEAL))
    return isinstance(error, retry_on)


def said(error: BaseException) -> str:
    """Return type and text of ``error``, shortened, without credentials in URLs."""
    text = _CREDENTIALS.sub("***@", str(error))
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{type(error).__name__}: {shortened}" if text else type(error).__name__
