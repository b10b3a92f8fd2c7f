"""Notices of steps that take more than a second, with the elapsed time: on a terminal, a line that is finally erased.

In a log, a notice is a line after a second, another every ten seconds, and one at the end.

with notice("starting Spark 4.3") as end:
    ...
    end()           # call it before printing anything else; otherwise the end of the block does it
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hintplan.plans.text.escapes import clean

_SECONDS, _SECONDS_IN_LOGS = 1.0, 10.0
ERASED = "\r\x1b[K"
"""The sequence that erases the line of a terminal, for output while a notice may be shown."""


@contextmanager
def notice(
    text: str,
    *,
    descriptor: Callable[[], int] = lambda: 2,
    timer: Callable[..., Any] = threading.Timer,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[], None]]:
    """Write ``text`` and the elapsed time to ``descriptor``, unless the block ends or calls ``end`` within a second.

    ``descriptor`` is called at each write, because another descriptor may stand for the terminal by then. ``timer`` is
    constructed like a ``threading.Timer``.
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
