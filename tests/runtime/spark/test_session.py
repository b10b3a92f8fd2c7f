"""The end of a session."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hintplan.runtime.spark.session import stop_session


class Accumulators:
    """PySpark's server of accumulators, which ends when it is let, and then removes its socket."""

    def __init__(self, address: object) -> None:
        self.server_address = address
        self.let, self.ended = threading.Event(), threading.Event()

    def shutdown(self) -> None:
        self.let.wait(60)
        self.ended.set()
        raise FileNotFoundError("somebody has removed the socket after it was looked for")


@pytest.mark.parametrize("by", ["socket", "port"])
def test_nobody_waits_for_the_server_of_accumulators(tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr("threading.excepthook", failures.append)
    socket = tmp_path / "socket"
    socket.touch()
    server = Accumulators(str(socket) if by == "socket" else ("localhost", 1))
    context = SimpleNamespace(_accumulatorServer=server)
    there: list[bool] = []

    class Session:
        sparkContext = context

        def stop(self) -> None:
            assert context._accumulatorServer is None  # or PySpark would wait for it
            there.append(socket.exists())  # the JVM may still tell it something

    stop_session(cast(Any, Session()))
    assert there == [True]
    assert socket.exists() == (by == "port")
    assert not server.ended.is_set()
    (ending,) = [each for each in threading.enumerate() if each.name == "hintplan-accumulators"]
    server.let.set()
    ending.join(60)
    assert server.ended.is_set()
    assert failures == []
