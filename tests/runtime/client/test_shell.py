"""The shell at a terminal: keys in, text out. Its Spark is a stand-in."""

from __future__ import annotations

import os
import pty
import re
import select
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hintplan.planner.session import CompileSession
from hintplan.plans.client.client import Client
from hintplan.plans.client.shell import SqlCompleter, history_file, run_shell
from hintplan.plans.errors import NotInstalled
from tests.runtime.client.conftest import TABLES, Engine

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 180
UP, TAB, CTRL_C, CTRL_D, ENTER = "\x1b[A", "\t", "\x03", "\x04", "\r"


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Any]]:
    """Types keys into a new shell, which ends when they are read: ``typed(keys)`` is (out, err) and the client."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(keys: str, engine: Engine | None = None) -> tuple[str, str, Client]:
        client = Client(
            session=CompileSession.open(),
            open_engine=lambda: engine or Engine(),
            as_json=False,
            allow_fact_edits=False,
            typed=True,
        )
        with create_pipe_input() as terminal:
            terminal.send_text(keys)
            assert run_shell(client, debug=False, terminal=terminal, output=DummyOutput()) == 0
        client.close()
        return *capfd.readouterr(), client

    return run


def lines(*texts: str) -> str:
    return "".join(f"{text}{ENTER}" for text in texts)


def test_a_statement_ends_at_its_semicolon_over_several_lines(typed: Callable[..., Any]) -> None:
    out, err, _ = typed(lines(*TABLES.splitlines(), "SHOW TABLES", ";", "QUIT"))
    assert err.endswith("table orders created\ntable sums created\n2 rows\n")
    assert "| orders     |" in out


def test_an_error_shows_its_line_and_the_session_goes_on(typed: Callable[..., Any]) -> None:
    out, err, _ = typed(lines("SELECT 1 FROM nothing;", "SHOW VIEWS;", "exit;"))
    assert "error: unknown table 'nothing'\n  SELECT 1 FROM nothing;\n                ^\n  hint: " in err
    assert err.endswith("0 rows\n")
    assert "view name" in out


def test_without_spark_the_session_goes_on(typed: Callable[..., Any]) -> None:
    class Without(Engine):
        def select(self, plan: Any, show: Any) -> int:
            raise NotInstalled("pip install 'hintplan[spark]'")

    _, err, _ = typed(
        lines(*TABLES.splitlines(), "SELECT id FROM orders; SHOW JOBS;", "SHOW VIEWS;", "QUIT"), Without()
    )
    assert err.endswith("table sums created\npip install 'hintplan[spark]'\n0 rows\n")


def test_of_several_statements_in_a_line_none_follows_one_that_fails(typed: Callable[..., Any]) -> None:
    _, err, _ = typed(lines("SELECT 1 FROM nothing; SET 'pipeline.name' = 'x';", "SET 'pipeline.name' = 'y';", "QUIT"))
    assert err.endswith("pipeline.name = y\n")
    assert "pipeline.name = x" not in err


def test_ctrl_c_drops_what_is_being_typed_and_ctrl_d_leaves(typed: Callable[..., Any]) -> None:
    out, err, _ = typed(f"SELECT nonsense{CTRL_C}" + lines("SHOW TABLES;") + CTRL_D)
    assert "error" not in err
    assert "table name" in out


def test_a_statement_that_is_stopped_does_not_end_the_session(typed: Callable[..., Any]) -> None:
    class Interrupted(Engine):
        def insert(self, plan: Any) -> int:
            raise KeyboardInterrupt

    engine = Interrupted(rows=[("+I", ("1",))], code=130)
    keys = lines(*TABLES.splitlines(), "SELECT id FROM orders;", "INSERT INTO sums SELECT customer, total FROM orders;")
    _, err, _ = typed(keys + lines("SHOW VIEWS;", "QUIT"), engine)
    assert "stopped after 1 row\n" in err
    assert err.endswith("interrupted\n0 rows\n")


def test_names_of_the_session_are_completed(typed: Callable[..., Any]) -> None:
    _, _, client = typed(lines(*TABLES.splitlines(), "CREATE VIEW v AS SELECT id FROM orders;", "QUIT"))

    def completed(text: str) -> list[str]:
        found = SqlCompleter(client).get_completions(Document(text), CompleteEvent())
        return [text[: len(text) + completion.start_position] + completion.text for completion in found]

    assert completed("DESCRIBE su") == ["DESCRIBE sums"]
    assert completed("SELECT * FROM v JOIN orders ON v.") == ["SELECT * FROM v JOIN orders ON v.id"]
    client.session.context.catalog.tables.clear()
    assert completed("SELECT v. FROM v"[:9]) == [], "a view that makes no sense any more has no columns"


def test_help_and_empty_lines(typed: Callable[..., Any]) -> None:
    out, err, _ = typed(lines("", "help", ";", "QUIT"))
    assert "COMPILE PLAN" in out
    assert "error" not in err


def test_history_is_kept_for_the_user_alone(typed: Callable[..., Any]) -> None:
    typed(lines("SHOW TABLES;", "QUIT"))
    path = history_file()
    assert "SHOW TABLES;" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    out, _, _ = typed(f"{UP}{UP}" + ENTER + CTRL_D)
    assert "table name" in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_home_that_cannot_be_written_costs_only_the_history(
    typed: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    out, err, _ = typed(lines("SHOW TABLES;", "QUIT"))
    assert "no history: " in err
    assert "table name" in out


def test_jobs_in_the_background_are_stopped_when_the_shell_is_left(typed: Callable[..., Any]) -> None:
    engine = Engine()
    keys = lines("SET 'table.dml-sync' = 'false';", *TABLES.splitlines())
    insert = "INSERT INTO sums SELECT customer, total FROM orders;"
    _, err, _ = typed(keys + lines(insert, "QUIT"), engine)
    assert err.endswith("stopping sums\n")
    assert engine.closed == 1


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
def test_a_process_at_a_terminal_is_a_shell(tmp_path: Path, terminal: str) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": terminal, "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "hintplan", "sql"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    termios.tcsetwinsize(ours, (24, 100))
    said = b""

    def until(expected: bytes, again: bytes = b"") -> None:
        """Read until ``expected`` was said; ``again`` is typed as long as there is nothing to read."""
        nonlocal said
        deadline = time.monotonic() + DEADLINE_SECONDS
        while expected not in said:
            assert time.monotonic() < deadline, said
            if select.select([ours], [], [], 0.2)[0]:
                got = os.read(ours, 4096)
                said += got
                if b"\x1b[6n" in got:  # asks where the cursor is
                    os.write(ours, b"\x1b[1;1R")
            elif again:
                os.write(ours, again)
        said = said[said.index(expected) + len(expected) :]

    try:
        until(b"hintplan>")
        os.write(ours, b"SHOW VIEWS;\r")
        until(b"view name")
        until(b"0 rows")
        until(b"hintplan>")
        os.write(ours, b"SELECT nonsense")
        # Right after a prompt, the terminal may not be the shell's yet, and drop the key.
        until(b"hintplan>", again=CTRL_C.encode())
        deadline = time.monotonic() + DEADLINE_SECONDS
        while process.poll() is None:
            assert time.monotonic() < deadline, said
            try:
                if select.select([ours], [], [], 0.2)[0]:
                    said += os.read(ours, 4096)
                else:
                    os.write(ours, CTRL_C.encode() + b"QUIT\r")
            except OSError:  # the other end is closed
                process.wait(DEADLINE_SECONDS)
        assert process.returncode == 0
        assert re.search(rb"Traceback", said) is None
    finally:
        process.kill()
        process.wait()
        os.close(ours)
