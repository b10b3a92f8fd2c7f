"""A web service on loopback: what there is to see near an airport. Each answer takes 50 ms; every fourth request fails.

python server.py 8123
curl http://127.0.0.1:8123/near/LIS
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NEAR = {
    "LIS": [{"place": "Belém Tower", "km": 11.0}, {"place": "Oceanarium", "km": 3.5}],
    "FCO": [{"place": "Ostia Antica", "km": 5.8}],
    "CPH": [{"place": "The Little Mermaid", "km": 9.1}, {"place": "Øresund Bridge", "km": 5.0}],
    "NRT": [{"place": "Naritasan Shinsho-ji", "km": 6.3}],
}
requests = itertools.count(1)


class Near(BaseHTTPRequestHandler):
    """GET /near/CODE: a JSON list, empty where nothing is known."""

    def do_GET(self) -> None:
        time.sleep(0.05)
        if not next(requests) % 4:
            self.send_error(503)
            return
        body = json.dumps(NEAR.get(self.path.rpartition("/")[2], [])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the demo's output is the query's."""


def server(port: int = 0) -> ThreadingHTTPServer:
    """A server on loopback that is not running yet, on any free port if ``port`` is 0."""
    return ThreadingHTTPServer(("127.0.0.1", port), Near)


if __name__ == "__main__":
    server(int(sys.argv[1])).serve_forever()
