"""A real Prometheus on loopback, with the configuration and the rules of the example."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest

DEADLINE_SECONDS = 60
EXAMPLE = Path(__file__).parents[3] / "examples" / "monitoring"


@dataclass(frozen=True, slots=True)
class Prometheus:
    """What it answers at ``url``."""

    url: str

    def asked(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': expression})}", timeout=30) as page:
            answer = json.load(page)
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> dict[str, dict[str, Any]]:
        """Its alerts by name."""
        with urlopen(f"{self.url}/api/v1/rules", timeout=30) as page:
            (group,) = json.load(page)["data"]["groups"]
        return {rule["name"]: rule for rule in group["rules"]}


@contextmanager
def running_prometheus(folder: Path, metrics: str) -> Iterator[Prometheus]:
    """A Prometheus that asks the page at the URL ``metrics`` each second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed; make servers installs it on Debian and Ubuntu")
    settings = (EXAMPLE / "prometheus.yml").read_text(encoding="utf-8")
    of_here = {
        "127.0.0.1:9464": urlsplit(metrics).netloc,
        "scrape_interval: 15s": "scrape_interval: 1s\n  evaluation_interval: 1s",
    }
    for theirs, ours in of_here.items():
        assert theirs in settings
        settings = settings.replace(theirs, ours)
    folder.mkdir()
    (folder / "prometheus.yml").write_text(settings, encoding="utf-8")
    shutil.copy(EXAMPLE / "alerts.yml", folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ("--config.file", "prometheus.yml", "--storage.tsdb.path", "kept", "--web.listen-address", address)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)
    try:
        found = Prometheus(f"http://{address}")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not _has_scraped(found):
            assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
            assert time.monotonic() < deadline, (folder / "log").read_text(encoding="utf-8")
            threading.Event().wait(0.2)
        yield found
    finally:
        process.kill()
        process.wait()


def _has_scraped(prometheus: Prometheus) -> bool:
    """Whether it has what rates are made of, and looked at its rules since."""
    try:
        scraped = prometheus.asked("count_over_time(up[1m]) > 3")
        return bool(scraped) and all(rule["lastEvaluation"] > "1" for rule in prometheus.rules().values())
    except OSError:
        return False
