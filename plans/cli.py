"""The command line: it runs a command, renders errors, and chooses the exit code.

Exit codes: 0 success; 1 wrong input or a failed run; 2 differences (only with ``--exit-code``); 64 wrong usage, or a
package is not installed; 130 interrupted. A command is a ``click.Command`` that returns its exit code, or None for 0,
and raises HintplanError. Each command is imported only when it is used: ``hintplan diff`` must not wait for pyspark to
load.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import click

from hintplan.plans.commands.root import root
from hintplan.plans.errors import HintplanError, NotInstalled, PlanError, clipped
from hintplan.plans.python_words import for_a_command
from hintplan.plans.text.terminal import print_message

EXIT_FAILED = 1
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; None for ``arguments`` means the arguments of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    codes: list[int] = []
    if arguments is None:
        atexit.register(_leave, codes)  # first, because exit handlers run in reverse order: this one must be last
    if "_HINTPLAN_COMPLETE" in os.environ:
        from hintplan.plans.commands.completion import register

        register()
    with for_a_command():
        run = partial(root.main, words, prog_name="hintplan", standalone_mode=False)
        codes.append(_guarded(run, "--debug" in words))
    sys.exit(codes[0])


def _leave(codes: list[int]) -> None:
    """End the process at once after all other exit handlers, if a command has returned.

    Python would take every module apart first, which takes a sixth of a short command. Nor would it keep the exit code
    for certain: Spark calls sinks in daemon threads, and if one is stopped in native code, it aborts the process.
    """
    if codes:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(codes[0])


def _guarded(run: Callable[[], Any], debug: bool) -> int:
    """Return the exit code of ``run``, after printing any exception as a message."""
    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.UsageError as error:
        _say_usage(error)
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        print_message("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as in `hintplan explain plan.json | head`. Python must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except HintplanError as error:
        if debug:
            _say_traceback()
        print_message(str(error))
        if isinstance(error, PlanError):
            _say_how_to_restore(error)
        return EXIT_USAGE if isinstance(error, NotInstalled) else EXIT_FAILED
    except click.ClickException as error:
        if debug:
            _say_traceback()
        print_message(error.format_message())
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - the edge: a bug must not show as a traceback
        if debug:
            _say_traceback()
        first_line = (str(error).splitlines() or [""])[0][:200]
        print_message(f"internal error: {type(error).__name__}: {first_line}")
        if not debug:
            print_message("  hint: --debug shows the traceback")
        return EXIT_FAILED


def _say_traceback() -> None:
    import traceback  # few commands need it

    print_message(traceback.format_exc())


def _say_how_to_restore(error: PlanError) -> None:
    from hintplan.plans.files.restore import restoring

    if advice := restoring(error):
        print_message(advice)


def _say_usage(error: click.UsageError) -> None:
    if error.ctx is not None:
        print_message(error.ctx.get_usage())
    print_message(f"error: {clipped(error.format_message())}")
    if error.ctx is not None:
        print_message(f"  hint: {error.ctx.command_path} --help")
