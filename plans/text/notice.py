"""Tells what a command does if that takes more than a second, on a terminal in a line that goes again.

with notice("starting Spark 4.3") as end:
    ...
    end()           # before something else is printed; else the end of the block does it
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hintplan.plans.text.unprintable import clean

_SECONDS = 1.0
ERASED = "\r\x1b[K"
"""Takes the line from a terminal, for whoever prints while a notice may be there."""


@contextmanager
def notice(
    text: str, *, descriptor: Callable[[], int] = lambda: 2, timer: Callable[..., Any] = threading.Timer
) -> Iterator[Callable[[], None]]:
    """Write ``text`` to ``descriptor`` unless the block ends, or calls what it is given, within a second.

    The descriptor is asked for when something is written: by then another one may stand for the terminal. ``timer`` is
    made as a ``threading.Timer``.
    """
    on_terminal = os.isatty(descriptor())
    writing, told, ended = threading.Lock(), False, False

    def tell() -> None:
        nonlocal told
        with writing:
            if not ended:
                told = True
                with suppress(OSError):
                    os.write(descriptor(), (clean(text) + ("" if on_terminal else "\n")).encode())

    def end() -> None:
        nonlocal ended
        waiting.cancel()
        with writing:
            if told and on_terminal and not ended:
                with suppress(OSError):
                    os.write(descriptor(), ERASED.encode())
            ended = True

    with suppress(OSError):
        sys.stderr.flush()
    waiting = timer(_SECONDS, tell)
    waiting.daemon = True
    waiting.start()
    try:
        yield end
    finally:
        end()
