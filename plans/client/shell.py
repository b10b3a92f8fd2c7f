"""The shell: typed statements that end with ``;``, with history and completion.

prompt_toolkit edits the lines, on all kinds of terminals including dumb ones; only this module imports it. Ctrl-C drops
the typed text, or stops the running statement; Ctrl-D and QUIT end the session.

>>> is_command("quit ;"), is_command("SELECT 1")
(True, False)
"""

from __future__ import annotations

import os
import stat
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import clear

from hintplan.plans.client.client import Client
from hintplan.plans.client.completion import Names, complete
from hintplan.plans.errors import NotInstalled, SqlError
from hintplan.plans.lazy import load
from hintplan.plans.text.terminal import print_data, print_message

_PROMPT = "hintplan> "
_COMMANDS = ("QUIT", "EXIT", "HELP", "CLEAR")

_HELP = """\
Statements end with ';' and may have several lines. Tab completes, Ctrl-C stops a
statement, Ctrl-D leaves.

  CREATE TABLE | VIEW ...   declare; DROP, SHOW TABLES | VIEWS, DESCRIBE name
  SELECT ...                take what is there and show the rows
  INSERT INTO ...           take what is there and write it, or continue in the background
                            after SET 'table.dml-sync' = 'false': SHOW JOBS, STOP JOB 'x'
  EXPLAIN ...               operators, their state, and who set what
  COMPILE PLAN 'x' FOR ...  write a plan file; EXECUTE PLAN 'x' runs one
  SET 'key' = 'value'       configure what follows; SET lists, RESET undoes
  HELP, CLEAR, QUIT         this text, a clear screen, the end"""


def run_shell(client: Client, *, debug: bool, terminal: Input | None = None, output: Output | None = None) -> int:
    """Read and run statements until the end of input or QUIT; return 0, because failures were printed already."""
    is_complete: Callable[[str], bool] = load("hintplan.planner.syntax.units:is_complete")
    prompt: PromptSession[str] = PromptSession(
        _PROMPT,
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: " " * (width - 2) + "> ",
        key_bindings=_bindings(lambda text: is_command(text) or is_complete(text)),
        completer=SqlCompleter(client),
        complete_while_typing=False,
        history=_history(),
        input=terminal,
        output=output,
    )
    print_message("hintplan SQL; statements end with ';', HELP lists them, QUIT or Ctrl-D leaves")
    while True:
        try:
            with patch_stdout(raw=True):
                text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        if is_command(text):
            word = _command(text)
            if word in ("QUIT", "EXIT"):
                break
            if word == "HELP":
                print_data(_HELP)
            else:
                clear()
            continue
        _run(client, f"{text}\n", debug=debug)
    _tell_of_jobs(client)
    return 0


def _run(client: Client, text: str, *, debug: bool) -> None:
    try:
        for unit in client.units(text):
            if client.run(unit):
                break  # the signal also stops the statements typed after it
    except SqlError as error:
        client.session.skip()
        if debug:
            print_message(traceback.format_exc())
        client.say_errors(error)
    except NotInstalled as error:
        client.session.skip()
        print_message(str(error))
    except KeyboardInterrupt:
        client.session.skip()
        print_message("interrupted")


def _tell_of_jobs(client: Client) -> None:
    if running := client.running():
        print_message(f"stopping {', '.join(running)}")


def is_command(text: str) -> bool:
    """Return True if ``text`` is a command of the shell itself, or empty."""
    return _command(text) in (*_COMMANDS, "")


def _command(text: str) -> str:
    return text.strip().rstrip(";").strip().upper()


def _bindings(is_done: Callable[[str], bool]) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_done(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("enter", filter=completion_is_selected)
    def choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings


class SqlCompleter(Completer):
    """A completer with the names of the client's session."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = load("hintplan.planner.describe:completion_names")
        openings: tuple[str, ...] = load("hintplan.planner.statements.openings:ALL_OPENINGS")
        self._statements = tuple(sorted((*openings, *_COMMANDS)))

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        columns, functions = self._names(self._client.session)
        names = Names(columns=columns, functions=functions, statements=self._statements)
        length, completions = complete(document.text_before_cursor, document.text_after_cursor, names)
        for text in completions:
            yield Completion(text, start_position=-length)


def history_file() -> Path:
    """Return the file of typed statements, below ``$XDG_STATE_HOME``."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "hintplan" / "sql_history"


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        print_message(f"no history: {path}: {error.strerror}")
        return InMemoryHistory()
    return FileHistory(str(path))
