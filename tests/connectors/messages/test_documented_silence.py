"""The example of a silent partition in the documentation, with a broker: its commands print what the page shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pyspark import __version__

from hintplan.runtime.spark.versions import version_notes
from tests.connectors.messages.broker import Broker, spark_conf
from tests.docs.test_docs import ROOT, blocks, executed, said, sessions, timeless

pytestmark = [pytest.mark.spark, pytest.mark.integration]

PAGE = "docs/event-time/watermarks.md"
KCAT = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.connectors.messages.broker import Broker
words = dict(zip(sys.argv[2::2], sys.argv[3::2]))
messages = [(None, line) for line in sys.stdin.read().splitlines()]
Broker(port={port}).send(words["-t"], messages, partition=int(words["-p"]))
"""


def test_the_page_shows_what_the_commands_print(broker: Broker, tmp_path: Path) -> None:
    broker.create(4, named="readings")
    (script,) = [sql for sql in blocks(PAGE, "sql") if "readings" in sql]
    (tmp_path / "readings.sql").write_text(script.replace("localhost:9092", broker.servers), encoding="utf-8")
    kcat = tmp_path / "bin" / "kcat"
    kcat.parent.mkdir()
    kcat.write_text(KCAT.format(python=sys.executable, root=str(ROOT), port=broker.port), encoding="utf-8")
    kcat.chmod(0o755)
    conf = " ".join(f"--conf {key}={value}" for key, value in spark_conf().items())
    shell = ""
    for line, shown in sessions(PAGE):
        if "() {" in line:
            shell = f"{line}\n"  # each command has a shell of its own
            continue
        # The timeout has passed in the next run, without a minute of waiting.
        given = line.replace("hintplan run", f"hintplan run {conf}").replace("='1 min'", "='1 ms'")
        printed = executed(given if line.startswith("hintplan") else f"{shell}{given}", tmp_path)
        lines = [one for one in said(comparable(printed)) if one not in version_notes(__version__)]
        expected = timeless(comparable(shown))
        if "..." in expected:
            assert {*expected} - {"..."} <= {*lines}, line
        else:
            assert sorted(lines) == sorted(expected), line


def comparable(output: str) -> str:
    """Leave out the digest, which depends on the address of the broker, and use the timeout of the test."""
    return re.sub(r"digest [0-9a-f]{16}", "digest", output).replace("→ 1 min", "→ 1 ms")
