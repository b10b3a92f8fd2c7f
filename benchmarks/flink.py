"""Real Flink for benchmarks: SQL scripts in one local JVM, timed.

Flink needs older libraries than Spark, so it lives in an environment of its own; this file is both the client, in our
environment, and, run as a program by Flink's interpreter, the server. That interpreter is ``--flink``'s, or the
environment variable ``FLINK_PYTHON``, or ``.flink/bin/python`` (``make flink-goldens`` makes it). The distribution on
PyPI lacks what it takes to read Parquet; those four libraries are fetched with Maven, once, beside the interpreter.

    with Flink.start(flink_python(None), jvm=("-Xmx6g",)) as flink:
        flink.run(script, settings)            # not counted: the JVM compiles what is hot
        seconds = flink.run(script, settings)

Knows nothing of the workloads. Seconds are Flink's own net run time of the job, without the start of its cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

THROUGHPUT = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
"""What a user sets for throughput: https://github.com/nexmark/nexmark sets the same for its queries."""
ONE_BY_ONE = {key: value for key, value in THROUGHPUT.items() if "mini-batch" not in key and "distinct" not in key}
HEAP = {"state.backend.type": "hashmap"}
ROCKSDB = {"state.backend.type": "rocksdb", "taskmanager.memory.managed.size": "1 gb"}

LIBRARIES = (
    "org.apache.flink:flink-sql-parquet:2.3.0",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
    "commons-logging:commons-logging:1.2",
)


class FlinkError(Exception):
    """Flink is not there, or did not do what it was told; the message says what Flink said."""


def flink_python(given: str | None) -> Path:
    """Flink's interpreter; FlinkError, saying how to get one, if there is none."""
    found = Path(given or os.environ.get("FLINK_PYTHON") or Path(__file__).parents[1] / ".flink" / "bin" / "python")
    if not found.exists():
        raise FlinkError(f"{found} is not there: 'make flink-goldens' makes .flink, or set FLINK_PYTHON")
    return found.absolute()


def libraries(python: Path) -> Path:
    """The directory of the libraries that Flink lacks, fetched if they are not there."""
    directory = python.parent.parent / "jars"
    for library in LIBRARIES:
        _, name, version = library.split(":")
        if not (directory / f"{name}-{version}.jar").exists():
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={library}", f"-DoutputDirectory={directory}"]
            try:
                subprocess.run(command, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise FlinkError(f"{library} cannot be fetched with Maven: {error}") from error
    return directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Flink:
    """A running JVM with Flink in it."""

    process: subprocess.Popen[str]

    @classmethod
    @contextmanager
    def start(cls, python: Path, *, jvm: tuple[str, ...] = ("-Xmx6g",)) -> Iterator[Flink]:
        with tempfile.TemporaryDirectory(prefix="hintplan-flink-") as scratch:
            logging = Path(scratch) / "log4j.properties"
            logging.write_text("rootLogger.level = OFF\n")
            environment = os.environ | {
                "HADOOP_CLASSPATH": str(libraries(python) / "*"),
                "JVM_ARGS": " ".join(("-Duser.timezone=UTC", *jvm)),
                "LOG4J_PROPERTIES": str(logging),
                "FLINK_LOG_DIR": scratch,
            }
            environment.pop("PYTHONPATH", None)
            process = subprocess.Popen(
                [str(python), __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            try:
                yield cls(process=process)
            finally:
                process.communicate()

    def run(self, script: str, settings: Mapping[str, str]) -> float:
        """Run a script of DDL and one INSERT to its end; the seconds of its job."""
        return float(self._ask(script=script, settings=dict(settings), fold=False)["seconds"])

    def fold(self, script: str, settings: Mapping[str, str]) -> Counter[tuple[Any, ...]]:
        """What is left of the changelog of the query that ends a script of DDL; for small results."""
        rows = self._ask(script=script, settings=dict(settings), fold=True)["rows"]
        return Counter({tuple(row): count for *row, count in rows})

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise FlinkError(f"Flink's process ended with exit code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise FlinkError(answer["error"])
        return answer


def statements(script: str) -> list[str]:
    """The statements of a script whose texts hold no semicolon."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [text for text in (part.strip() for part in "\n".join(lines).split(";")) if text]


# --- the server, in Flink's environment -------------------------------------------------------------------------------


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Answer each line of ``requests`` with a line; Flink's own talk must not go to ``answers``."""
    from py4j.protocol import Py4JJavaError
    from pyflink.java_gateway import get_gateway
    from pyflink.util.exceptions import TableException

    gateway = get_gateway()
    for line in requests:
        try:
            answer = _execute(**json.loads(line))
        except (Py4JJavaError, TableException) as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        gateway.jvm.java.lang.System.gc()


def _execute(*, script: str, settings: Mapping[str, str], fold: bool) -> dict[str, Any]:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    )
    *before, last = statements(script)
    for statement in before:
        tables.execute_sql(statement)
    if fold:
        return {"rows": _left(tables, last)}
    client = tables.execute_sql(last).get_job_client()
    return {"seconds": client.get_job_execution_result().result().get_net_runtime() / 1000}


def _left(tables: Any, query: str) -> list[list[Any]]:
    from pyflink.common import RowKind

    counts: Counter[tuple[Any, ...]] = Counter()
    with tables.execute_sql(query).collect() as changes:
        for row in changes:
            inserted = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            values = (v if isinstance(v, int | float | str | None) else str(v) for v in row)
            counts[tuple(values)] += 1 if inserted else -1
    return [[*row, count] for row, count in counts.items() if count]


if __name__ == "__main__":
    own_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, own_output)
