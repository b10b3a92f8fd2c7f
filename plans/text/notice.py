"""Tells what a command does if that takes more than a second, and how long: on a terminal in a line that goes again.

In a log, that is a line after a second, one every ten seconds, and one at the end.

with notice("starting Spark 4.3") as end:
    ...
    end()           # before something else is printed; else the end of the block does it
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hintplan.plans.text.unprintable import clean

_SECONDS, _SECONDS_IN_LOGS = 1.0, 10.0
ERASED = "\r\x1b[K"
"""Takes the line from a terminal, for whoever prints while a notice may be there."""


@contextmanager
def notice(
    text: str,
    *,
    descriptor: Callable[[], int] = lambda: 2,
    timer: Callable[..., Any] = threading.Timer,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[], None]]:
    """Write ``text`` and the time to ``descriptor`` unless the block ends, or calls what it is given, within a second.

    The descriptor is asked for when something is written: by then another one may stand for the terminal. ``timer`` is
    made as a ``threading.Timer``.
    """
    text = clean(text)
    on_terminal, began = os.isatty(descriptor()), clock()
    writing, told, ended = threading.Lock(), False, False
    waiting: Any = None

    def write(words: str) -> None:
        with suppress(OSError):
            os.write(descriptor(), words.encode())

    def tell() -> None:
        nonlocal told
        with writing:
            if ended:
                return
            seconds = f"{clock() - began:.0f} s"
            if on_terminal:
                write(f"{ERASED if told else ''}{text} · {seconds}")
            else:
                write(f"{text} · {seconds} so far\n" if told else f"{text}\n")
            told = True
            wait(_SECONDS if on_terminal else _SECONDS_IN_LOGS)

    def wait(seconds: float) -> None:
        nonlocal waiting
        waiting = timer(seconds, tell)
        waiting.daemon = True
        waiting.start()

    def end() -> None:
        nonlocal ended
        with writing:
            waiting.cancel()
            if told and not ended:
                write(ERASED if on_terminal else f"{text} · took {clock() - began:.1f} s\n")
            ended = True

    with suppress(OSError):
        sys.stderr.flush()
    wait(_SECONDS)
    try:
        yield end
    finally:
        end()
