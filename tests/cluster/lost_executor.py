"""A program for tests: three jobs of one session on a cluster, of which executors are killed between and during jobs.

    python lost_executor.py MASTER PYTHON DIRECTORY SETTING=VALUE...

Job 1 caches a join. Then an executor that holds parts of it is killed, and job 2 reads it. While job 3 reads it, at the
moment it asks a web service of this program, another one is killed. Prints a JSON object of what it saw.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import hintplan
from hintplan import Session
from hintplan.runtime.spark.session import start_session

DEADLINE_SECONDS = 180
POLL_SECONDS = 0.2
FILES = "'connector' = 'filesystem', 'format' = 'json'"


def poll(what: str, holds: Callable[[], Any]) -> Any:
    """What ``holds`` gives once it gives something true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        threading.Event().wait(POLL_SECONDS)
    raise SystemExit(f"waited in vain for {what}")


class Service:
    """Answers ``/<id>`` with ``{"id": <id>, "double": 2 * <id>}``, once :meth:`release` was called."""

    def __init__(self) -> None:
        self.asked, self._released = threading.Event(), threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked.set()
                service._released.wait(DEADLINE_SECONDS)
                number = int(self.path.strip("/"))
                body = json.dumps({"id": number, "double": 2 * number}).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return  # who asked has been killed

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def release(self) -> None:
        self._released.set()


def holders(spark: Any) -> dict[str, int]:
    """How many cached blocks each executor holds, by its id."""
    infos = spark.sparkContext._jsc.sc().statusStore().rddList(True)
    found: dict[str, int] = {}
    for index in range(infos.size()):
        # A copy: Spark's own sequence shrinks while it is read, when an executor is lost.
        partitions = infos.apply(index).partitions().get().toVector()
        for number in range(partitions.size()):
            executors = partitions.apply(number).executors().toVector()
            for place in range(executors.size()):
                name = str(executors.apply(place))
                found[name] = found.get(name, 0) + 1
    return found


def kill_holder(spark: Any) -> str:
    """SIGKILL the executor with the most cached blocks, and wait until Spark knows that they are gone."""
    held = poll("cached blocks", lambda: holders(spark))
    executor = max(held, key=lambda name: held[name])
    application = spark.sparkContext.applicationId
    os.kill(poll(f"the process of executor {executor}", lambda: process_of(application, executor)), signal.SIGKILL)
    poll("the loss of its blocks", lambda: executor not in holders(spark))
    return executor


def process_of(application: str, executor: str) -> int | None:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            given = dict(pairwise(words))
            ours = given.get(b"--app-id") == application.encode() and given.get(b"--executor-id") == executor.encode()
            if ours and b"java" in words[0]:
                return int(entry.name)
    return None


def script(directory: Path, sink: str, query: str, host: str) -> str:
    return f"""
        CREATE TABLE orders (id BIGINT, k BIGINT, at AS PROCTIME()) WITH ({FILES}, 'path' = '{directory / "orders"}');
        CREATE TABLE customers (k BIGINT, country STRING) WITH ({FILES}, 'path' = '{directory / "customers"}');
        CREATE TABLE doubles (id BIGINT, `double` BIGINT)
          WITH ('connector' = 'http', 'url' = 'http://{host}/{{id}}', 'timeout' = '3 min');
        CREATE TABLE r ({sink} BIGINT, country STRING, n BIGINT) WITH ({FILES}, 'path' = '{directory / sink}');
        CACHE LAZY TABLE joined AS SELECT o.id, c.country FROM orders AS o JOIN customers AS c ON o.k = c.k;
        INSERT INTO r {query};
    """


COUNTS = "SELECT COUNT(id), country, SUM(id) FROM joined GROUP BY country"
DOUBLES = (
    "SELECT d.`double`, j.country, j.id FROM (SELECT id, country, PROCTIME() AS at FROM joined) AS j "
    "JOIN doubles FOR SYSTEM_TIME AS OF j.at AS d ON j.id = d.id"
)


def main(master: str, python: str, directory: Path, *settings: str) -> None:
    conf = {
        "spark.pyspark.python": python,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        **dict(setting.split("=", 1) for setting in settings),
    }
    spark = start_session(master, conf)
    service = Service()
    seen: dict[str, Any] = {}
    try:
        memory = spark.sparkContext._jsc.sc().getExecutorMemoryStatus  # type: ignore[union-attr]
        poll("two executors", lambda: memory().size() == 3)
        with Session(spark) as session:

            def run(sink: str, query: str) -> Any:
                config = {"execution.runtime-mode": "batch", "parallelism.default": "2"}
                text = script(directory, sink, query, service.host)
                return session.execute(hintplan.compile_sql(text, config=config, name=sink))

            assert run("first", COUNTS).await_termination(DEADLINE_SECONDS)
            seen["first"] = [(r.operator, r.rows, r.hits, (r.bytes or 0) > 0) for r in session.cached_results()]
            seen["killed between"] = kill_holder(spark)
            assert run("second", COUNTS).await_termination(DEADLINE_SECONDS)
            seen["second"] = [(r.operator, r.rows, r.hits, (r.bytes or 0) > 0) for r in session.cached_results()]
            third = run("third", DOUBLES)
            poll("a question of job 3", lambda: third.raise_failure() or service.asked.is_set())
            seen["killed during"] = kill_holder(spark)
            service.release()
            assert third.await_termination(DEADLINE_SECONDS)
            seen["third"] = [(r.operator, r.rows, r.hits) for r in session.cached_results()]
    finally:
        service.release()
        spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
