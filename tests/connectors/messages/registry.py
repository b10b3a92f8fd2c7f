"""A schema registry for tests, in a thread of this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Registry(BaseHTTPRequestHandler):
    """Schemas by number, and the numbers of subjects, as a registry of Confluent's answers."""

    schemas: ClassVar[dict[int, str]] = {}
    subjects: ClassVar[dict[str, int]] = {}
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers["Authorization"])
        found = self.schemas.get(int(self.path.rpartition("/")[2]))
        self._answer(404 if found is None else 200, {"schema": found})

    def do_POST(self) -> None:
        self.asked.append(self.headers["Authorization"])
        schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        number = next((n for n, known in self.schemas.items() if known == schema), len(self.schemas) + 1)
        self.schemas[number] = schema
        self.subjects[self.path.split("/")[2]] = number
        self._answer(200, {"id": number})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def running_registry() -> Iterator[str]:
    """Start a registry that knows nothing, and give its URL."""
    for known in (Registry.schemas, Registry.subjects, Registry.asked):
        known.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
